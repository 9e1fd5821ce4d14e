"""One table of all targets and all works: rates, ratios to the first target, and what each costs the client.

Used where a study asks for it (`compare.table`), as `reach` does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from leadline.analysis.cells import CellTable, compare_cells
from leadline.study.left_out import LeftOut
from leadline.verdict.model import (
    UNUSABLE,
    Cell,
    Comparison,
    FigureRow,
    FigureTable,
    Quantity,
    State,
    TargetView,
    part_label,
)
from leadline.verdict.sections.section import Section

EMULATED = "EMULATED"
_TIMES = "\u00d7"  # the unit of a ratio


@dataclass(frozen=True)
class WayColumn:
    """A work, or one operation of a metadata work, and the metric that it is asked for."""

    heading: str
    work: str
    metric: str


@dataclass(frozen=True)
class MeasuredWay:
    """A target with its cells by work. `reasons` say what of it was left out: by work, "" for all of it.

    `emulated`: measured in an emulated guest, and so never against what the host measured.
    """

    name: str
    access: str
    cells: Mapping[str, Cell]
    reasons: Mapping[str, str]
    emulated: bool = False

    @property
    def heading(self) -> str:
        """Its name, never without the word where it is emulated."""
        return f"{self.name} ({EMULATED})" if self.emulated else self.name

    def reason(self, work: str) -> str:
        """Why there is no figure of a work."""
        return self.reasons.get("") or self.reasons.get(work) or "not measured"

    def quantity(self, column: WayColumn, metric: str) -> Quantity:
        """A metric of the column's cell, or the reason why there is none."""
        cell = self.cells.get(column.work)
        if cell is None:
            return Quantity(None, "", reason=f"{self.name}: {self.reason(column.work)}")
        found = cell.metrics.get(metric)
        if found is None or found.value is None:
            why = (found.reason if found else None) or _evidence(cell) or "not measured"
            return Quantity(None, found.unit if found else "", reason=f"{self.name}: {why}")
        return found

    def state(self, column: WayColumn) -> State:
        """Of the column's cell."""
        cell = self.cells.get(column.work)
        if cell is None:
            return "NOT_RUN" if "" in self.reasons else "VALID"
        return cell.validity.state

    def usable(self, column: WayColumn) -> bool:
        """True for a figure that may be held against others."""
        found = self.quantity(column, column.metric).value
        return not self.emulated and found is not None and self.state(column) not in UNUSABLE


def _evidence(cell: Cell) -> str | None:
    return cell.validity.codes[0].evidence if cell.validity.state in UNUSABLE else None


def ways_of(
    targets: Sequence[TargetView],
    cells: Sequence[Cell],
    left_out: Sequence[LeftOut],
    guest: tuple[Sequence[TargetView], Sequence[Cell]] = ((), ()),
) -> tuple[MeasuredWay, ...]:
    """The measured targets in order, those of the guest, then those that are not there at all."""
    reasons: dict[str, dict[str, str]] = {}
    for one in left_out:
        reasons.setdefault(one.target, {})[one.work or ""] = one.reason
    measured = [_way(view, cells, reasons) for view in targets]
    in_guest = [_way(view, guest[1], {}, emulated=True) for view in guest[0]]
    known = {way.name for way in (*measured, *in_guest)}
    absent = [MeasuredWay(name, "", {}, why) for name, why in reasons.items() if name not in known]
    return (*measured, *in_guest, *absent)


def _way(
    view: TargetView,
    cells: Sequence[Cell],
    reasons: Mapping[str, Mapping[str, str]],
    *,
    emulated: bool = False,
) -> MeasuredWay:
    own = {cell.work: cell for cell in cells if cell.target == view.name}
    return MeasuredWay(view.name, view.access, own, reasons.get(view.name, {}), emulated)


def columns_of(ways: Sequence[MeasuredWay]) -> tuple[WayColumn, ...]:
    """What is asked of each work: a rate, of metadata each operation's, of first bytes the typical wait."""
    found: dict[str, WayColumn] = {}
    for way in ways:
        for work, cell in way.cells.items():
            for part, metric in cell.shown.asked:
                heading = part_label(work, part) if part else work
                found.setdefault(heading, WayColumn(heading, work, metric))
    return tuple(found.values())


