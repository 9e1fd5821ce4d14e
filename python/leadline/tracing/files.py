"""A trace's files and processes as views that rules and reports ask, through DuckDB: never a loop over rows.

`files` has one row a path and module, its processes added up; counters keep Darshan's names, and names in
lower case are derived from them. What no process knew is null. `processes`, `copies` and `trial` are small.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from leadline.tracing.figures import KINDS, Shares, Speeds, copy_seconds
from leadline.tracing.mapped import mapped_files
from leadline.tracing.tables import (
    COUNTERS,
    OWN_COUNTERS,
    SIZE_BINS,
    TIMES,
    ProcessRow,
    TraceTables,
)

if TYPE_CHECKING:
    import duckdb

# Layers whose rows are calls of the program itself. MPI-IO describes the POSIX rows' bytes once more.
OWN_LAYERS = ("POSIX", "STDIO")
_SMALL_BINS = ("0_100", "100_1K", "1K_10K")
_OPENS = ("open", "creat", "fopen")
_STATS = ("stat", "access", "getattr")

# Names that rules may use besides the counters, each an SQL expression over their sums.
DERIVED: Mapping[str, str] = {
    "small_reads": " + ".join(f"SIZE_READ_{name}" for name in _SMALL_BINS),
    "small_writes": " + ".join(f"SIZE_WRITE_{name}" for name in _SMALL_BINS),
    "mean_read_bytes": "BYTES_READ / nullif(READS, 0)",
    "mean_write_bytes": "BYTES_WRITTEN / nullif(WRITES, 0)",
    "random_reads": "greatest(READS - SEQ_READS, 0)",
    "random_writes": "greatest(WRITES - SEQ_WRITES, 0)",
    "skipping_reads": "greatest(READS - CONSEC_READS, 0)",
    "skipping_writes": "greatest(WRITES - CONSEC_WRITES, 0)",
    "accesses": "coalesce(READS, 0) + coalesce(WRITES, 0)",
    "moved_bytes": "coalesce(BYTES_READ, 0) + coalesce(BYTES_WRITTEN, 0)",
    "syncs": "coalesce(FSYNCS, 0) + coalesce(FDSYNCS, 0)",
    "lookups": "coalesce(OPENS, 0) + coalesce(STATS, 0)",
    "io_s": "coalesce(F_READ_TIME, 0) + coalesce(F_WRITE_TIME, 0) + coalesce(F_META_TIME, 0)",
}


@dataclass(frozen=True)
class FileCost:
    """One path in one module: what was done with it, and how long that took. None is "not known"."""

    module: str
    path: str
    processes: int
    bytes_read: int | None
    bytes_written: int | None
    reads: int | None
    writes: int | None
    opens: int | None
    stats: int | None
    read_s: float | None
    write_s: float | None
    meta_s: float | None
    io_s: float


@contextmanager
def views(tables: TraceTables, shared: Shares, speed: Speeds) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection with the views `files`, `processes`, `copies` and `trial`, and nothing else in reach."""
    import duckdb
    import pyarrow as pa

    with duckdb.connect() as connection:
        connection.execute("SET enable_external_access = false")
        connection.register("file_rows", tables.files)
        rows, paths = connection.execute(
            "SELECT count(*), count(DISTINCT (module, path)) FROM file_rows"
        ).fetchall()[0]
        # Where nothing is added up a view is enough, and spares a copy of a hundred thousand rows.
        kind = "VIEW" if rows == paths else "TABLE"
        connection.execute(f"CREATE TEMP {kind} files AS {_files_query(added=rows != paths)}")
        count = _number(connection, "SELECT count(DISTINCT path) FROM files")
        mapped = len(mapped_files(connection, speed.bytes_read + speed.bytes_written))
        rows = {
            "processes": [_process(row) for row in tables.processes],
            "copies": _copies(tables, shared),
            "trial": [_trial(tables, shared, speed, (count, mapped))],
        }
        for name, found in rows.items():
            if found:  # without a process there is nothing to judge by rules
                connection.register(name, pa.Table.from_pylist(found))
        yield connection


def _files_query(*, added: bool) -> str:
    highest = {"MAX_BYTE_READ", "MAX_BYTE_WRITTEN", "FILE_ALIGNMENT", "F_MAX_READ_TIME", "F_MAX_WRITE_TIME"}
    parts = []
    for name in (*COUNTERS, *TIMES, *OWN_COUNTERS):
        how = "sum"
        if name in highest or name.endswith("_END_TIMESTAMP"):
            how = "max"
        elif name.endswith("_START_TIMESTAMP"):
            how = "min"
        kind = "DOUBLE" if name in TIMES else "BIGINT"
        parts.append(f"{how}({name})::{kind} AS {name}" if added else name)
    layers = ", ".join(f"'{layer}'" for layer in OWN_LAYERS)
    derived = ", ".join(f"{text} AS {name}" for name, text in DERIVED.items())
    processes = "count(DISTINCT (copy, process))" if added else "1"
    inner = (
        f"SELECT module, path, {processes} AS processes, {', '.join(parts)} FROM file_rows"  # noqa: S608 - our own names
        f" WHERE module IN ({layers})"
    )
    return f"SELECT *, {derived} FROM ({inner}{' GROUP BY module, path' if added else ''})"  # noqa: S608


