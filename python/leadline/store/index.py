"""A small summary beside each result, `cells-1.parquet`, so that a thousand results are read in a second.

It is only ever derived: without it, or when the journal has grown since, it is made anew. Its version is in
its name, so that two versions never meet in one query.
"""

from __future__ import annotations

import io
import math
import os
import stat
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path

from leadline.errors import LeadlineError
from leadline.store.files import JOURNAL, write_whole
from leadline.store.parquet import check_files, connected
from leadline.trusted import believed_accounts, why_not_place

INDEX = "cells-1.parquet"
# Of each figure one row, the newest.
FIGURE_ROW = "true QUALIFY row_number() OVER (PARTITION BY cell, metric ORDER BY created DESC) = 1"
FIRST_ROW = "true QUALIFY row_number() OVER (PARTITION BY filename) = 1"  # what all rows of a result share

_SQL_TYPES = {"str": "VARCHAR", "bool": "BOOLEAN", "int": "BIGINT", "float | None": "DOUBLE"}


@dataclass(frozen=True)
class IndexRow:
    """One metric of one cell. `value`, `low`, `high` are in the base `unit`; None is "not measured".

    `targets` are joined by commas, `codes` by spaces; `trials` is done/planned; `journal_bytes` tells whether
    the result has changed since.
    """

    result: str
    created: str
    study: str
    targets: str
    trials: str
    complete: bool
    target: str
    work: str
    cell: str
    metric: str
    value: float | None
    unit: str
    low: float | None
    high: float | None
    blocks: int
    state: str
    codes: str
    version: str
    journal_bytes: int


@dataclass(frozen=True)
class Indexed:
    """A row and the result directory that it is of."""

    path: Path
    row: IndexRow


def journal_size(result: Path) -> int:
    """What an index remembers of the journal; -1 where there is none."""
    try:
        return (result / JOURNAL).stat().st_size
    except OSError:
        return -1


def write_index(result: Path, rows: Sequence[IndexRow]) -> bool:
    """Store a result's summary; False where the directory cannot be written, which is no error.

    Nor is it where others decide what lies in that directory.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not _is_ours(result):
        return False
    names = [field.name for field in fields(IndexRow)]
    table = pa.table({name: [getattr(row, name) for row in rows] for name in names}, schema=_schema())
    buffer = io.BytesIO()
    pq.write_table(table, buffer, compression="zstd")
    try:
        write_whole(result / INDEX, buffer.getvalue())
    except OSError:
        return False
    return True


def _is_ours(result: Path) -> bool:
    try:
        found = result.stat()
    except OSError:
        return False
    own = found.st_uid in believed_accounts() and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return own and not why_not_place(result)


def _schema() -> object:
    import pyarrow as pa

    types = {"str": pa.string(), "int": pa.int64(), "float": pa.float64(), "bool": pa.bool_()}
    return pa.schema(
        [(field.name, types[str(field.type).removesuffix(" | None")]) for field in fields(IndexRow)]
    )


def read_indexes(results: Iterable[Path], condition: str = "", values: Sequence[str] = ()) -> list[Indexed]:
    """Rows of the summaries that are there and fresh, through DuckDB; `condition` is SQL of our own.

    What is damaged or stale is left out: it is made anew, see `refresh`.
    """
    by_file = {str(path / INDEX): path for path in results if os.path.isfile(path / INDEX)}  # noqa: PTH113
    if not by_file:
        return []
    where = f" WHERE {condition}" if condition else ""
    names = ", ".join(f'CAST("{field.name}" AS {_SQL_TYPES[str(field.type)]})' for field in fields(IndexRow))
    query = f"SELECT filename, {names} FROM read_parquet(?, filename=true){where}"  # noqa: S608 - our own names

    def select(files: Sequence[str]) -> list[Indexed]:
        check_files(connection, files)
        found = connection.execute(query, [list(files), *values]).fetchall()
        return [Indexed(by_file[record[0]], IndexRow(*record[1:])) for record in found]

    with connected() as connection:
        try:
            items = select(list(by_file))
        except Exception:  # one bad file must not hide the others
            items = []
            for file in by_file:
                with suppress(Exception):
                    items += select([file])
    sizes = {path: journal_size(path) for path in by_file.values()}
    odd = {item.path for item in items if not _is_sound(item.row)}
    return [item for item in items if item.row.journal_bytes == sizes[item.path] and item.path not in odd]


def _is_sound(row: IndexRow) -> bool:
    """Whether every value is there that has to be, and every number is one."""
    found = vars(row)
    return all(
        found[name] is None or math.isfinite(found[name]) for name in ("value", "low", "high")
    ) and not any(found[name] is None for name in found if name not in ("value", "low", "high"))


def refresh(
    results: Sequence[Path], make: Callable[[Path], Sequence[IndexRow]], fresh: Iterable[Path]
) -> tuple[list[Indexed], list[Path], list[tuple[Path, str]]]:
    """Summaries of results that have no fresh one: rows, what could not be stored or read."""
    known = set(fresh)
    rows: list[Indexed] = []
    unwritten: list[Path] = []
    unreadable: list[tuple[Path, str]] = []
    for path in results:
        if path in known:
            continue
        try:
            made = make(path)
        except LeadlineError as error:
            unreadable.append((path, error.message))
            continue
        rows += [Indexed(path, row) for row in made]
        if made and not write_index(path, made):
            unwritten.append(path)
    return rows, unwritten, unreadable
