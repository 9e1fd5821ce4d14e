"""The verdict of a proof: from the comparisons of its two states, and the figures that settings must move.

The comparisons are the study's own: rates share the chance to err (Holm), percentiles explore. A mechanism is
a figure of trials, paired by block as rates are; all of them together share the chance to err once more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from leadline.analysis.statistics.means import Ratio, paired_ratio
from leadline.analysis.statistics.multiplicity import holm_levels
from leadline.errors import ResultError
from leadline.store.reader import Result
from leadline.store.tables import LatencyRow, TrialRow
from leadline.verdict.compared.comparisons import PRIMARY_WEIGHT, weight_of
from leadline.verdict.diagnosed.samples import Samples
from leadline.verdict.diagnosed.seen.of_trial import figures_of
from leadline.verdict.material import Material
from leadline.verdict.model import UNUSABLE, Cell, Comparison
from leadline.verdict.proved.zeros import ZeroRatio, zero_ratio

WITHOUT, WITH = "without", "with"
_COUNTED = (
    "_read_bytes",
    "_written_bytes",
    "_sent_bytes",
    "_received_bytes",
    "_cached_bytes",
    "_flushed_bytes",
)
# The gain itself, seen again: no mechanism.
_GAIN = frozenset({"bytes_per_s", "operations_per_s", "latency_s", "seconds"})
ProofOutcome = Literal["helps", "not_by_mechanism", "nothing", "harms", "undecided", "unusable"]
Moved = Literal["as meant", "the other way", "not", "not seen"]


@dataclass(frozen=True)
class Mechanism:
    """A figure that a setting must move in one work: `ratio` with/without at the level it is decided at."""

    setting: str
    work: str
    figure: str
    direction: str
    moved: Moved
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    blocks: int = 0
    cells: tuple[str, ...] = ()


@dataclass(frozen=True)
class ProofFound:
    """What was proved of all settings together. `settings` are rows of the manifest."""

    settings: tuple[Mapping[str, Any], ...]
    outcome: ProofOutcome
    comparisons: tuple[Comparison, ...]
    mechanisms: tuple[Mechanism, ...]
    cells: tuple[Cell, ...]

    @property
    def words(self) -> str:
        """The settings with their values."""
        return ", ".join(f"{one['setting']}={one['value']}" for one in self.settings)

    @property
    def better(self) -> tuple[Comparison, ...]:
        """Where it is faster in what a work is asked for."""
        return tuple(one for one in self.comparisons if _asked(one) and one.verdict == "faster")

    @property
    def worse(self) -> tuple[Comparison, ...]:
        """Where it is slower, in rates and in latencies."""
        return tuple(one for one in self.comparisons if one.verdict == "slower")


def find_proof(
    result: Result, read: Material, cells: Sequence[Cell], comparisons: Sequence[Comparison]
) -> ProofFound | None:
    """None of a result that proves no settings."""
    proof = read.manifest.get("proof")
    if proof is None:
        return None
    try:
        settings = tuple(proof["settings"])
        asked = [
            (one["setting"], move["figure"], move["direction"])
            for one in settings
            for move in one["moves"]
            if move["figure"] not in _GAIN
        ]
    except (KeyError, TypeError) as error:
        raise ResultError(f"what the result says of its settings is damaged: {error}", "restore it") from None
    compared = tuple(one for one in comparisons if (one.base, one.other) == (WITHOUT, WITH))
    mechanisms = tuple(_mechanisms(result, read, cells, asked))
    return ProofFound(settings, outcome_of_proof(compared, mechanisms), compared, mechanisms, tuple(cells))


def outcome_of_proof(compared: Sequence[Comparison], mechanisms: Sequence[Mechanism]) -> ProofOutcome:
    """A gain in a rate helps, whatever is beside it; a loss alone, in a rate or a percentile, harms."""
    usable = [one for one in compared if one.validity not in UNUSABLE]
    rates = [one for one in usable if _asked(one)]
    gained = {one.work for one in rates if one.verdict == "faster"}
    if not rates:
        return "unusable"
    if gained:
        told = [one for one in mechanisms if one.work in gained and one.moved != "not seen"]
        by_it = not told or any(one.moved == "as meant" for one in told)
        return "helps" if by_it else "not_by_mechanism"
    if any(one.verdict == "slower" for one in usable):
        return "harms"
    return "nothing" if all(one.verdict == "same" for one in rates) else "undecided"


def _asked(one: Comparison) -> bool:
    return weight_of(one.metric) == PRIMARY_WEIGHT


def _mechanisms(
    result: Result, read: Material, cells: Sequence[Cell], asked: Sequence[tuple[str, str, str]]
) -> Iterator[Mechanism]:
    by_place = {(cell.target, cell.work): cell for cell in cells}
    pairs = [
        (cell, by_place[WITH, cell.work])
        for cell in cells
        if cell.target == WITHOUT and (WITH, cell.work) in by_place
    ]
    if not asked:
        return
    seen = {one.id: _figures(result, read, one) for pair in pairs for one in pair}
    found = [
        (setting, base, other, figure, direction, _ratio(seen[base.id], seen[other.id], figure))
        for base, other in pairs
        for setting, figure, direction in asked
    ]
    levels = iter(holm_levels([one[-1].p_value() for one in found if one[-1]], None, read.alpha))
    for setting, base, other, figure, direction, ratio in found:
        plain = Mechanism(setting, base.work, figure, direction, "not seen", cells=(base.id, other.id))
        unusable = {base.validity.state, other.validity.state} & {*UNUSABLE}
        level = next(levels) if ratio is not None else 0.0
        yield plain if ratio is None or unusable else _moved(plain, ratio, level)


def _moved(plain: Mechanism, ratio: Ratio | ZeroRatio, level: float) -> Mechanism:
    estimate = ratio.estimate(level)
    low, high = estimate.low, estimate.high
    moved: Moved = "not"
    if low is not None and high is not None and (low > 1 or high < 1):
        moved = "as meant" if (low > 1) == (plain.direction == "up") else "the other way"
    return replace(plain, moved=moved, ratio=estimate.value, low=low, high=high, blocks=estimate.count)


def _figures(result: Result, read: Material, cell: Cell) -> dict[int, Mapping[str, Any]]:
    """By block what was seen of the trial that the cell's figures rest on."""
    facts, host = read.facts[cell.target], read.manifest.get("host", {})
    found: dict[int, Mapping[str, Any]] = {}
    for trial in read.good(cell.id):
        samples = Samples(trial, result.sample_lines(trial.trial))
        latency, asked = read.latency.get(trial.trial, ()), cell.shown.in_flight
        figures = figures_of(trial, latency, samples, asked, target=facts, host=host)
        found[trial.block] = {**columns(trial), **figures, **_metadata(figures, latency)}
    return found


