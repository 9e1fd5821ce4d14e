"""Tables of figures: cells with intervals in one unit a column, never an INVALID one without the word."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from leadline.report import format as fmt
from leadline.report import texts
from leadline.report.tables import Measure, printed
from leadline.report.texts import ANYWHERE, placed, terminal_table
from leadline.verdict.model import FigureRow, FigureTable, Quantity, State

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


@dataclass(frozen=True)
class PrintedRow:
    """`keys` name it, `measures` are its numbers; `first` where another group of rows begins."""

    keys: tuple[str, ...]
    measures: tuple[Measure, ...]
    state: State | None
    first: bool
    states: tuple[State | None, ...] = ()

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


def has_numbers(table: FigureTable) -> bool:
    """A number, or a word in the place of one."""
    return any(item.value is not None or item.text for row in table.rows for item in row.values)


def printed_figures(table: FigureTable) -> PrintedTable:
    """The table as printed text."""
    scales = [_scale([row.values[place] for row in table.rows]) for place in range(len(table.columns))]
    if len({item.unit for row in table.rows for item in row.values if item.unit}) == 1:
        scale = _scale([item for row in table.rows for item in row.values])
        known = [{row.values[place].unit for row in table.rows} for place in range(len(scales))]
        scales = [scale if any(found) else own for own, found in zip(scales, known, strict=True)]
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


def _row(row: FigureRow, measures: tuple[Measure, ...], before: tuple[str, ...]) -> PrintedRow:
    states = row.states or (row.state,) * len(measures)
    return PrintedRow(row.keys, measures, row.state, row.keys[:-1] != before, states)


def _mixed(table: FigureTable) -> bool:
    """True where a column has several units: then each group of rows has its own, behind each figure."""
    columns = range(len(table.columns))
    return any(len({row.values[place].unit for row in table.rows} - {""}) > 1 for place in columns)


def _printed_by_group(table: FigureTable) -> PrintedTable:
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


def show_figures(table: FigureTable, console: Console, *, whole: bool = True, word: str = ANYWHERE) -> None:
    """Print the table on a terminal; one that is too wide for it in parts, a long one in brief."""
    from rich.text import Text

    every = len(table.rows)
    if not whole and table.brief is not None and table.brief < every:
        more = placed(f"The first {table.brief} of {every:,} rows; all: leadline show DIR --all", word)
        table = replace(table, rows=table.rows[: table.brief], note=f"{table.note} {more}".lstrip())
    item = printed_figures(table)
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


def with_values(item: PrintedTable) -> PrintedTable:
    """The table without the columns that have no value in any row: a reason names them in one line."""
    places = range(len(item.columns))
    empty = [place for place in places if all(row.measures[place].text == fmt.NO_VALUE for row in item.rows)]
    if not empty or len(empty) == len(item.columns):
        return replace(item, reasons=tuple(f"{fmt.NO_VALUE}: {one}" for one in item.reasons))
    found: dict[str, list[str]] = {}
    for place in empty:
        for reason in dict.fromkeys(row.measures[place].reason for row in item.rows):
            found.setdefault(reason, []).append(item.columns[place])
    shown = _columns(item, [place for place in places if place not in empty])
    left = dict.fromkeys(one.reason for row in shown.rows for one in row.measures if one.reason)
    absent = [f"{', '.join(names)}: {reason}" for reason, names in found.items()]
    return replace(shown, reasons=(*(f"{fmt.NO_VALUE}: {one}" for one in left), *absent))


def _laid_out(item: PrintedTable) -> Table:
    from rich.text import Text

    table = terminal_table(item.title)
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


def figures_markdown(table: FigureTable) -> str:
    """The table below its title."""
    item = printed_figures(table)
    headings = [*item.keys]
    for column, unit in zip(item.columns, item.units, strict=True):
        headings.append(f"{column} ({unit})" if unit else column)
    rows = [[*map(texts.markdown_text, (*row.keys, *_flagged(row)))] for row in item.rows]
    text = texts.markdown_table(
        [*map(texts.markdown_text, headings)], range(len(item.keys), len(headings)), rows
    )
    notes = [texts.markdown_text(note) for note in (item.note, *item.reasons) if note]
    return "\n\n".join([f"## {texts.markdown_text(item.title)}", text, *notes])
