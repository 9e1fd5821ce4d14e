"""Works that differ in nothing but how many threads they have: what one gives, what many give together."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from leadline.analysis.cells import CellTable, compare_cells
from leadline.analysis.models.law import POINTS_MIN, LawOfBlocks, law_of_blocks
from leadline.analysis.statistics.means import Estimate
from leadline.plan.model import PlannedCell
from leadline.verdict.model import UNUSABLE, Cell, Quantity, State, worst

FACTOR = "numjobs"
_LEVEL = re.compile(rf"[_-]*{FACTOR}[0-9]+")  # as the works of a factor are named
_RATES = ("B/s", "1/s")


@dataclass(frozen=True)
class Scaled:
    """One work of one target at several numbers of threads, `cells` by that number in rising order.

    `times` is the rate of the largest number over that of the smallest, paired by block; None where no block
    has both. `law` is None where there are too few blocks or numbers.
    """

    name: str
    target: str
    metric: str
    cells: Mapping[int, Cell]
    times: Estimate | None
    law: LawOfBlocks | None

    @property
    def state(self) -> State:
        """The worst of its cells."""
        return worst(cell.validity.state for cell in self.cells.values())

    @property
    def usable(self) -> bool:
        """False where a figure may not be used."""
        return self.state not in UNUSABLE

    @property
    def ends(self) -> tuple[int, int]:
        """The least and the most threads."""
        return min(self.cells), max(self.cells)

    def rate(self, number: int) -> Quantity:
        """At so many threads."""
        return self.cells[number].metrics.get(self.metric) or Quantity(None, "", reason="not measured")

    @property
    def best(self) -> int:
        """The number of threads with the highest measured rate."""
        return max(self.cells, key=lambda number: self.rate(number).value or 0.0)


def find_scaled(
    planned: Sequence[PlannedCell], cells: Sequence[Cell], tables: Mapping[str, CellTable], alpha: float
) -> tuple[Scaled, ...]:
    """Every work that was measured with four numbers of threads or more."""
    groups: dict[tuple[str, str], list[Cell]] = {}
    for plan, cell in zip(planned, cells, strict=True):
        if FACTOR in plan.factors and plan.swept is None and _metric(cell):
            groups.setdefault((cell.target, _else(cell)), []).append(cell)
    found = (_scaled(target, own, tables, alpha) for (target, _), own in groups.items())
    return tuple(one for one in found if len(one.cells) >= POINTS_MIN)


def _else(cell: Cell) -> str:
    """All that its job says but the number of threads."""
    return json.dumps({name: value for name, value in cell.job.items() if name != FACTOR}, sort_keys=True)


def _metric(cell: Cell) -> str | None:
    """The rate that it is asked for."""
    for name in cell.shown.leading:
        found = cell.metrics.get(name)
        if found is not None and found.unit in _RATES:
            return name
    return None


def _scaled(target: str, own: Sequence[Cell], tables: Mapping[str, CellTable], alpha: float) -> Scaled:
    by_number = {int(cell.job[FACTOR]): cell for cell in own}
    cells = {number: by_number[number] for number in sorted(by_number)}
    metric = _metric(own[0]) or ""
    held = {number: tables[cell.id] for number, cell in cells.items() if cell.id in tables}
    name = _LEVEL.sub("", own[0].work) or own[0].work
    ratio = None
    if {min(cells), max(cells)} <= held.keys():
        ratio = compare_cells(held[min(cells)], held[max(cells)], metric)
    blocks = _blocks(held, metric) if len(held) == len(cells) else []
    law = law_of_blocks(blocks, alpha) if len(cells) >= POINTS_MIN and blocks else None
    return Scaled(name, target, metric, cells, ratio.estimate(alpha) if ratio else None, law)


def _blocks(held: Mapping[int, CellTable], metric: str) -> list[dict[float, float]]:
    """The rate by threads of each block."""
    numbers = sorted({block for table in held.values() for block in table.by_block})
    return [
        {
            float(threads): table.by_block[block].values[metric]
            for threads, table in held.items()
            if block in table.by_block and metric in table.by_block[block].values
        }
        for block in numbers
    ]
