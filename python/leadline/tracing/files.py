"""A trace's files and processes as tables that rules and reports ask, through SQLite.

`files` has one row a path and module, its processes added up; counters keep Darshan's names, and names in
lower case are derived from them. What no process knew is null. `processes`, `copies` and `trial` are small.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from leadline.in_memory import sqlite_in_memory
from leadline.tracing.figures import RESTS, Shares, Speeds, copy_seconds, times_known
from leadline.tracing.mapped import (
    LOOKED_AT,
    USER,
    ancestors,
    belongs_sql,
    faults_major,
    mapped_files,
    named_places,
    whole,
)
from leadline.tracing.slowest import CAUSES, slowest_columns, slowest_process
from leadline.tracing.tables import (
    COUNTERS,
    KINDS,
    OWN_COUNTERS,
    SIZE_BINS,
    TIMES,
    ProcessRow,
    TraceTables,
    by_life,
    lives,
    ranks_behind,
)

if TYPE_CHECKING:
    import sqlite3

    import pyarrow as pa

# Layers whose rows are calls of the program itself. MPI-IO describes the POSIX rows' bytes once more.
OWN_LAYERS = ("POSIX", "STDIO")
_WAIT_MIN_S, _WAIT_MIN_SHARE = 0.1, 0.1
SMALL_FILE_BYTES = 64 << 10
_SMALL_BINS = ("0_100", "100_1K", "1K_10K")

# Of the trial: sums over its files. A small file is one of the user's, of which each process moved little.
_SMALL_FILE = (
    f"belongs = '{USER}' AND OPENS > 0 AND moved_bytes > 0 AND moved_bytes <= {SMALL_FILE_BYTES} * processes"
)
_LIBRARY = "belongs IN ('library', 'missed')"
_COUNTED = (
    "SELECT count(DISTINCT path) AS files,"  # noqa: S608 - our own names
    " iif(count(*) = 0, 0, sum(OPENS)) AS opens, iif(count(*) = 0, 0, sum(STATS)) AS stats,"
    " iif(count(*) = 0, 0, sum(READS)) AS reads, iif(count(*) = 0, 0, sum(WRITES)) AS writes,"
    " sum(BYTES_READ) / nullif(sum(READS), 0) AS mean_read_bytes,"
    " sum(BYTES_WRITTEN) / nullif(sum(WRITES), 0) AS mean_write_bytes,"
    f" count(*) FILTER (WHERE {_SMALL_FILE}) AS small_files,"
    f" coalesce(sum(io_s) FILTER (WHERE {_SMALL_FILE}), 0) AS small_files_s,"
    f" avg(moved_bytes) FILTER (WHERE {_SMALL_FILE}) AS small_file_bytes,"
    f" avg(io_s) FILTER (WHERE {_SMALL_FILE}) AS small_file_s,"
    # Where empty reads are not counted, small ones stand for them, unless all reads of the file are small.
    " coalesce(sum(coalesce(empty_reads, iif(SIZE_READ_0_100 < READS,"
    " min(SIZE_READ_0_100, coalesce(OPENS, SIZE_READ_0_100)), 0)))"
    f" FILTER (WHERE belongs = '{USER}'), 0) AS end_reads,"
    " iif(coalesce(min(empty_reads IS NOT NULL), 0), 'nothing', 'at most 100 B') AS end_reads_brought,"
    f" count(*) FILTER (WHERE {_LIBRARY}) AS library_files,"
    f" coalesce(sum(io_s) FILTER (WHERE {_LIBRARY}), 0) AS library_s"
    " FROM files"
)


def _beyond(count: str, part: str) -> str:
    """How many are not in the part, never below 0, and 0 where it is not known.

    By SQLite's own `max`, which is no call of Python for each of a hundred thousand rows.
    """
    return f"max(coalesce({count} - {part}, 0), 0)"


# Names that rules may use besides the counters, each an SQL expression over their sums.
DERIVED: Mapping[str, str] = {
    "small_reads": " + ".join(f"SIZE_READ_{name}" for name in _SMALL_BINS),
    "small_writes": " + ".join(f"SIZE_WRITE_{name}" for name in _SMALL_BINS),
    "mean_read_bytes": "BYTES_READ / nullif(READS, 0)",
    "mean_write_bytes": "BYTES_WRITTEN / nullif(WRITES, 0)",
    "random_reads": _beyond("READS", "SEQ_READS"),
    "random_writes": _beyond("WRITES", "SEQ_WRITES"),
    "skipping_reads": _beyond("READS", "CONSEC_READS"),
    "skipping_writes": _beyond("WRITES", "CONSEC_WRITES"),
    "accesses": "coalesce(READS, 0) + coalesce(WRITES, 0)",
    "moved_bytes": "coalesce(BYTES_READ, 0) + coalesce(BYTES_WRITTEN, 0)",
    "syncs": "coalesce(FSYNCS, 0) + coalesce(FDSYNCS, 0)",
    "lookups": "coalesce(OPENS, 0) + coalesce(STATS, 0)",
    "io_s": "coalesce(F_READ_TIME, 0) + coalesce(F_WRITE_TIME, 0) + coalesce(F_META_TIME, 0.0)",
}


@dataclass(frozen=True)
class FileCost:
    """One path in one module: what was done with it, and how long that took. None is "not known".

    `belongs` is `user`, or the group of others that it is in (`counted/belongs.py`).
    """

    module: str
    path: str
    belongs: str
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


@dataclass(frozen=True)
class FileTally:
    """How many paths are the user's, what was moved there, and how many there are besides, by group.

    `looked_at` are the user's, too: nothing was opened or changed there.
    """

    own: int = 0
    looked_at: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    others: Mapping[str, int] = field(default_factory=dict)


@contextmanager
def views(tables: TraceTables, shared: Shares, speed: Speeds) -> Iterator[sqlite3.Connection]:
    """A connection with the tables `files`, `processes`, `copies` and `trial`. All numbers are fractions, so
    that a division is one, too.
    """
    own = _own_rows(tables.files)
    with sqlite_in_memory() as connection:
        _insert(connection, "file_rows", own)
        images = _images(tables.processes)
        _insert(connection, "images", {name: [one[name] for one in images] for name in _IMAGE})
        _insert(connection, "ancestors", {"path": ancestors(tables.files["path"].unique().to_pylist())})
        belongs = belongs_sql(named_places(tables.commands()))
        rows = len(own["path"])
        added = rows != len(set(zip(own["module"], own["path"], strict=True)))
        query = _files_query(belongs, added=added, timed=times_known(tables))
        connection.execute(f"CREATE TEMP TABLE files AS {query}")
        found: dict[str, list[dict[str, Any]]] = {
            "processes": [_process(images) for images in by_life(tables.processes)],
            "copies": _copies(tables, shared),
            "trial": [_trial(tables, shared, speed, connection)],
        }
        for name, values in found.items():
            if values:  # without a process there is nothing to judge by rules
                _insert(connection, name, {column: [one[column] for one in values] for column in values[0]})
        yield connection


def _own_rows(files: pa.Table) -> dict[str, list[Any]]:
    """The columns of the rows of OWN_LAYERS. What is null is no number (NaN), which SQLite keeps as null."""
    import pyarrow as pa
    import pyarrow.compute as pc

    module = files["module"].cast(pa.string())
    own = files.filter(pc.is_in(module, value_set=pa.array(OWN_LAYERS)))
    texts = ("module", "path")
    return {
        name: own[name].to_pylist() if name in texts else own[name].cast(pa.float64()).to_numpy().tolist()
        for name in own.column_names
    }


def _insert(connection: sqlite3.Connection, name: str, columns: Mapping[str, Sequence[Any]]) -> None:
    """A table of columns of texts, and of numbers as fractions."""
    kinds = {
        column: "TEXT"
        if isinstance(next((value for value in values if value is not None), None), str)
        else "REAL"
        for column, values in columns.items()
    }
    words = ", ".join(f'"{column}" {kind}' for column, kind in kinds.items())
    connection.execute(f"CREATE TEMP TABLE {name} ({words})")
    places = ", ".join("?" * len(columns))
    connection.executemany(
        f"INSERT INTO {name} VALUES ({places})",  # noqa: S608 - our own names
        zip(*columns.values(), strict=True),
    )


_IMAGE = ("copy", "process", "life", "ranks")


def _images(rows: Sequence[ProcessRow]) -> list[dict[str, int]]:
    """For each row of `processes` which process it is of, and how many processes it stands for."""
    first, ranks = lives(rows), ranks_behind(rows)
    places = [(row.copy, row.process) for row in rows]
    return [
        {"copy": place[0], "process": place[1], "life": first[place], "ranks": ranks[place]}
        for place in places
    ]


def _files_query(belongs: str, *, added: bool, timed: bool) -> str:
    highest = {"MAX_BYTE_READ", "MAX_BYTE_WRITTEN", "FILE_ALIGNMENT", "F_MAX_READ_TIME", "F_MAX_WRITE_TIME"}
    parts = []
    for name in (*COUNTERS, *TIMES, *OWN_COUNTERS):
        how = "sum"
        if name in highest or name.endswith("_END_TIMESTAMP"):
            how = "max"
        elif name.endswith("_START_TIMESTAMP"):
            how = "min"
        known = timed or not name.endswith("_TIME")
        parts.append((f"{how}({name}) AS {name}" if added else name) if known else f"NULL AS {name}")
    derived = ", ".join(f"{text} AS {name}" for name, text in DERIVED.items())
    # A record that all ranks share stands for each of them, and never for one more.
    processes = (
        "max(count(DISTINCT copy || ' ' || life), coalesce(max(ranks), 0))" if added else "coalesce(ranks, 1)"
    )
    inner = (
        f"SELECT module, path, {processes} AS processes, "  # noqa: S608 - our own names
        f"{', '.join(parts)}"
        f" FROM file_rows LEFT JOIN images USING (copy, process)"
        f"{' GROUP BY module, path' if added else ''}"
    )
    with_derived = f"SELECT *, {derived} FROM ({inner})"  # noqa: S608
    return f"SELECT *, {belongs} AS belongs FROM ({with_derived})"  # noqa: S608


def files_by_cost(connection: sqlite3.Connection, limit: int) -> tuple[FileCost, ...]:
    """The files that took longest, then by bytes; the user's stand before all others."""
    rows = connection.execute(
        "SELECT module, path, belongs, processes, BYTES_READ, BYTES_WRITTEN, READS, WRITES, OPENS, STATS,"
        " F_READ_TIME, F_WRITE_TIME, F_META_TIME, io_s FROM files"
        " ORDER BY belongs = 'user' DESC, belongs = 'looked' DESC, io_s DESC, moved_bytes DESC, path LIMIT ?",
        [limit],
    ).fetchall()
    found = []
    for module, path, belongs, processes, *rest in rows:
        counts: list[Any] = [whole(one) for one in rest[:6]]
        found.append(FileCost(module, path, belongs, int(processes), *counts, *rest[6:]))
    return tuple(found)


