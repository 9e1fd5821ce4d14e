"""The verdict of a proof: from the comparisons of its two states, and the figures that settings must move.

The comparisons are the study's own: rates share the chance to err (Holm), percentiles explore. A mechanism is
a figure of trials, paired by block as rates are; all of them together share the chance to err once more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from leadline.analysis.statistics.intervals import holm_levels
from leadline.analysis.statistics.means import Ratio
from leadline.errors import ResultError
from leadline.store.reader import Result
from leadline.store.tables import LatencyRow, TrialRow
from leadline.verdict.comparisons.comparisons import PRIMARY_WEIGHT, weight_of
from leadline.verdict.diagnosis.samples import Samples
from leadline.verdict.diagnosis.trial_figures import figures_of
from leadline.verdict.inputs import Material
from leadline.verdict.model import UNUSABLE, Cell, Comparison
from leadline.verdict.proofs.effects import (
    WITH,
    WITHOUT,
    Effects,
    Interaction,
    StatesDesign,
    ZeroRatio,
    contrast_of_figures,
    find_effects,
    stored_design,
)

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
ProofOutcome = Literal["helps", "not_by_mechanism", "nothing", "harms", "depends", "undecided", "unusable"]
Moved = Literal["as meant", "the other way", "not", "open", "not seen"]


@dataclass(frozen=True)
class Mechanism:
    """A figure that a setting must move in one work: `ratio` with/without at the level it is decided at.

    It did `not` move where it went at most the study's margin the way that is meant, by its whole interval;
    what may have gone further and may not have moved is `open`.
    """

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
    """What was proved of all settings together; of several that are told apart `each` has one for each.

    `settings` are rows of the manifest, `cells` those that the verdict rests on. `interactions` are pairs of
    settings, or groups of pairs that cannot be told from each other.
    """

    settings: tuple[Mapping[str, Any], ...]
    outcome: ProofOutcome
    comparisons: tuple[Comparison, ...]
    mechanisms: tuple[Mechanism, ...]
    cells: tuple[Cell, ...]
    each: tuple[ProofFound, ...] = ()
    interactions: tuple[Interaction, ...] = ()
    design: StatesDesign | None = None

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

    @property
    def acting(self) -> tuple[Interaction, ...]:
        """Pairs of settings that were found to act on each other."""
        return tuple(one for one in self.interactions if one.best)


def find_proof(
    result: Result, read: Material, cells: Sequence[Cell], comparisons: Sequence[Comparison]
) -> ProofFound | None:
    """None of a result that proves no settings."""
    design = stored_design(read.manifest)
    if design is None:
        return None
    try:
        settings = tuple(read.manifest["proof"]["settings"])
        asked = [
            (str(one["setting"]), str(move["figure"]), str(move["direction"]))
            for one in settings
            for move in one["moves"]
            if move["figure"] not in _GAIN
        ]
    except (KeyError, TypeError) as error:
        raise ResultError(f"the stored settings of the result are damaged: {error}", "restore it") from None
    mechanisms = tuple(_mechanisms(result, read, cells, design, asked))
    if design.kind == "together":
        compared = tuple(one for one in comparisons if (one.base, one.other) == (WITHOUT, WITH))
        return ProofFound(
            settings,
            outcome_of_proof(compared, mechanisms),
            compared,
            mechanisms,
            tuple(cells),
            design=design,
        )
    effects = _effects(read, cells, comparisons, design)
    return several(design, settings, effects, mechanisms, cells)


def several(
    design: StatesDesign,
    settings: Sequence[Mapping[str, Any]],
    effects: Effects,
    mechanisms: Sequence[Mechanism],
    cells: Sequence[Cell] = (),
) -> ProofFound:
    """A verdict for each setting, from its own effects and mechanisms."""
    pairs = [pair for one in effects.interactions for pair in (best.pair for best in one.best)]
    each = []
    for one in settings:
        name = str(one["setting"])
        compared = effects.of[name]
        moved = tuple(found for found in mechanisms if found.setting == name)
        outcome = outcome_of_proof(compared, moved)
        if outcome in ("nothing", "undecided") and any(name in pair for pair in pairs):
            outcome = "depends"
        own = _resting(design, name, cells, compared)
        each.append(ProofFound((one,), outcome, compared, moved, own, design=design))
    every = tuple(compared for own in each for compared in own.comparisons)
    outcome = outcome_of_proof(every, mechanisms)
    return ProofFound(
        *(tuple(settings), outcome, every, tuple(mechanisms), tuple(cells)),
        *(tuple(each), effects.interactions, design),
    )


def _resting(
    design: StatesDesign, setting: str, cells: Sequence[Cell], compared: Sequence[Comparison]
) -> tuple[Cell, ...]:
    """The cells of the works that tell what a setting does."""
    usable = {one.work for one in compared if one.validity not in UNUSABLE}
    states = design.levels.keys() if design.fraction else {WITHOUT, design.state_of(setting)}
    return tuple(cell for cell in cells if cell.work in usable and cell.target in states)


def _effects(
    read: Material, cells: Sequence[Cell], comparisons: Sequence[Comparison], design: StatesDesign
) -> Effects:
    if not design.fraction:
        own = {name: design.state_of(name) for name in design.names}
        return Effects(
            {name: tuple(one for one in comparisons if one.other == state) for name, state in own.items()}, ()
        )
    asked, states = read.study.compare, {cell.id: cell.validity.state for cell in cells}
    plain = [cell for cell in read.plan.cells if cell.swept is None]
    return find_effects(design, plain, read.tables, states, asked.metrics, asked.margin, read.alpha)


def outcome_of_proof(compared: Sequence[Comparison], mechanisms: Sequence[Mechanism]) -> ProofOutcome:
    """A gain in a rate helps, whatever is beside it; a loss alone, in a rate or a percentile, harms."""
    usable = [one for one in compared if one.validity not in UNUSABLE]
    rates = [one for one in usable if _asked(one)]
    gained = {one.work for one in rates if one.verdict == "faster"}
    if not rates:
        return "unusable"
    if gained:
        own = [one for one in mechanisms if one.work in gained]
        told = {one.setting for one in own if one.moved != "not seen"}
        unseen = {one.setting for one in own} - told
        may = unseen or not own or any(one.moved in ("as meant", "open") for one in own)
        return "helps" if may else "not_by_mechanism"
    if any(one.verdict == "slower" for one in usable):
        return "harms"
    return "nothing" if all(one.verdict == "same" for one in rates) else "undecided"


def _asked(one: Comparison) -> bool:
    return weight_of(one.metric) == PRIMARY_WEIGHT


def _mechanisms(
    result: Result,
    read: Material,
    cells: Sequence[Cell],
    design: StatesDesign,
    asked: Sequence[tuple[str, str, str]],
) -> Iterator[Mechanism]:
    works: dict[str, dict[str, Cell]] = {}
    for cell in cells:
        works.setdefault(cell.work, {})[cell.target] = cell
    whole = [own for own in works.values() if own.keys() >= design.levels.keys()]
    if not asked:
        return
    seen = {cell.id: _figures(result, read, cell) for own in whole for cell in own.values()}
    found = []
    for own in whole:
        figures = {state: seen[cell.id] for state, cell in own.items()}
        for setting, figure, direction in asked:
            ratio = contrast_of_figures(design, setting, figures, figure)
            found.append((setting, _concerned(own, design, setting), figure, direction, ratio))
    levels = iter(holm_levels([one[-1].p_value() for one in found if one[-1]], None, read.alpha))
    for setting, concerned, figure, direction, ratio in found:
        ids = tuple(cell.id for cell in concerned)
        plain = Mechanism(setting, concerned[0].work, figure, direction, "not seen", cells=ids)
        unusable = {cell.validity.state for cell in concerned} & {*UNUSABLE}
        level = next(levels) if ratio is not None else 0.0
        margin = read.study.compare.margin
        yield plain if ratio is None or unusable else moved_figure(plain, ratio, level, margin)


def _concerned(own: Mapping[str, Cell], design: StatesDesign, setting: str) -> tuple[Cell, ...]:
    """The cells of a work that tell what a setting does."""
    if design.fraction:
        return tuple(own[state] for state in design.levels)
    return own[WITHOUT], own[design.state_of(setting) if design.kind == "one_by_one" else WITH]


def moved_figure(plain: Mechanism, ratio: Ratio | ZeroRatio, level: float, margin: float) -> Mechanism:
    """Whether it moved: by the interval of `ratio` at `level`."""
    estimate = ratio.estimate(level)
    low, high = estimate.low, estimate.high
    moved: Moved = "open"
    if low is not None and high is not None:
        up = plain.direction == "up"
        if low > 1 or high < 1:
            moved = "as meant" if (low > 1) == up else "the other way"
        elif high <= 1 + margin if up else low >= 1 / (1 + margin):
            moved = "not"
    return replace(plain, moved=moved, ratio=estimate.value, low=low, high=high, blocks=estimate.count)


def _figures(result: Result, read: Material, cell: Cell) -> dict[int, Mapping[str, Any]]:
    """By block what was seen of the trial that the cell's figures rest on."""
    facts, host = read.facts[cell.target], read.manifest.get("host", {})
    found: dict[int, Mapping[str, Any]] = {}
    for trial in read.good(cell.id):
        samples = Samples(trial, result.sample_lines(trial.trial))
        latency, asked = read.latency.get(trial.trial, ()), cell.shown.in_flight
        figures = figures_of(trial, latency, samples, asked, target=facts, host=host)
        found[trial.block] = {**columns(trial), **figures, **_metadata(figures, latency), **_waited(figures)}
    return found


def _waited(figures: Mapping[str, Any]) -> dict[str, float]:
    """What waited for room of each byte that was moved: a faster work has more of it in a second."""
    waited, moved = figures["client_blocked_per_s"], figures["bytes_per_s"]
    return {"client_blocked_per_s": waited / moved} if waited is not None and moved else {}


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
