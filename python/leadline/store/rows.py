"""Rows of a result's tables, of as many files as there are: checked before they are used."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import fields
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leadline.foreign import parse_json
from leadline.store.parquet import fitted, opened
from leadline.store.tables import TrialRow, schema

if TYPE_CHECKING:
    from pyarrow import Table

_JSON_STATES = ("start_state", "end_state")
_JSON_COLUMNS = (
    "job",
    "factors",
    "threads",
    "summary",
    "reasons",
    "sources",
    *_JSON_STATES,
    "faults",
    "states",
)


def read_rows(
    paths: Sequence[str],
    row_type: Any,
    trials: frozenset[str],
    sources: Sequence[str] = (),
    only: Collection[str] | None = None,
) -> list[Any]:
    """The rows of these files, of samples those of some `sources`; `only` those of some trials.

    Raises ValueError and what Arrow raises where a file is damaged, or has rows of no trial of `trials`.
    """
    import pyarrow as pa

    wanted = schema(row_type)
    alike: list[
        list[pa.Table]
    ] = []  # files of the same columns, which are fitted together: it costs by column
    for path in paths:
        with opened(Path(path)) as stored:
            table = stored.read()  # nearly all columns are wanted, and to choose them takes time
        if alike and table.schema.equals(alike[-1][0].schema):
            alike[-1].append(table)
        else:
            alike.append([table])
    rows: list[Any] = []
    for tables in alike:
        found = fitted(pa.concat_tables(tables), wanted)
        for column, values in (("source", sources or None), ("trial", only)):
            found = found if values is None else _having(found, column, values)
        rows += _as_rows(row_type, found)
    _check_rows(rows, trials)
    return rows


def _having(table: Table, column: str, values: Collection[str]) -> Table:
    """The rows with one of these values."""
    import pyarrow as pa
    import pyarrow.compute as pc

    return table.filter(pc.is_in(table[column], value_set=pa.array(sorted(values), pa.string())))


def _as_rows(row_type: Any, table: Table) -> list[Any]:
    values = {name: table[name].to_pylist() for name in table.column_names}
    ordered = [values[field.name] for field in fields(row_type) if not field.kw_only]
    names = [field.name for field in fields(row_type) if field.kw_only]
    named = zip(*(values[name] for name in names), strict=True) if names else repeat(())
    return [
        row_type(*record, **dict(zip(names, rest, strict=True)))
        for record, rest in zip(zip(*ordered, strict=True), named, strict=False)
    ]


def _check_rows(rows: Sequence[Any], finished: frozenset[str]) -> None:
    """Raises ValueError where a row is of no trial of the result, or its JSON is none."""
    strangers = {row.trial for row in rows} - finished
    if strangers:
        raise ValueError(f"it has rows of {sorted(strangers)[0]!r}, which is no trial of the result")
    if rows and isinstance(rows[0], TrialRow):
        for name in _JSON_COLUMNS:
            _check_json(name, rows)


def _check_json(name: str, rows: Sequence[TrialRow]) -> None:
    """Each text once: most trials say the same."""
    known: set[str | None] = {None}
    for row in rows:
        text = getattr(row, name)
        if text in known:
            continue
        if not isinstance(parse_json(text), dict | list | None):
            raise ValueError(f"{name} of {row.trial} is no object of JSON")
        known.add(text)
