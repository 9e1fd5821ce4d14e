"""Effects of settings that were measured several at a time, from the cells of all states of their design.

A setting's effect in a work is a ratio by block, as of two cells (`analysis.statistics.means`), and is
decided as any comparison is. Two settings that act on each other are looked for in rates; that explores.
Figures that are zero in some block have no ratio, and are compared by their differences.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from leadline.analysis.cells import CellTable
from leadline.analysis.statistics.means import (
    ALPHA,
    Estimate,
    FactorPair,
    Levels,
    Ratio,
    contrast,
    is_clear,
    pairs_told,
    with_both_or_none,
    with_factor,
)
from leadline.errors import ResultError
from leadline.plan.model import PlannedCell
from leadline.verdict.comparisons.comparisons import PRIMARY_WEIGHT, wanted_metrics, weight_of
from leadline.verdict.comparisons.deciding import Pair, decide
from leadline.verdict.kinds import metric_kind
from leadline.verdict.model import UNUSABLE, Comparison, State, worst

if TYPE_CHECKING:
    from leadline.analysis.statistics.intervals import MeanOfBlocks


@dataclass(frozen=True)
class ZeroRatio:
    """As `Ratio`, of two plain means: 1 plus the mean difference over the base's mean, which may be zero."""

    base: float
    difference: float
    count: int
    series: MeanOfBlocks

    def estimate(self, alpha: float = ALPHA) -> Estimate:
        """The ratio with its interval; from nothing to something it is infinite."""
        half = float(self.series.half_width(alpha)[0])
        value, low, high = (self._times(self.difference + one) for one in (0.0, -half, half))
        return Estimate(value, low, high, self.count, 1 - alpha)

    def p_value(self) -> float:
        """The level at which the interval just touches no difference."""
        import numpy as np

        return float(self.series.beyond(np.array([abs(self.difference)]))[0])

    def _times(self, difference: float) -> float:
        if self.base:
            return max(0.0, 1 + difference / self.base)
        return math.inf if difference > 0 else 0.0


def zero_ratio(base: Sequence[float], other: Sequence[float]) -> ZeroRatio | None:
    """None below two blocks, where all is zero, and where something is less than zero: that is no amount."""
    if len(base) != len(other) or len(base) < 2 or min(*base, *other) < 0 or not any((*base, *other)):
        return None
    from leadline.analysis.statistics.intervals import mean_of_blocks

    differences = [b - a for a, b in zip(base, other, strict=True)]
    count = len(base)
    return ZeroRatio(
        math.fsum(base) / count, math.fsum(differences) / count, count, mean_of_blocks([differences])
    )


WITHOUT, WITH = "without", "with"