def _number(connection: duckdb.DuckDBPyConnection, query: str) -> int:
    return int(connection.execute(query).fetchall()[0][0])


def files_by_cost(connection: duckdb.DuckDBPyConnection, limit: int) -> tuple[int, tuple[FileCost, ...]]:
    """How many files there are, and those that took longest; then by bytes."""
    total = _number(connection, "SELECT count(*) FROM files")
    rows = connection.execute(
        "SELECT module, path, processes, BYTES_READ, BYTES_WRITTEN, READS, WRITES, OPENS, STATS, F_READ_TIME,"
        " F_WRITE_TIME, F_META_TIME, io_s FROM files ORDER BY io_s DESC, moved_bytes DESC, path LIMIT ?",
        [limit],
    ).fetchall()
    return total, tuple(FileCost(*row) for row in rows)


def access_sizes(connection: duckdb.DuckDBPyConnection) -> dict[str, dict[str, int]]:
    """Accesses by Darshan's bins of sizes, of reads and of writes; empty where they were not counted."""
    found = {}
    for way in ("READ", "WRITE"):
        sums = ", ".join(f"sum(SIZE_{way}_{name})::BIGINT" for name in SIZE_BINS)
        counts = connection.execute(f"SELECT {sums} FROM files").fetchall()[0]  # noqa: S608 - our own names
        known = {name: int(count) for name, count in zip(SIZE_BINS, counts, strict=True) if count is not None}
        found[way.lower()] = known
    return found


def calls_of(rows: Sequence[ProcessRow]) -> dict[str, int]:
    """How often each function was called, the most frequent first."""
    totals: dict[str, int] = {}
    for row in rows:
        for name, count in json.loads(row.calls or "{}").items():
            totals[name] = totals.get(name, 0) + int(count)
    return dict(sorted(totals.items(), key=lambda item: (-item[1], item[0])))


def _named(calls: Mapping[str, int], parts: Sequence[str]) -> int:
    return sum(count for name, count in calls.items() if any(part in name for part in parts))


def _process(row: ProcessRow) -> dict[str, Any]:
    seconds = json.loads(row.seconds or "null") or {}
    calls = json.loads(row.calls or "{}")
    known = [float(seconds[kind]) for kind in KINDS if seconds.get(kind) is not None]
    return {
        "copy": row.copy,
        "process": row.process,
        "command": row.command,
        "executable": row.executable,
        "life_s": None if row.ended_ns is None else (row.ended_ns - row.started_ns) / 1e9,
        **{f"{kind}_s": seconds.get(kind) for kind in KINDS},
        "io_s": sum(known) if known else None,
        "bytes_read": row.bytes_read,
        "bytes_written": row.bytes_written,
        "opens": _named(calls, _OPENS),
        "stats": _named(calls, _STATS),
    }


def _copies(tables: TraceTables, shared: Shares) -> list[dict[str, Any]]:
    walls = copy_seconds(tables)
    return [
        {"copy": part.copy, "run_s": walls.get(part.copy or 0), "base_s": part.base_s, **_parts(part)}
        for part in shared.copies
    ]


def _parts(part: Any) -> dict[str, float | None]:
    shares = {f"{kind}_share": getattr(part, kind) for kind in (*KINDS, "compute")}
    return {**shares, **{f"{kind}_s": part.seconds.get(kind) for kind in KINDS}}


def _trial(tables: TraceTables, shared: Shares, speed: Speeds, files: tuple[int, int]) -> dict[str, Any]:
    """`files`: how many there are, and how many mapped ones matter."""
    whole = shared.whole
    walls = list(copy_seconds(tables).values())
    spent = [value for value in whole.seconds.values() if value is not None]
    busy = _busy_by_process(tables.processes)
    calls = calls_of(tables.processes)
    return {
        "run_s": speed.wall_s,
        "base_s": whole.base_s,
        **_parts(whole),
        "io_s": float(sum(spent)) if spent else None,
        "files": files[0],
        "mapped_files": files[1],
        "bytes_read": speed.bytes_read,
        "bytes_written": speed.bytes_written,
        "copies": len(shared.copies),
        "slowest_copy_s": max(walls, default=None),
        "mean_copy_s": sum(walls) / len(walls) if walls else None,
        "busy_processes": len(busy),
        "slowest_process_io_s": max(busy, default=None),
        "mean_process_io_s": sum(busy) / len(busy) if busy else None,
        "opens": _named(calls, _OPENS),
        "stats": _named(calls, _STATS),
        "calls": sum(calls.values()),
    }


def _busy_by_process(rows: Sequence[ProcessRow]) -> list[float]:
    """I/O seconds of the processes that do the work side by side: the most frequent executable's."""
    groups: dict[str, list[float]] = {}
    for row in rows:
        seconds = json.loads(row.seconds or "null") or {}
        spent = sum(seconds.get(kind) or 0.0 for kind in KINDS)
        if row.bytes_read + row.bytes_written > 0:
            groups.setdefault(row.executable, []).append(spent)
    return max(groups.values(), key=lambda group: (len(group), sum(group)), default=[])
