"""Rows of a result's tables, of as many files as there are, through DuckDB: checked before they are used."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import fields
from typing import Any

from leadline.foreign import parse_json
from leadline.store.parquet import check_columns, check_files, connected
from leadline.store.tables import SeriesRow, TrialRow

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
    condition: str = "",
    values: Sequence[str] = (),
    only: Collection[str] | None = None,
) -> list[Any]:
    """The rows of these files that fulfil a condition, SQL of ours; `only` those of some trials.

    Raises ValueError and what DuckDB raises where a file is damaged, or has rows of no trial of `trials`.
    """
    conditions = [condition] if condition else []
    given: list[Any] = [list(paths), *values]
    if only is not None:
        conditions.append("list_contains(?, trial)")
        given.append(sorted(only))
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    with connected() as connection:
        check_files(connection, paths)
        cursor = connection.execute(
            f"SELECT * FROM read_parquet(?, union_by_name=true){where}",  # noqa: S608 - condition is ours
            given,
        )
        found = {column[0]: str(column[1]) for column in cursor.description}
        records = cursor.fetchall()
    check_columns(fields(row_type), found, records)
    rows = _as_rows(row_type, list(found), records)
    _check_rows(rows, trials)
    return rows


def _as_rows(row_type: Any, names: Sequence[str], records: Sequence[Sequence[Any]]) -> list[Any]:
    index = {name: position for position, name in enumerate(names)}
    ordered = [index.get(field.name) for field in fields(row_type) if not field.kw_only]
    named = [(field.name, index.get(field.name)) for field in fields(row_type) if field.kw_only]

    def read(record: Sequence[Any]) -> Any:
        return row_type(
            *(None if place is None else record[place] for place in ordered),
            **{name: None if place is None else record[place] for name, place in named},
        )

    return [read(record) for record in records]


def _check_rows(rows: Sequence[Any], finished: frozenset[str]) -> None:
    """Raises ValueError where a row is of no trial of the result, or its JSON or a figure of it is none."""
    strangers = {row.trial for row in rows} - finished
    if strangers:
        raise ValueError(f"it has rows of {sorted(strangers)[0]!r}, which is no trial of the result")
    if not rows or isinstance(rows[0], SeriesRow):
        return
    for field in fields(rows[0]):
        if str(field.type).startswith("float"):
            for row in rows:
                value = getattr(row, field.name)
                if value is not None and not math.isfinite(value):
                    raise ValueError(f"{field.name} of {row.trial} is no number")
    if isinstance(rows[0], TrialRow):
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