def tally(connection: sqlite3.Connection) -> FileTally:
    """The paths by whose they are; one that two layers know is one, the user's where one of them says so."""
    rows = connection.execute(
        "SELECT belongs, count(DISTINCT path), coalesce(sum(BYTES_READ), 0),"
        " coalesce(sum(BYTES_WRITTEN), 0) FROM files"
        " WHERE belongs = ?1 OR path NOT IN (SELECT path FROM files WHERE belongs = ?1) GROUP BY belongs",
        [USER],
    ).fetchall()
    known = {str(row[0]): tuple(map(int, row[1:])) for row in rows}
    own, read, written = known.pop(USER, (0, 0, 0))
    looked_at = known.pop(LOOKED_AT, (0,))[0]
    return FileTally(
        own, looked_at, read, written, {kind: int(row[0]) for kind, row in sorted(known.items())}
    )


def access_sizes(connection: sqlite3.Connection) -> dict[str, dict[str, int]]:
    """Accesses by Darshan's bins of sizes, of reads and of writes; empty where they were not counted."""
    found = {}
    for way in ("READ", "WRITE"):
        sums = ", ".join(f"sum(SIZE_{way}_{name})" for name in SIZE_BINS)
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


def _process(images: Sequence[ProcessRow]) -> dict[str, Any]:
    """One process, from its first image to its last, whose command it is known by."""
    first, last = images[0], images[-1]
    seconds = [_seconds(row) for row in images]
    spent = {kind: _added([one.get(kind) for one in seconds]) for kind in KINDS}
    calls = calls_of(images)
    return {
        "copy": last.copy,
        "process": first.process,
        "command": last.command,
        "executable": last.executable,
        "life_s": None if last.ended_ns is None else (last.ended_ns - first.started_ns) / 1e9,
        **{f"{kind}_s": spent[kind] for kind in KINDS},
        "io_s": _io_s(spent),
        "bytes_read": sum(row.bytes_read for row in images),
        "bytes_written": sum(row.bytes_written for row in images),
        "calls": sum(calls.values()),
    }


