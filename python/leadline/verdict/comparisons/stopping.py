"""Which works need more blocks: what `--until` and `--budget` ask between blocks, and a pilot for what
follows it.

A run ends when its intervals are narrow, whatever they say; it never ends because a difference was found. So
looking often does not find more differences than there are: what remains is that a run may end while its
scatter happens to look small. For that there is no look before FIRST_LOOK blocks, and comparisons of such a
run, as well as the intervals of its figures, are drawn at a smaller level. Source: Chow and Robbins, "On the
asymptotic theory of fixed-width sequential confidence intervals", Annals of Math. Statistics 36 (1965); for
small numbers by simulation, in `bench/coverage.md`.

The first blocks are a pilot that counts: only their scatter is looked at, around their own mean, never how
far apart two targets are. So what is found later is hardly more often wrong. Source: Wittes and Brittain,
"The role of internal pilot studies in increasing the efficiency of clinical trials", Statistics in Medicine
9 (1990); what it costs here by simulation, in `docs/statistics.md`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from leadline.analysis.cells import CellTable, cell_metrics
from leadline.analysis.statistics.intervals import ALPHA, ALPHA_AFTER_LOOKS
from leadline.analysis.statistics.moderated import block_variation, blocks_for
from leadline.plan.model import Plan, PlannedCell
from leadline.verdict.comparisons.comparisons import (
    PRIMARY_WEIGHT,
    asked_metrics,
    pair_beside,
    pair_targets,
    wanted_metrics,
    weight_of,
)
from leadline.verdict.comparisons.deciding import Pair, decide
from leadline.verdict.model import Comparison, State


@dataclass(frozen=True)
class PlannedLevel:
    """The level of what works are asked for where half of the comparisons differ, and how many there are:
    `comparisons` of all metrics, `ratios` of what is asked for, of each of the other targets.
    """

    level: float
    comparisons: int
    ratios: int


def planned_level(plan: Plan, metrics: Sequence[str]) -> PlannedLevel:
    """At which level a plan's comparisons will be decided, before anything is measured."""
    others = max(len(plan.targets) - 1, 1)
    cells = [cell for cell in plan.cells if cell.target == plan.targets[0].name]
    weights = [weight_of(metric) for cell in cells for metric in metrics or wanted_metrics(cell)]
    whole, count = sum(weights) * others, len(weights) * others
    level = min(ALPHA, max(weights, default=1.0) * max(count / 2, 1.0) * ALPHA / max(whole, 1.0))
    return PlannedLevel(level, count, weights.count(max(weights, default=1.0)))


