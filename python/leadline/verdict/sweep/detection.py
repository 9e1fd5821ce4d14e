"""The sweeps of a result with their knees, from the cells whose figures can be used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from leadline.analysis.knee.knee import Knee, find_knee
from leadline.analysis.knee.surface import Place
from leadline.analysis.knee.sweeps import MeasuredSweep, measured_sweeps
from leadline.analysis.statistics.means import typical
from leadline.plan.model import PlannedCell
from leadline.study.kinds import planned
from leadline.units import format_size
from leadline.verdict.inputs import Material
from leadline.verdict.kinds import metric_kind
from leadline.verdict.model import UNUSABLE, Cell
from leadline.verdict.sweep.parts import PlateauParts, parts_of_plateau

_ON = 0.5  # the probability from which on a cell is said to be on the plateau


@dataclass(frozen=True)
class SweepFound:
    """A sweep on a target. `knee` is None where no cell has a figure to use.

    `trials` counts those that were run, `unusable` the cells whose figures are INVALID; `parts` say what the
    plateau is made of; `tried` has the cells of the grid with a trial, as judged, by place.
    """

    measured: MeasuredSweep
    knee: Knee | None
    trials: int
    tried: Mapping[Place, Cell]
    unusable: frozenset[Place]
    parts: PlateauParts

    @property
    def unit(self) -> str:
        """Of its rate."""
        return metric_kind(self.measured.asked.metric).unit

    @property
    def sizes(self) -> tuple[bool, ...]:
        """Which of its options are sizes, in bytes."""
        job = next(iter(self.measured.cells.values())).job
        return tuple(option in planned(job).byte_fields for option in self.measured.asked.over)

    def level(self, option: int, at: int) -> str:
        """A level of an option as it reads."""
        value = self.measured.grid.levels[option][at]
        return format_size(value) if self.sizes[option] else f"{value:g}"

    def levels(self, place: Place) -> str:
        """`32 MiB x 4`."""
        return " x ".join(self.level(option, at) for option, at in enumerate(place))

    def words(self, place: Place) -> str:
        """`buffer 32 MiB x in_flight 4 (128 MiB)`."""
        own = " x ".join(
            f"{option} {self.level(number, at)}"
            for number, (option, at) in enumerate(zip(self.measured.asked.over, place, strict=True))
        )
        return own if len(place) == 1 else f"{own} ({self.amount(self.measured.grid.amount(place))})"

    def amount(self, product: float) -> str:
        """The product of levels."""
        return format_size(product) if any(self.sizes) else f"{product:,.0f}"

    def rate_of(self, place: Place) -> float | None:
        """What was measured in a cell, the mean of its blocks."""
        return typical(list(self.measured.rates.get(place, {}).values()))

    @property
    def largest(self) -> Place:
        """The end of its grid."""
        return max(self.measured.cells, key=lambda cell: (self.measured.grid.amount(cell), cell))

    def cell_ids(self, places: Sequence[Place]) -> tuple[str, ...]:
        """The ids of cells that were tried, and whose figures can be used."""
        return tuple(
            self.tried[place].id for place in places if place in self.tried and place not in self.unusable
        )

    @property
    def plateau(self) -> tuple[Place, ...]:
        """Tried cells that are on the plateau; where none surely is, the best of them."""
        if self.knee is None:
            return ()
        knee, usable = self.knee, sorted(set(self.measured.rates) - self.unusable)
        on = tuple(place for place in usable if knee.reached.get(place, 0) >= _ON)
        return on or tuple(sorted(usable, key=lambda place: knee.rates[place])[-1:])


def find_sweeps(read: Material, cells: Sequence[Cell]) -> tuple[SweepFound, ...]:
    """Every sweep of a result; `cells` are those that were tried, judged."""
    by_id = {cell.id: cell for cell in cells}
    return tuple(_found(one, by_id, read) for one in measured_sweeps(read.whole, read.tables))


def _found(measured: MeasuredSweep, cells: Mapping[str, Cell], read: Material) -> SweepFound:
    tried = {place: cells[cell.id] for place, cell in measured.cells.items() if cell.id in cells}
    unusable = frozenset(place for place, cell in tried.items() if cell.validity.state in UNUSABLE)
    rates = {place: own for place, own in measured.rates.items() if place not in unusable}
    knee = find_knee(measured.grid, rates, measured.asked.share)
    found = SweepFound(
        measured,
        knee,
        sum(len(cell.trials) for cell in tried.values()),
        tried,
        unusable,
        PlateauParts(),
    )
    if knee is None:
        return found
    on = found.plateau
    planned_cell: PlannedCell = measured.cells[on[0]]
    trials = [trial for place in on for trial in read.good(measured.cells[place].id)]
    parts = parts_of_plateau(trials, read.samples, read.facts[planned_cell.target])
    return replace(found, parts=parts)
