"""Making bundles of trials that are stored: while a study goes on every few hundred, and at its end."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leadline.durable import write_whole
from leadline.errors import LeadlineError
from leadline.foreign import open_plain
from leadline.store.bundles.form import (
    BUNDLES,
    BundledTable,
    FileStamp,
    digest_of_bytes,
    list_file,
    list_of,
    numbers_in,
    read_bundles,
    table_file,
)
from leadline.store.files import make_directory
from leadline.store.parquet import StoredTable, fitted
from leadline.store.tables import TABLES, Row, schema

if TYPE_CHECKING:
    import pyarrow as pa

TRIALS_MAX = 200  # of one bundle
FEW = 8  # so many files are opened in no time
# To read a larger file takes longer than to open it; and bundles are to cost little space and memory.
_FILE_BYTES_MAX = 64 << 10
_GROUP_ROWS = 1 << 16


def bundle_trials(result: Path, finished: Iterable[str], at_least: int = FEW, most: int | None = None) -> int:
    """Put the trials that are in no bundle into new ones, `most` of them; how many.

    Of fewer than `at_least` finished trials there is none.

    Files that cannot be read, and bundles that cannot be written, are no error: readers do without.
    Only who holds the result's lock, or made it, may call this.
    """
    known = frozenset(finished)
    done = 0
    if len(known) >= at_least:
        rest = _unbundled(result, known)[:most]
        with suppress(OSError, LeadlineError):
            for first in range(0, len(rest), TRIALS_MAX):
                done += _write_bundle(result, rest[first : first + TRIALS_MAX])
    return done


def _unbundled(result: Path, finished: Iterable[str]) -> list[str]:
    """Trials that could be in a bundle and are in none."""
    having: dict[str, list[FileStamp]] = {}
    for bundle in read_bundles(result):
        table = bundle.tables.get("trials")
        if table is not None and all(one.is_there() for one in bundle.tables.values()):
            for trial, stamp in table.trials.items():
                having.setdefault(trial, []).append(stamp)
    return [
        trial
        for trial in sorted(finished)
        if _is_small(file := str(result / "trials" / f"{trial}.parquet"))
        and not any(stamp.fits(file) for stamp in having.get(trial, ()))
    ]


def _is_small(file: str) -> bool:
    try:
        return os.stat(file).st_size <= _FILE_BYTES_MAX  # noqa: PTH116 - of thousands of names, which are text
    except OSError:
        return False


def _write_bundle(result: Path, trials: Sequence[str]) -> int:
    """Tables first, the list of them last. Raises OSError and LeadlineError."""
    number = max(numbers_in(result), default=0) + 1
    make_directory(result / BUNDLES)
    tables = {
        table: _write_table(result, table, row_type, number, trials) for table, row_type in TABLES.items()
    }
    write_whole(list_file(result, number), list_of(tables))
    return len(tables["trials"].trials)


def _write_table(
    result: Path, table: str, row_type: type[Row], number: int, trials: Sequence[str]
) -> BundledTable:
    import pyarrow.parquet as pq

    file, wanted, stamps = table_file(result, number, table), schema(row_type), dict[str, FileStamp]()
    buffer = io.BytesIO()
    with pq.ParquetWriter(buffer, wanted, compression="zstd") as writer:
        for rows in _groups(_own_rows(result, table, trials, wanted, stamps), table == "series"):
            writer.write_table(rows)
    data = buffer.getvalue()
    make_directory(file.parent)
    write_whole(file, data)
    return BundledTable(file, len(data), digest_of_bytes(data), stamps)


def _groups(tables: Iterable[pa.Table], each: bool) -> Iterator[pa.Table]:
    """Groups of rows: of `each` table one, as samples are asked for by trial; else large ones."""
    import pyarrow as pa

    waiting: list[Any] = []
    for one in tables:
        waiting.append(one)
        if each or sum(rows.num_rows for rows in waiting) >= _GROUP_ROWS:
            yield pa.concat_tables(waiting)
            waiting = []
    if waiting:
        yield pa.concat_tables(waiting)


def _own_rows(
    result: Path, table: str, trials: Sequence[str], wanted: pa.Schema, stamps: dict[str, FileStamp]
) -> Iterator[pa.Table]:
    """The rows of each trial whose file is fit for it; `stamps` tells which these are."""
    for trial in trials:
        try:
            stamp, rows = _read(result / table / f"{trial}.parquet", trial, wanted)
        except Exception:  # noqa: S112 - whatever is wrong with it: who reads it by itself is told
            continue
        stamps[trial] = stamp
        yield rows


def _read(file: Path, trial: str, wanted: pa.Schema) -> tuple[FileStamp, pa.Table]:
    """A file as it was, and its rows. Raises whatever keeps it out of bundles."""
    import pyarrow as pa
    import pyarrow.compute as pc

    with open_plain(file) as opened:
        found = os.fstat(opened.fileno())
        if found.st_size > _FILE_BYTES_MAX:
            raise ValueError("it is large")
        data = opened.read(found.st_size + 1)
    if len(data) != found.st_size:
        raise ValueError("it is being written")
    rows = StoredTable(pa.BufferReader(data), len(data)).read()
    if not set(rows.column_names) <= set(wanted.names):
        raise ValueError("it has columns of a newer version, which would be lost")
    if pc.unique(rows.column("trial")).to_pylist() not in ([], [trial]):
        raise ValueError("it has rows of another trial")
    if not rows.schema.equals(wanted):  # of another version
        rows = fitted(rows, wanted)
    return FileStamp(found.st_size, found.st_mtime_ns, digest_of_bytes(data)), rows
