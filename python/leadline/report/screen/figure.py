"""One metric of every cell: `leadline show --table METRIC`."""

from __future__ import annotations

from dataclasses import dataclass

from leadline.errors import UsageError
from leadline.report import format as fmt
from leadline.report import metrics, tables
from leadline.report.operations import by_operation
from leadline.report.screen.short import compared, metric_unit
from leadline.units import unbounded
from leadline.verdict.model import Cell, Comparison, Findings, Quantity, worst

_RIGHT = frozenset({2, 3, 4, 5})


@dataclass(frozen=True)
class FigureOfCells:
    """Rows of printed text; columns in `right` are numbers."""

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    right: frozenset[int]
    notes: tuple[str, ...]


def figure_table(findings: Findings, figure: str) -> FigureOfCells:
    """A metric by its name in `show --json`; without an operation in front it is that of every operation.

    Raises UsageError for one that no cell has.
    """
    parts = by_operation(findings)
    source = next(
        (one for one in (parts, findings) if any(metrics.find(cell, figure) for cell in one.cells)), None
    )
    if source is None:
        known = ", ".join(metrics.all_metrics(parts.cells)) or "none: no cell has any"
        raise UsageError(f"no cell has the metric {fmt.printable(figure)!r}", f"choose one of: {known}")
    found = [(cell, *pair) for cell in source.cells if (pair := metrics.find(cell, figure))]
    names = {figure, *(name for _, name, _ in found)}
    held = {(one.work, one.other): one for one in source.comparisons if one.metric in names}
    scale = fmt.scale_for(found[0][2].unit, [item.value for _, _, item in found])
    rows = []
    for cell, _, item in found:
        one = held.get((cell.work, cell.target)) or held.get((cell.work, cell.id))
        against = (compared(one) if one else ("", "")) if held else ()
        rows.append((cell.work, cell.target, *_printed(cell, item, scale), *against, _state(cell, one)))
    headings = ["workload", "target", metric_unit(scale.label) or "value", "interval"]
    headings += [*(["compared", "interval"] if held else []), "validity"]
    reasons = dict.fromkeys(item.reason for _, _, item in found if item.value is None and item.reason)
    notes = (
        *tables.comparison_notes(tuple(held.values())),
        *(f"{fmt.NO_VALUE} {why}" for why in reasons),
    )
    return FigureOfCells(tuple(headings), tuple(rows), _RIGHT if held else frozenset({2, 3}), notes)


def _printed(cell: Cell, item: Quantity, scale: fmt.Scale) -> tuple[str, str]:
    measure = tables.printed(item, scale)
    invalid = cell.validity.state == "INVALID" and item.value is not None
    narrow = item.low is not None and item.high is not None and not unbounded(item.low, item.high)
    text = f"INVALID {measure.text}" if invalid else measure.text
    return (text, measure.interval if narrow else measure.spread)


def _state(cell: Cell, one: Comparison | None) -> str:
    """The worse of the cell's state and that of what it is held against."""
    return worst([cell.validity.state, *([one.validity] if one else [])]).replace("_", " ")
