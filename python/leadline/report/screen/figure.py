"""One figure of every cell: `leadline show --table FIGURE`."""

from __future__ import annotations

from dataclasses import dataclass

from leadline.errors import UsageError
from leadline.report import format as fmt
from leadline.report import metrics, tables
from leadline.report.operations import by_operation
from leadline.verdict.model import Cell, Comparison, Findings, Quantity, worst

_HEADINGS = ("work", "target", "figure", "interval", "ratio", "interval", "verdict", "validity")
_RIGHT = frozenset({2, 3, 4, 5})


@dataclass(frozen=True)
class FigureOfCells:
    """Rows of printed text; columns in `right` are numbers."""

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    right: frozenset[int]
    notes: tuple[str, ...]


def figure_table(findings: Findings, figure: str) -> FigureOfCells:
    """A metric, by the name that `show --json` gives it. Raises UsageError for one that no cell has."""
    parts = by_operation(findings)
    cells = [cell for cell in parts.cells if metrics.find(cell, figure)]
    if not cells:
        known = ", ".join(metrics.all_metrics(parts.cells)) or "none: no cell has any"
        raise UsageError(f"no cell has the figure {fmt.printable(figure)!r}", f"choose one of: {known}")
    compared = {
        (one.work, one.other): one
        for one in parts.comparisons
        if one.metric in (figure, *_stored(cells, figure))
    }
    found = [(cell, found[1]) for cell in cells if (found := metrics.find(cell, figure))]
    scale = fmt.scale_for(found[0][1].unit, [item.value for _, item in found])
    rows = []
    for cell, item in found:
        one = compared.get((cell.work, cell.target)) or compared.get((cell.work, cell.id))
        rows.append((cell.work, cell.target, *_printed(cell, item, scale), *_ratio(one), _state(cell, one)))
    heading = f"{_HEADINGS[2]} {scale.label}".strip()
    reasons = dict.fromkeys(item.reason for _, item in found if item.value is None and item.reason)
    notes = (
        *tables.comparison_notes(tuple(compared.values())),
        *(f"{fmt.NO_VALUE} {why}" for why in reasons),
    )
    return FigureOfCells((*_HEADINGS[:2], heading, *_HEADINGS[3:]), tuple(rows), _RIGHT, notes)


def _stored(cells: list[Cell], figure: str) -> set[str]:
    return {found[0] for cell in cells if (found := metrics.find(cell, figure))}


def _printed(cell: Cell, item: Quantity, scale: fmt.Scale) -> tuple[str, str]:
    measure = tables.printed(item, scale)
    invalid = cell.validity.state == "INVALID" and item.value is not None
    return (f"INVALID {measure.text}" if invalid else measure.text, measure.interval or measure.spread)


def _ratio(one: Comparison | None) -> tuple[str, str, str]:
    if one is None:
        return ("", "", "")
    return (fmt.ratio(one.ratio), fmt.ratio_interval(one.low, one.high), one.verdict)


def _state(cell: Cell, one: Comparison | None) -> str:
    """The worse of the cell's state and that of what it is held against."""
    return worst([cell.validity.state, *([one.validity] if one else [])]).replace("_", " ")