def ways_table(
    ways: Sequence[MeasuredWay],
    columns: Sequence[WayColumn],
    tables: Mapping[str, CellTable],
    alpha: float,
    comparisons: Sequence[Comparison] = (),
) -> FigureTable | None:
    """The table, figure by figure, a row for each way; None where nothing was measured. Ratios that were
    compared have the interval of their comparison.
    """
    if not columns:
        return None
    base = ways[0]
    compared = {(one.work, one.metric, one.base, one.other): one for one in comparisons}
    groups: tuple[tuple[str, Callable[[MeasuredWay, WayColumn], Quantity]], ...] = (
        ("measured", lambda way, column: way.quantity(column, column.metric)),
        (f"against {base.name}", lambda way, column: _ratio(base, way, column, tables, alpha, compared)),
        ("client CPU per operation", lambda way, column: _cost(way, column, "client_cpu_per_operation")),
        ("wire per byte or operation", _wire),
    )
    rows = [
        FigureRow(
            (name, way.heading),
            tuple(figure(way, column) for column in columns),
            _row_state([way.state(column) for column in columns]),
            tuple(way.state(column) for column in columns),
        )
        for name, figure in groups
        for way in ways
    ]
    return FigureTable(
        "ways",
        "Every way, every work",
        ("Figure", "Way"),
        tuple(column.heading for column in columns),
        tuple(rows),
        f"Ratios are of the figure above, paired by block; their intervals are those of the comparisons."
        f" {_notes(ways)}Client CPU is that of engine and client"
        " daemon; what the kernel's own threads or a gateway use is not in it. A metadata work has one cost:"
        " the mean of its operations.",
    )


def ways_section(tables: Sequence[FigureTable]) -> Section | None:
    """The tables of ways as a section; None without any."""
    if not tables:
        return None
    return Section(
        "ways", tables[0].title, tuple(tables), "Ways", json={"ways": tuple(tables)}, leads=True, in_csv=False
    )


def _notes(ways: Sequence[MeasuredWay]) -> str:
    """What kinds of work have to say of their columns."""
    notes = dict.fromkeys(cell.shown.note for way in ways for cell in way.cells.values())
    return "".join(f"{note} " for note in notes if note)


def _row_state(states: Sequence[State]) -> State:
    """Never INVALID as a whole: each figure has its own state."""
    return "NOT_RUN" if states and all(state == "NOT_RUN" for state in states) else "VALID"


def _ratio(
    base: MeasuredWay,
    way: MeasuredWay,
    column: WayColumn,
    tables: Mapping[str, CellTable],
    alpha: float,
    compared: Mapping[tuple[str, str, str, str], Comparison],
) -> Quantity:
    if way.emulated:
        return Quantity(
            None, _TIMES, reason=f"{way.name}: {EMULATED}, so never against what this host measured"
        )
    found = [one.cells.get(column.work) for one in (base, way)]
    if way is base and base.usable(column):
        return Quantity(1.0, _TIMES)
    if not base.usable(column) or not way.usable(column):
        lost = way if base.usable(column) else base
        return Quantity(None, _TIMES, reason=lost.quantity(column, column.metric).reason or "INVALID")
    known = compared.get((column.work, column.metric, base.name, way.name))
    if known is not None and known.ratio is not None:
        return Quantity(known.ratio, _TIMES, known.low, known.high, known.blocks)
    pair = [tables[cell.id] for cell in found if cell is not None and cell.id in tables]
    ratio = compare_cells(pair[0], pair[1], column.metric) if len(pair) == 2 else None
    if ratio is None:
        return Quantity(None, _TIMES, reason=f"{way.name}: no block has both figures")
    estimate = ratio.estimate(alpha)
    return Quantity(estimate.value, _TIMES, estimate.low, estimate.high, estimate.count)


def _cost(way: MeasuredWay, column: WayColumn, metric: str) -> Quantity:
    """A cost of the whole trial: of several operations of a metadata work it is the mean of all."""
    return way.quantity(column, metric)


def _wire(way: MeasuredWay, column: WayColumn) -> Quantity:
    per_byte = _cost(way, column, "wire_per_byte")
    cell = way.cells.get(column.work)
    if cell is not None and "wire_per_operation" in cell.metrics and per_byte.value is None:
        return _cost(way, column, "wire_per_operation")
    return per_byte
