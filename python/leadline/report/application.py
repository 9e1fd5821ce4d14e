"""The tables of a study of applications as printed text, for terminal, Markdown and page; and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from leadline.report import format as fmt
from leadline.report.tables import Measure, printed
from leadline.verdict.model import (
    ApplicationModel,
    ApplicationPoint,
    ApplicationTable,
    ApplicationView,
    Quantity,
    State,
)

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(frozen=True)
class PrintedRow:
    """`keys` name it, `measures` are its numbers; `first` where another group of rows begins."""

    keys: tuple[str, ...]
    measures: tuple[Measure, ...]
    state: State
    first: bool


@dataclass(frozen=True)
class PrintedTable:
    """A table in one unit a column; `units` are as long as `columns`."""

    title: str
    keys: tuple[str, ...]
    columns: tuple[str, ...]
    units: tuple[str, ...]
    rows: tuple[PrintedRow, ...]
    note: str
    reasons: tuple[str, ...]


def printed_tables(view: ApplicationView) -> tuple[PrintedTable, ...]:
    """Every table that has a number in it."""
    return tuple(_printed(table) for table in view.tables if _has_numbers(table))


def _has_numbers(table: ApplicationTable) -> bool:
    return any(item.value is not None for row in table.rows for item in row.values)


def _printed(table: ApplicationTable) -> PrintedTable:
    scales = [_scale([row.values[place] for row in table.rows]) for place in range(len(table.columns))]
    if len({item.unit for row in table.rows for item in row.values if item.unit}) == 1:
        scales = [_scale([item for row in table.rows for item in row.values])] * len(scales)
    rows = []
    before: tuple[str, ...] = ()
    for row in table.rows:
        measures = tuple(printed(item, scale) for item, scale in zip(row.values, scales, strict=True))
        rows.append(PrintedRow(row.keys, measures, row.state, row.keys[:-1] != before))
        before = row.keys[:-1]
    reasons = dict.fromkeys(item.reason for row in rows for item in row.measures if item.reason)
    units = tuple(scale.label for scale in scales)
    return PrintedTable(
        table.title, table.keys, table.columns, units, tuple(rows), table.note, tuple(reasons)
    )


def _scale(items: Sequence[Quantity]) -> fmt.Scale:
    unit = next((item.unit for item in items if item.unit), "")
    return fmt.scale_for(unit, [item.value for item in items])


def show_application(view: ApplicationView, console: Console) -> None:
    """Print the tables on a terminal."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    for item in printed_tables(view):
        table = Table(
            title=Text(fmt.printable(item.title), "bold"),
            title_justify="left",
            box=box.SIMPLE_HEAD,
            show_edge=False,
            pad_edge=False,
            padding=(0, 1, 0, 0),
            header_style="",
        )
        for key in item.keys:
            table.add_column(f"\n{key}", overflow="fold")
        for column, unit in zip(item.columns, item.units, strict=True):
            table.add_column(f"{fmt.printable(column)}\n{unit}", justify="right", no_wrap=True)
        for row in item.rows:
            table.add_row(*(Text(fmt.printable(key)) for key in row.keys), *map(_words, _flagged(row)))
        console.print()
        console.print(table)
        for note in (item.note, *item.reasons):
            if note:
                console.print(Text(f"  {fmt.printable(note)}", "dim"))


def _flagged(row: PrintedRow) -> list[str]:
    """Each number, never without the word INVALID where its cell is."""
    word = "INVALID " if row.state == "INVALID" else ""
    return [
        f"{word if item.value is not None else ''}{item.text} {item.spread}".rstrip() for item in row.measures
    ]


def _words(text: str) -> Any:
    from rich.text import Text

    return Text(text)


def markdown_rows(item: PrintedTable) -> tuple[list[str], list[list[str]]]:
    """Headings and rows, to be escaped and laid out as Markdown."""
    headings = [*item.keys]
    for column, unit in zip(item.columns, item.units, strict=True):
        headings.append(f"{column} ({unit})" if unit else column)
    return headings, [[*row.keys, *_flagged(row)] for row in item.rows]


def application_json(view: ApplicationView) -> dict[str, Any]:
    """The same in base units, for `leadline.show/1`."""
    return {
        "tables": [
            {
                "name": table.name,
                "title": table.title,
                "keys": list(table.keys),
                "columns": list(table.columns),
                "rows": [
                    {
                        "keys": list(row.keys),
                        "state": row.state,
                        "values": [_quantity(item) for item in row.values],
                    }
                    for row in table.rows
                ],
            }
            for table in view.tables
        ],
        "points": [_point(point) for point in view.points],
        "models": [_model(model) for model in view.models],
        "stages": [asdict(span) for span in view.stages],
    }


def _point(point: ApplicationPoint) -> dict[str, Any]:
    return {
        "series": point.series,
        "target": point.target,
        "copies": point.copies,
        "run_time": _quantity(point.run_time),
        "shares": {name: _quantity(item) for name, item in point.shares.items()},
        "state": point.state,
    }


def _model(model: ApplicationModel) -> dict[str, Any]:
    return {
        "series": model.series,
        "formula": "compute_s * max(1, copies / cpus) + copies * shared_s",
        "cpus": model.cpus,
        "compute_s": model.compute_s,
        "shared_s": model.shared_s,
        "fitted_to": list(model.fitted_to),
        "points": [
            {"copies": copies, "modelled_s": seconds, "residual": rest}
            for copies, seconds, rest in model.points
        ],
    }


def _quantity(item: Quantity) -> dict[str, Any]:
    known = {"value": item.value, "unit": item.unit, "low": item.low, "high": item.high}
    return known | {"blocks": item.blocks} | ({"reason": item.reason} if item.value is None else {})
