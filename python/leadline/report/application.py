"""The tables of a study of applications, and of ways to a storage, as printed text and as JSON."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from leadline.report import format as fmt
from leadline.report.tables import Measure, printed
from leadline.verdict.model import (
    ApplicationModel,
    ApplicationPoint,
    ApplicationRow,
    ApplicationTable,
    ApplicationView,
    Findings,
    Quantity,
    State,
)

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


@dataclass(frozen=True)
class PrintedRow:
    """`keys` name it, `measures` are its numbers; `first` where another group of rows begins."""

    keys: tuple[str, ...]
    measures: tuple[Measure, ...]
    state: State
    first: bool
    states: tuple[State, ...] = ()

    @property
    def flagged(self) -> tuple[tuple[Measure, bool], ...]:
        """Each number with whether it needs the word INVALID."""
        states = self.states or (self.state,) * len(self.measures)
        pairs = zip(self.measures, states, strict=True)
        return tuple((item, state == "INVALID" and item.value is not None) for item, state in pairs)


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


def printed_tables(findings: Findings) -> tuple[PrintedTable, ...]:
    """Every table of applications and of ways."""
    return (*printed_view(findings.application), *printed_ways(findings))


def printed_view(view: ApplicationView | None) -> tuple[PrintedTable, ...]:
    """The tables of applications that have a number in them."""
    return tuple(_printed(table) for table in (view.tables if view else ()) if _has_numbers(table))


def printed_ways(findings: Findings) -> tuple[PrintedTable, ...]:
    """The tables of ways to a storage that have a number, or a word in the place of one, in them."""
    return tuple(_printed(table) for table in findings.ways if _has_numbers(table))


def _has_numbers(table: ApplicationTable) -> bool:
    return any(item.value is not None or item.text for row in table.rows for item in row.values)


def _printed(table: ApplicationTable) -> PrintedTable:
    scales = [_scale([row.values[place] for row in table.rows]) for place in range(len(table.columns))]
    if len({item.unit for row in table.rows for item in row.values if item.unit}) == 1:
        scales = [_scale([item for row in table.rows for item in row.values])] * len(scales)
    if _mixed(table):
        return _printed_by_group(table)
    rows = []
    before: tuple[str, ...] = ()
    for row in table.rows:
        measures = tuple(printed(item, scale) for item, scale in zip(row.values, scales, strict=True))
        rows.append(_row(row, measures, before))
        before = row.keys[:-1]
    reasons = dict.fromkeys(item.reason for row in rows for item in row.measures if item.reason)
    units = tuple(scale.label for scale in scales)
    return PrintedTable(
        table.title, table.keys, table.columns, units, tuple(rows), table.note, tuple(reasons)
    )


def _row(row: ApplicationRow, measures: tuple[Measure, ...], before: tuple[str, ...]) -> PrintedRow:
    states = row.states or (row.state,) * len(measures)
    return PrintedRow(row.keys, measures, row.state, row.keys[:-1] != before, states)


def _mixed(table: ApplicationTable) -> bool:
    """True where a column has several units: then each group of rows has its own, behind each figure."""
    columns = range(len(table.columns))
    return any(len({row.values[place].unit for row in table.rows} - {""}) > 1 for place in columns)


def _printed_by_group(table: ApplicationTable) -> PrintedTable:
    rows: list[PrintedRow] = []
    for key, found in itertools.groupby(table.rows, key=lambda row: row.keys[:-1]):
        group = list(found)
        scales = [_scale([row.values[place] for row in group]) for place in range(len(table.columns))]
        for row in group:
            pairs = zip(row.values, scales, strict=True)
            measures = tuple(_with_unit(printed(item, scale), scale) for item, scale in pairs)
            rows.append(_row(row, measures, key if row is not group[0] else ("",)))
    reasons = dict.fromkeys(item.reason for row in rows for item in row.measures if item.reason)
    units = ("",) * len(table.columns)
    return PrintedTable(
        table.title, table.keys, table.columns, units, tuple(rows), table.note, tuple(reasons)
    )


def _with_unit(measure: Measure, scale: fmt.Scale) -> Measure:
    if measure.value is None or not scale.label:
        return measure
    gap = "" if scale.label in ("%", "\u00d7") else " "
    return replace(measure, text=f"{measure.text}{gap}{scale.label}")


def _scale(items: Sequence[Quantity]) -> fmt.Scale:
    unit = next((item.unit for item in items if item.unit), "")
    return fmt.scale_for(unit, [item.value for item in items])


def show_tables(findings: Findings, console: Console) -> None:
    """Print the tables on a terminal; one that is too wide for it in parts."""
    from rich.text import Text

    for item in printed_tables(findings):
        for part in _parts(item, console.width):
            console.print()
            console.print(_laid_out(part))
        for note in (item.note, *item.reasons):
            if note:
                console.print(Text(f"  {fmt.printable(note)}", "dim"))


def _parts(item: PrintedTable, width: int) -> list[PrintedTable]:
    """The table itself, or several with some of its columns each."""
    keys = [max(map(len, (name, *(row.keys[place] for row in item.rows)))) + 1 for place, name in _keys(item)]
    texts = [_flagged(row) for row in item.rows]
    parts: list[list[int]] = [[]]
    used = sum(keys)
    for place, heading in enumerate(item.columns):
        wide = max(map(len, (heading, item.units[place], *(row[place] for row in texts)))) + 1
        if parts[-1] and used + wide > width:
            parts.append([])
            used = sum(keys)
        parts[-1].append(place)
        used += wide
    return [item] if len(parts) == 1 else [_columns(item, places) for places in parts]


def _keys(item: PrintedTable) -> Iterator[tuple[int, str]]:
    return iter(enumerate(item.keys))


def _columns(item: PrintedTable, places: Sequence[int]) -> PrintedTable:
    rows = tuple(
        replace(
            row,
            measures=tuple(row.measures[place] for place in places),
            states=tuple(row.states[place] for place in places) if row.states else (),
        )
        for row in item.rows
    )
    return replace(
        item,
        columns=tuple(item.columns[place] for place in places),
        units=tuple(item.units[place] for place in places),
        rows=rows,
    )


def _laid_out(item: PrintedTable) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(
        title=Text(fmt.printable(item.title), "bold"),
        title_justify="left",
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        padding=(0, 1, 0, 0),
        header_style="",
    )
    head = "\n" if any(item.units) else ""
    for key in item.keys:
        table.add_column(f"{head}{key}", overflow="fold")
    for column, unit in zip(item.columns, item.units, strict=True):
        heading = f"{fmt.printable(column)}\n{unit}" if head else fmt.printable(column)
        table.add_column(heading, justify="right", no_wrap=True)
    for row in item.rows:
        if row.first and table.row_count and not any(item.units):
            table.add_section()
        keys = row.keys if row.first or any(item.units) else ("",) * (len(row.keys) - 1) + row.keys[-1:]
        table.add_row(*(Text(fmt.printable(key)) for key in keys), *map(Text, _flagged(row)))
    return table


def _flagged(row: PrintedRow) -> list[str]:
    """Each number, never without the word INVALID where its cell is."""
    return [f"{'INVALID ' if bad else ''}{item.text} {item.spread}".rstrip() for item, bad in row.flagged]


def markdown_rows(item: PrintedTable) -> tuple[list[str], list[list[str]]]:
    """Headings and rows, to be escaped and laid out as Markdown."""
    headings = [*item.keys]
    for column, unit in zip(item.columns, item.units, strict=True):
        headings.append(f"{column} ({unit})" if unit else column)
    return headings, [[*row.keys, *_flagged(row)] for row in item.rows]


def table_json(table: ApplicationTable) -> dict[str, Any]:
    """A table in base units, for `leadline.show/1`."""
    return {
        "name": table.name,
        "title": table.title,
        "keys": list(table.keys),
        "columns": list(table.columns),
        "rows": [
            {
                "keys": list(row.keys),
                "state": row.state,
                "values": [_quantity(item) for item in row.values],
                **({"states": list(row.states)} if row.states else {}),
            }
            for row in table.rows
        ],
    }


def application_json(view: ApplicationView) -> dict[str, Any]:
    """The same in base units, for `leadline.show/1`."""
    return {
        "tables": [table_json(table) for table in view.tables],
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
    known: dict[str, Any] = {"value": item.value, "unit": item.unit, "low": item.low, "high": item.high}
    known |= {"blocks": item.blocks} | ({"text": item.text} if item.text else {})
    return known | ({"reason": item.reason} if item.value is None else {})