def _each(seconds: float | None, calls: int | None) -> float | None:
    return seconds / calls if seconds is not None and calls else None


def _io_s(seconds: Mapping[str, float | None]) -> float | None:
    """All I/O time; None where that of reads, writes or metadata is not known. Syncs may be among writes."""
    if None in (seconds["read"], seconds["write"], seconds["meta"]):
        return None
    return float(sum(value or 0.0 for value in seconds.values()))


def _seconds(row: ProcessRow) -> dict[str, float | None]:
    return json.loads(row.seconds or "null") or {}


def _added(values: Sequence[float | None]) -> float | None:
    """The sum; None where one of them is not known."""
    known = [value for value in values if value is not None]
    return float(sum(known)) if values and len(known) == len(values) else None


def _copies(tables: TraceTables, shared: Shares) -> list[dict[str, Any]]:
    walls = copy_seconds(tables)
    return [
        {"copy": part.copy, "run_s": walls.get(part.copy or 0), "base_s": part.base_s, **_parts(part)}
        for part in shared.copies
    ]


def _parts(part: Any) -> dict[str, float | None]:
    shares = {f"{kind}_share": getattr(part, kind) for kind in (*KINDS, *RESTS)}
    # Where nobody knows what was waited for, no cause is ruled out; but a short wait is none to look into.
    most_s = max(_WAIT_MIN_S, _WAIT_MIN_SHARE * part.base_s)
    known = part.wait is not None and part.waits.get("unknown", 0.0) < most_s
    waits = {f"wait_{cause}_s": part.waits.get(cause, 0.0 if known else None) for cause in CAUSES}
    return {**shares, **{f"{kind}_s": part.seconds.get(kind) for kind in KINDS}, **waits}