def _metadata(figures: Mapping[str, Any], latency: Sequence[LatencyRow]) -> dict[str, float]:
    """Requests to metadata servers for each operation of a work that neither reads nor writes."""
    rows = [row for row in latency if row.interval == -1 and row.clock == "total"]
    asked, count = figures["mds_requests_per_s"], sum(row.operations for row in rows)
    if asked is None or figures["operations_per_s"] or not count:
        return {}
    return {"metadata_per_operation": asked * figures["seconds"] / count}


def columns(trial: TrialRow) -> dict[str, float | None]:
    """Bytes that places on the way counted, for each byte that the program moved in the whole trial."""
    moved = trial.total_read_bytes + trial.total_write_bytes
    return {
        name: value / moved if moved and isinstance(value, int) else None
        for name, value in vars(trial).items()
        if name.endswith(_COUNTED)
    }


def _ratio(
    base: Mapping[int, Mapping[str, Any]], other: Mapping[int, Mapping[str, Any]], figure: str
) -> Ratio | ZeroRatio | None:
    """None where no block has the figure on both sides, or all is zero: no ratio says anything there."""
    shared = [
        block
        for block in sorted(base.keys() & other.keys())
        if isinstance(base[block].get(figure), int | float)
        and isinstance(other[block].get(figure), int | float)
    ]
    sides = [[float(side[block][figure]) for block in shared] for side in (base, other)]
    return paired_ratio(sides[0], sides[1], shared) or zero_ratio(sides[0], sides[1])