@dataclass(frozen=True)
class StatesDesign:
    """The states that were measured, with what is changed in each; `kind` is as it was asked."""

    kind: str
    levels: Levels
    names: tuple[str, ...]

    @property
    def fraction(self) -> bool:
        """Whether each effect is told from all states together."""
        return self.kind == "factorial"

    def state_of(self, setting: str) -> str:
        """Of settings that were measured one by one, the state in which this one is changed alone."""
        return next(state for state, changed in self.levels.items() if changed == {setting})

    @property
    def ordered(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """Each state with what is changed there, in the order of the settings."""
        return tuple(
            (state, tuple(name for name in self.names if name in changed))
            for state, changed in self.levels.items()
        )

    @property
    def told(self) -> tuple[tuple[FactorPair, ...], ...]:
        """Pairs of settings, in groups that cannot be told apart."""
        return pairs_told(self.levels, self.names) if self.fraction else ()


@dataclass(frozen=True)
class BestWay:
    """Of two settings `on` are those that are changed where the rate is best: `times` that of neither."""

    pair: FactorPair
    on: tuple[str, ...]
    times: float


@dataclass(frozen=True)
class Interaction:
    """A pair of settings, or a `group` that cannot be told apart: `compared` is what two do together over
    what each does alone, multiplied. Where they were found to act on each other `best` has each pair.
    """

    group: tuple[FactorPair, ...]
    compared: Comparison
    best: tuple[BestWay, ...]


@dataclass(frozen=True)
class Effects:
    """What each setting does on average over the states of the others, by its name, and what pairs do."""

    of: Mapping[str, tuple[Comparison, ...]]
    interactions: tuple[Interaction, ...]


def stored_design(manifest: Mapping[str, Any]) -> StatesDesign | None:
    """None of a result that proves no settings. Raises ResultError where it is damaged."""
    proof = manifest.get("proof")
    if proof is None:
        return None
    try:
        names = tuple(str(one["setting"]) for one in proof["settings"])
        stored = proof.get("design") or {"kind": "together", "states": {WITHOUT: [], WITH: names}}
        levels = {str(state): frozenset(map(str, on)) for state, on in stored["states"].items()}
        found = StatesDesign(str(stored["kind"]), levels, names)
        if found.fraction and not is_clear(levels, names):
            raise ValueError("its states do not distinguish its settings")
        if found.kind == "one_by_one":
            [found.state_of(name) for name in names]
    except (KeyError, TypeError, ValueError, AttributeError, StopIteration) as error:
        raise ResultError(f"the stored settings of the result are damaged: {error}", "restore it") from None
    return found


def find_effects(
    design: StatesDesign,
    cells: Sequence[PlannedCell],
    tables: Mapping[str, CellTable],
    states: Mapping[str, State],
    metrics: Sequence[str],
    margin: float,
    alpha: float,
) -> Effects:
    """Rates of all settings share the chance to err (Holm); percentiles and pairs of settings explore."""
    works = [_Work(design.levels, own, tables, states) for own in _by_work(cells)]
    asked = [(work, metric) for work in works for metric in metrics or wanted_metrics(work.cells[WITHOUT])]
    single = [
        (name, work.pair(metric, name, with_factor(design.levels, name), asked=True))
        for work, metric in asked
        for name in design.names
    ]
    paired = [
        (
            group,
            work,
            work.pair(metric, " or ".join(map(pair_words, group)), _same(design, group), asked=False),
        )
        for work, metric in asked
        if weight_of(metric) == PRIMARY_WEIGHT
        for group in design.told
    ]
    pairs = [pair for _, pair in single] + [pair for _, _, pair in paired]
    usable = [at for at, pair in enumerate(pairs) if pair.ratio is not None or pair.state in UNUSABLE]
    decided = dict(zip(usable, decide([pairs[at] for at in usable], margin, alpha), strict=True))
    own: dict[str, list[Comparison]] = {name: [] for name in design.names}
    for at, (name, _) in enumerate(single):
        if at in decided:
            own[name].append(decided[at])
    found = tuple(
        _interaction(group, work, decided[at])
        for at, (group, work, _) in enumerate(paired, start=len(single))
        if at in decided
    )
    return Effects({name: tuple(compared) for name, compared in own.items()}, found)


def pair_words(pair: FactorPair) -> str:
    """As a design is spoken of."""
    return f"{pair[0]} x {pair[1]}"


def _same(design: StatesDesign, group: Sequence[FactorPair]) -> frozenset[str]:
    return with_both_or_none(design.levels, group[0])


def _by_work(cells: Sequence[PlannedCell]) -> Iterator[Mapping[str, PlannedCell]]:
    """The cells of each work that has one in every state, by state."""
    works: dict[str, dict[str, PlannedCell]] = {}
    for cell in cells:
        works.setdefault(cell.work, {})[cell.target] = cell
    states = {cell.target for cell in cells}
    return (own for own in works.values() if own.keys() == states)


class _Work:
    """One work in all states."""

    def __init__(
        self,
        levels: Levels,
        cells: Mapping[str, PlannedCell],
        tables: Mapping[str, CellTable],
        states: Mapping[str, State],
    ) -> None:
        self.levels, self.cells = levels, cells
        self.name = cells[WITHOUT].work
        self._tables = {state: tables.get(cell.id) for state, cell in cells.items()}
        self._state = worst([states[cell.id] for cell in cells.values()])

    def values(self, metric: str) -> dict[str, dict[int, float]]:
        """By state and block."""
        return {
            state: {
                block: measured.values[metric]
                for block, measured in (table.by_block if table else {}).items()
                if metric in measured.values
            }
            for state, table in self._tables.items()
        }

    def pair(self, metric: str, name: str, plus: frozenset[str], *, asked: bool) -> Pair:
        """The states in `plus` against the others."""
        weight = weight_of(metric)
        return Pair(
            *(self.name, f"without {name}", f"with {name}", metric, contrast(self.values(metric), plus)),
            *(self._state, weight if asked else 1.0),
            asked=asked and weight == PRIMARY_WEIGHT,
        )

    def best_way(self, pair: FactorPair, metric: str) -> BestWay:
        """The best of the four ways to have two settings."""
        values = self.values(metric)
        ways: dict[tuple[str, ...], float] = {}
        for on in ((), (pair[0],), (pair[1],), pair):
            own = {s: values[s] for s, changed in self.levels.items() if changed & {*pair} == {*on}}
            ways[on] = _typical(own)
        sign = 1 if metric_kind(metric).higher_is_better else -1
        best = max(ways, key=lambda on: sign * ways[on])
        return BestWay(pair, best, ways[best] / ways[()])


def _typical(values: Mapping[str, Mapping[int, float]]) -> float:
    from statistics import geometric_mean

    blocks = set.intersection(*(set(found) for found in values.values()))
    return geometric_mean([found[block] for found in values.values() for block in blocks])


def _interaction(group: tuple[FactorPair, ...], work: _Work, one: Comparison) -> Interaction:
    """The product of levels has half of it: both together over each alone is its square."""
    ratio, low, high = (None if value is None else value * value for value in (one.ratio, one.low, one.high))
    found = replace(one, ratio=ratio, low=low, high=high, more=None)
    seen = one.verdict in ("faster", "slower") and one.validity not in UNUSABLE
    best = tuple(work.best_way(pair, one.metric) for pair in group) if seen else ()
    return Interaction(group, found, best)


def contrast_of_figures(
    design: StatesDesign, setting: str, seen: Mapping[str, Mapping[int, Mapping[str, Any]]], figure: str
) -> Ratio | ZeroRatio | None:
    """A figure's ratio with a setting and without; `seen` is by state and block. None where it lacks, and of
    a fraction of states where it is zero in some: effects of many states are of logarithms alone."""
    values = {
        state: {
            block: float(figures[figure])
            for block, figures in blocks.items()
            if isinstance(figures.get(figure), int | float)
        }
        for state, blocks in seen.items()
    }
    if design.fraction:
        return contrast(values, with_factor(design.levels, setting))
    other = design.state_of(setting) if design.kind == "one_by_one" else WITH
    sides = {state: values.get(state, {}) for state in (WITHOUT, other)}
    shared = sorted(sides[WITHOUT].keys() & sides[other].keys())
    base, with_it = ([sides[state][block] for block in shared] for state in (WITHOUT, other))
    return contrast(sides, {other}) or zero_ratio(base, with_it)
