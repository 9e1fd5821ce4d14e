"""The sweeps of a plan as grids with the rates that were measured, and the cells that they try next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from leadline.analysis.cells import CellTable
from leadline.analysis.knee.knee import next_cells
from leadline.analysis.knee.surface import Grid, Place, Rates
from leadline.plan.make import sweeps_of
from leadline.plan.model import Plan, PlannedCell
from leadline.study.work import Sweep


@dataclass(frozen=True)
class MeasuredSweep:
    """A sweep on a target: its cells by place, and the rates of those that were tried, by block.

    `failed` were tried and gave no rate.
    """

    target: str
    name: str
    asked: Sweep
    grid: Grid
    cells: Mapping[Place, PlannedCell]
    rates: Rates
    failed: frozenset[Place]


def measured_sweeps(
    plan: Plan, tables: Mapping[str, CellTable], tried: Mapping[str, int] | None = None
) -> tuple[MeasuredSweep, ...]:
    """Every sweep of the plan on each target; `tried` counts the trials that cells were given."""
    found = []
    for (target, name), own in sweeps_of(plan.cells).items():
        swept = [cell.swept for cell in own if cell.swept is not None]
        asked = swept[0].sweep
        cells = {one.place: cell for one, cell in zip(swept, own, strict=True)}
        rates = {place: _rates(tables.get(cell.id), asked.metric) for place, cell in cells.items()}
        failed = {place for place, cell in cells.items() if (tried or {}).get(cell.id) and not rates[place]}
        found.append(
            MeasuredSweep(
                target,
                name,
                asked,
                Grid(asked.levels, tuple(cells)),
                cells,
                {place: rate for place, rate in rates.items() if rate},
                frozenset(failed),
            )
        )
    return tuple(found)


def _rates(table: CellTable | None, metric: str) -> dict[int, float]:
    by_block = table.by_block if table else {}
    return {block: own.values[metric] for block, own in by_block.items() if own.values.get(metric, 0) > 0}


def next_of_sweeps(plan: Plan, tables: Mapping[str, CellTable]) -> Sequence[str]:
    """The ids of the cells of the next block of all sweeps; none when every knee is known."""
    tried: dict[str, int] = {}
    for trial in plan.trials:
        tried[trial.cell] = tried.get(trial.cell, 0) + 1
    chosen = []
    for one in measured_sweeps(plan, tables, tried):
        left = one.asked.trials - sum(tried.get(cell.id, 0) for cell in one.cells.values())
        chosen += [
            one.cells[place].id
            for place in next_cells(one.grid, one.rates, one.asked.share, one.failed, left)
        ]
    return chosen
