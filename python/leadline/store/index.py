"""A small summary beside each result, `cells-2.parquet`, so that a thousand results are read in a second.

It is only ever derived: without it, or when the journal has grown since, it is made anew. Its version is in
its name, so that two versions never meet in one query.
"""

from __future__ import annotations

import io
import json
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

from leadline.durable import write_whole
from leadline.foreign import parse_json, within_memory
from leadline.store.files import JOURNAL, compression_of
from leadline.store.parquet import fitted, opened
from leadline.store.tables import schema, to_arrow
from leadline.trusted import believed_accounts, why_not_place

_Read = TypeVar("_Read")
INDEX = "cells-2.parquet"
_HEAD = b"leadline.head"  # noted with the columns: to read it takes a quarter of the time of reading these
_BYTES_MAX = 64 << 20  # of memory for one summary: those of ten thousand cells stay below


@dataclass(frozen=True)
class IndexRow:
    """One metric of one cell. `value`, `low`, `high` are in the base `unit`; None is "not measured".

    `targets` are joined by commas, `codes` by spaces; `trials` is done/planned; `journal_bytes` tells whether
    the result has changed since. `job` and `conditions` are digests: rows with the same ran the same job, by
    the same access method, on the same client.
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
    job: str = ""
    conditions: str = ""


@dataclass(frozen=True)
class Indexed:
    """A row and the result directory that it is of."""

    path: Path
    row: IndexRow


@dataclass(frozen=True)
class IndexHead:
    """What all rows of a summary share, and the `figures` that it has: each a cell and a metric."""

    created: str
    study: str
    targets: str
    trials: str
    complete: bool
    journal_bytes: int
    figures: tuple[tuple[str, str], ...]


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
    import pyarrow.parquet as pq

    if not _is_ours(result):
        return False
    table = to_arrow(rows, IndexRow)
    if rows:
        table = table.replace_schema_metadata({_HEAD: json.dumps(vars(_head(rows))).encode()})
    buffer = io.BytesIO()
    pq.write_table(table, buffer, compression=compression_of(table))
    try:
        write_whole(result / INDEX, buffer.getvalue(), durable=False)
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


def read_indexes(
    results: Iterable[Path], wanted: Callable[[str], bool] | None = None
) -> dict[Path, list[IndexRow]]:
    """Of each result whose summary is there and fresh the rows whose figure, CELL.METRIC, is wanted.

    What is damaged, stale or beyond bounds is left out: it is made anew, see `refresh`.
    """
    return dict(_sound(results, lambda path: _rows_of(path, wanted)))


def read_heads(results: Iterable[Path]) -> Iterator[tuple[Path, IndexHead]]:
    """The same of what is in the head: a part of the time, and of one summary at a time."""
    return _sound(results, _head_of)


def _sound(results: Iterable[Path], read: Callable[[Path], _Read | None]) -> Iterator[tuple[Path, _Read]]:
    for path in results:
        if not os.path.isfile(f"{path}/{INDEX}"):  # noqa: PTH113 - of thousands
            continue
        import pyarrow.parquet  # noqa: F401 - before memory is bounded: what it loads ends the process then

        found = None
        with suppress(Exception), within_memory(_BYTES_MAX):  # one bad file must not hide the others
            found = read(path)
        if found is not None:
            yield path, found


def _head(rows: Sequence[IndexRow]) -> IndexHead:
    shared = {field.name: getattr(rows[0], field.name) for field in fields(IndexHead)[:-1]}
    return IndexHead(**shared, figures=tuple((row.cell, row.metric) for row in rows))


def _head_of(path: Path) -> IndexHead | None:
    """From what was noted with the columns; older versions noted nothing there, and the rows tell."""
    with opened(path / INDEX) as stored:
        note = (stored.schema.metadata or {}).get(_HEAD)
        if note is None:
            table = fitted(stored.read(), schema(IndexRow))
            rows = [IndexRow(**row) for row in table.to_pylist()]
            found = vars(_head(rows)) if rows else None
        else:
            found = parse_json(note)
    if not found or found["journal_bytes"] != journal_size(path):
        return None
    head = IndexHead(**found | {"figures": tuple((cell, metric) for cell, metric in found["figures"])})
    if [type(value) for value in vars(head).values()][:-1] != [str, str, str, str, bool, int]:
        raise ValueError("it has values of other types")
    if {type(name) for figure in head.figures for name in figure} != {str}:
        raise ValueError("it has values without a name")
    return head


def _rows_of(path: Path, wanted: Callable[[str], bool] | None) -> list[IndexRow] | None:
    head = _head_of(path)
    if head is None:
        return None
    places = [
        place for place, (cell, metric) in enumerate(head.figures) if not wanted or wanted(f"{cell}.{metric}")
    ]
    if not places:
        return []
    with opened(path / INDEX) as stored:
        table = fitted(stored.read(), schema(IndexRow))
    if table.num_rows != len(head.figures):
        raise ValueError("it has other rows than it says")
    return [IndexRow(**row) for row in table.take(places).to_pylist()]


def refresh(path: Path, rows: Sequence[IndexRow], wanted: Callable[[str], bool]) -> dict[str, Any]:
    """Store a result's summary. Returns plain JSON: the wanted rows, and whether it is stored."""
    stored = not rows or write_index(path, rows)
    return {
        "stored": stored,
        "rows": [list(vars(row).values()) for row in rows if wanted(f"{row.cell}.{row.metric}")],
    }


def refreshed(path: Path, found: Mapping[str, Any]) -> list[Indexed]:
    """The rows in what `refresh` returned."""
    return [Indexed(path, IndexRow(*values)) for values in found["rows"]]
