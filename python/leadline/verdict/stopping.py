"""Which works need more blocks: what `--until` and `--budget` ask between blocks.

A run ends when its intervals are narrow, whatever they say; it never ends because a difference was found.
So looking often does not find more differences than there are: what remains is that a run may end while
its scatter happens to look small. For that there is no look before FIRST_LOOK blocks, and comparisons of
such a run are decided at a smaller level. Source: Chow and Robbins, "On the asymptotic theory of fixed-width
sequential confidence intervals", Annals of Mathematical Statistics 36 (1965); for small numbers by
simulation, in `bench/coverage.md`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from leadline.analysis.cells import CellTable, cell_metrics
from leadline.analysis.metrics import primary_metric
from leadline.analysis.multiplicity import ALPHA_AFTER_LOOKS
from leadline.plan import PlannedCell
from leadline.verdict.comparisons import decide, pair_targets

FIRST_LOOK = 6
MOST_BLOCKS = 100


@dataclass(frozen=True)
class WorkState:
    """A work so far: blocks that all its cells completed, blocks that were tried, and the half-width
    of the widest interval of what it is asked for, as a logarithm; None where there is no interval."""

    work: str
    completed: int
    tried: int
    half_width: float | None

    @property
    def failing(self) -> bool:
        """Two blocks without a figure: more of them would not help."""
        return self.tried - self.completed >= 2 or (self.half_width is None and self.completed >= 2)

    @property
    def width(self) -> float:
        """The half-width to narrow: without end before there is an interval."""
        return math.inf if self.half_width is None else self.half_width


def work_states(
    cells: Sequence[PlannedCell], tables: Mapping[str, CellTable], base: str, tried: Mapping[str, int]
) -> tuple[WorkState, ...]:
    """Every work of a plan. `tried` is the number of blocks each work was given."""
    compared = len({cell.target for cell in cells}) > 1
    widths = _ratio_widths(cells, tables, base) if compared else {}
    states = []
    for work in dict.fromkeys(cell.work for cell in cells):
        own = [cell for cell in cells if cell.work == work]
        blocks = [set(tables[cell.id].by_block) if cell.id in tables else set() for cell in own]
        width = widths.get(work) if compared else _mean_width(own[0], tables)
        states.append(WorkState(work, len(set.intersection(*blocks)), tried[work], width))
    return tuple(states)


def _ratio_widths(
    cells: Sequence[PlannedCell], tables: Mapping[str, CellTable], base: str
) -> dict[str, float]:
    """By work; at the confidence at which the comparisons would be decided now."""
    primary = {cell.work: primary_metric(cell.job.as_json()) for cell in cells}
    pairs = pair_targets(cells, tables, {cell.id: "VALID" for cell in cells}, base, ())
    widths: dict[str, float] = {}
    for found in decide(pairs, 0.05, ALPHA_AFTER_LOOKS):
        if found.metric == primary[found.work] and found.low and found.high:
            half = math.log(found.high / found.low) / 2
            widths[found.work] = max(half, widths.get(found.work, 0.0))
    return widths


def _mean_width(cell: PlannedCell, tables: Mapping[str, CellTable]) -> float | None:
    found = (
        cell_metrics(tables[cell.id]).get(primary_metric(cell.job.as_json())) if cell.id in tables else None
    )
    estimate = found.estimate if found else None
    if estimate is None or not estimate.low or not estimate.high:
        return None
    return math.log(estimate.high / estimate.low) / 2


def next_works(states: Sequence[WorkState], until: float | None, *, widest_only: bool) -> tuple[str, ...]:
    """The works to run once more, on all targets; none when it is done.

    `until` is the wanted half-width (0.03: within 3 %); without it every work wants to be narrower.
    `widest_only` is for a budget: one work at a time, where time narrows the most.
    """
    alive = [state for state in states if not state.failing and state.tried < MOST_BLOCKS]
    early = tuple(state.work for state in alive if state.tried < FIRST_LOOK)
    if early and until is not None:
        return early
    target = math.log1p(until) if until is not None else 0.0
    wide = [state for state in alive if state.width > target]
    if widest_only:
        wide = sorted(wide, key=lambda state: -state.width)[:1]
    return tuple(state.work for state in wide)