def enough_blocks(
    plan: Plan, tables: Mapping[str, CellTable], base: str, metrics: Sequence[str], tells: float
) -> int | None:
    """How many blocks tell a difference of `tells` (0.2: 20 %) in half of what is asked for.

    Only the planned blocks are looked at, so that the answer stays when others have been added. None where
    nothing is compared, or more than MOST_BLOCKS would be needed.
    """
    first = {name: _first_blocks(table, plan.blocks) for name, table in tables.items()}
    states: dict[str, State] = {cell.id: "VALID" for cell in plan.cells}
    pairs = (
        *pair_targets(plan.cells, first, states, base, metrics),
        *pair_beside(plan.cells, first, states, metrics),
    )
    asked = [pair.ratio for pair in pairs if pair.ratio and (metrics or pair.weight == PRIMARY_WEIGHT)]
    variations = sorted(v for ratio in asked if (v := block_variation(ratio.logarithms)) is not None)
    if not variations:
        return None
    level = planned_level(plan, metrics).level
    return blocks_for(tells, variations[(len(variations) - 1) // 2], level, MOST_BLOCKS)


def _first_blocks(table: CellTable, blocks: int) -> CellTable:
    return replace(table, by_block={at: found for at, found in table.by_block.items() if at <= blocks})


FIRST_LOOK = 6
MOST_BLOCKS = 100


@dataclass(frozen=True)
class WorkState:
    """A work so far: blocks that all its cells completed, blocks that were tried, and the half-width
    of the widest interval of what it is asked for, as a logarithm; None where there is no interval.

    `beside` are works that must run in the same block, since they are compared with it block by block.
    """

    work: str
    completed: int
    tried: int
    half_width: float | None
    beside: tuple[str, ...] = ()

    @property
    def failing(self) -> bool:
        """Two blocks without a figure: more of them would not help."""
        return self.tried - self.completed >= 2 or (self.half_width is None and self.completed >= 2)

    @property
    def width(self) -> float:
        """The half-width to narrow: without end before there is an interval."""
        return math.inf if self.half_width is None else self.half_width


def work_states(
    cells: Sequence[PlannedCell],
    tables: Mapping[str, CellTable],
    base: str,
    tried: Mapping[str, int],
    named: Sequence[str] = (),
) -> tuple[WorkState, ...]:
    """Every work of a plan. `tried` is the number of blocks each work was given, `named` the metrics that
    the study compares (none: those that each work is asked for).

    Where a work is compared, with another target or with itself beside others, its ratios are narrowed;
    elsewhere its means.
    """
    states: dict[str, State] = {cell.id: "VALID" for cell in cells}
    works = {cell.id: cell.work for cell in cells}
    asked = {cell.work: asked_metrics(cell, named) for cell in cells}
    beside = pair_beside(cells, tables, states, named)
    together: dict[str, dict[str, None]] = {}
    for pair in beside:
        together.setdefault(works[pair.base], {})[works[pair.other]] = None
        together.setdefault(works[pair.other], {})[works[pair.base]] = None
    several = len({cell.target for cell in cells}) > 1
    widths: dict[str, float] = {}
    for found, half in _half_widths(pair_targets(cells, tables, states, base, named), asked):
        widths[found.work] = max(half, widths.get(found.work, 0.0))
    for found, half in _half_widths(beside, asked):
        for work in (works[found.base], works[found.other]):
            widths[work] = max(half, widths.get(work, 0.0))
    states_of_works = []
    for work, metrics in asked.items():
        own = [cell for cell in cells if cell.work == work]
        blocks = [set(tables[cell.id].by_block) if cell.id in tables else set() for cell in own]
        compared = several or work in together
        width = widths.get(work) if compared else _mean_width(tables.get(own[0].id), metrics)
        others = tuple(together.get(work, ()))
        states_of_works.append(WorkState(work, len(set.intersection(*blocks)), tried[work], width, others))
    return tuple(states_of_works)


def _half_widths(
    pairs: Sequence[Pair], asked: Mapping[str, Sequence[str]]
) -> Iterator[tuple[Comparison, float]]:
    """What works are asked for, at the confidence at which the comparisons would be decided now."""
    for found in decide(pairs, 0.05, ALPHA_AFTER_LOOKS):
        if found.metric in asked[found.work] and found.low and found.high:
            yield found, math.log(found.high / found.low) / 2


def _mean_width(table: CellTable | None, metrics: Sequence[str]) -> float | None:
    found = cell_metrics(table, ALPHA_AFTER_LOOKS) if table is not None else {}
    estimates = [found[metric].estimate for metric in metrics if metric in found]
    return max((math.log(e.high / e.low) / 2 for e in estimates if e and e.low and e.high), default=None)


def next_works(states: Sequence[WorkState], until: float | None, *, widest_only: bool) -> tuple[str, ...]:
    """The works to run once more, on all targets; none when it is done.

    `until` is the wanted half-width (0.03: within 3 %); without it every work wants to be narrower.
    `widest_only` is for a budget: one work at a time, where time narrows the most. Before FIRST_LOOK blocks
    it is the work with the fewest: of so few the narrowest is often one that only happens to look so, and
    would be left at that.
    """
    alive = [state for state in states if not state.failing and state.tried < MOST_BLOCKS]
    early = [state for state in alive if state.tried < FIRST_LOOK]
    if early:
        if widest_only:
            early = sorted(early, key=lambda state: (state.tried, -state.width))[:1]
        return _with_beside(early, alive)
    target = math.log1p(until) if until is not None else 0.0
    wide = [state for state in alive if state.width > target]
    if widest_only:
        wide = sorted(wide, key=lambda state: -state.width)[:1]
    return _with_beside(wide, alive)


def _with_beside(chosen: Sequence[WorkState], alive: Sequence[WorkState]) -> tuple[str, ...]:
    """Works in their order, with those that they are compared with block by block."""
    wanted = {work for state in chosen for work in (state.work, *state.beside)}
    return tuple(state.work for state in alive if state.work in wanted)