def _trial(
    tables: TraceTables, shared: Shares, speed: Speeds, connection: sqlite3.Connection
) -> dict[str, Any]:
    """The trial as a whole. What is counted here are the columns of the files, as in the table beside it."""
    whole = shared.whole
    # Copies that did not run at once wait for no other.
    walls = list(copy_seconds(tables).values()) if tables.extra.get("at_once", True) else []
    slowest = slowest_process(tables)
    counted = connection.execute(_COUNTED)
    named = dict(zip((column[0] for column in counted.description), counted.fetchone(), strict=True))
    return {
        "run_s": speed.wall_s,
        "run_most_s": tables.extra.get("wall_most_s", speed.wall_s),
        "processes": len(by_life(tables.processes)),
        "base_s": whole.base_s,
        **_parts(whole),
        "io_s": _io_s(whole.seconds),
        **named,
        "mean_read_s": _each(whole.seconds["read"], named["reads"]),
        "mean_write_s": _each(whole.seconds["write"], named["writes"]),
        "faults_major": faults_major(tables),
        "mapped_files": len(mapped_files(connection, speed.bytes_read + speed.bytes_written)),
        "bytes_read": speed.bytes_read,
        "bytes_written": speed.bytes_written,
        "copies": len(shared.copies),
        "slowest_copy_s": max(walls, default=None),
        "mean_copy_s": sum(walls) / len(walls) if walls else None,
        **slowest_columns(slowest),
        "calls": sum(calls_of(tables.processes).values()),
    }
