"""Small traces for tests, each value overridable: a process, a file, a segment, and whole tables."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from leadline.tracing.tables import (
    ProcessRow,
    TraceLatencyRow,
    TraceTables,
    files_schema,
    segments_schema,
)

SECOND = 1_000_000_000


def process(number: int = 0, **changes: Any) -> ProcessRow:
    """A process of one second that read for a tenth of it."""
    values: dict[str, Any] = {
        "copy": 0,
        "process": number,
        "parent": None,
        "pid": 100 + number,
        "executable": "/usr/bin/tar",
        "command": "tar xf a.tar",
        "mode": "preload",
        "started_ns": 0,
        "ended_ns": SECOND,
        "end": "exit",
        "status": 0,
        "threads": 1,
        "bytes_read": 4096,
        "bytes_written": 0,
        "calls": {"openat": 1, "read": 2},
        "seconds": {"read": 0.1, "write": 0.0, "meta": 0.0, "sync": 0.0},
        "lost": {},
        "notes": [],
        **changes,
    }
    for name in ("calls", "seconds", "lost", "notes"):
        values[name] = json.dumps(values[name])
    return ProcessRow(**values)


def file_row(number: int = 0, **counters: Any) -> dict[str, Any]:
    """A row of table `files`; counters that are not named are null."""
    fixed = {"copy": 0, "process": 0, "file": number, "module": "POSIX", "path": f"/data/{number}"}
    return {**fixed, **counters}


def segment(**changes: Any) -> dict[str, Any]:
    """A pread of 4 KiB at the start that took a millisecond."""
    values = {
        "copy": 0,
        "process": 0,
        "thread": 100,
        "file": 0,
        "call": "pread64",
        "offset": 0,
        "length": 4096,
        "result": 4096,
        "start_ns": 0,
        "duration_ns": 1_000_000,
    }
    return {**values, **changes}


def files_table(rows: Iterable[Mapping[str, Any]]) -> pa.Table:
    """Rows as table `files`."""
    return pa.Table.from_pylist([dict(row) for row in rows], schema=files_schema())


def segments_table(rows: Iterable[Mapping[str, Any]]) -> pa.Table:
    """Rows as table `segments`."""
    found = list(rows)
    columns = {
        item.name: pa.array([row[item.name] for row in found], pa.string())
        .dictionary_encode()
        .cast(item.type)
        if pa.types.is_dictionary(item.type)
        else pa.array([row[item.name] for row in found], item.type)
        for item in segments_schema()
    }
    return pa.table(columns, schema=segments_schema())


def histogram_rows(kinds: Iterable[str] = ("read",)) -> tuple[TraceLatencyRow, ...]:
    """No histogram can be made here; use one of the engine's where its content matters."""
    return tuple(TraceLatencyRow(0, 0, kind, 0, b"") for kind in kinds)


def tables(**changes: Any) -> TraceTables:
    """One process that read one file."""
    values: dict[str, Any] = {
        "mode": "preload",
        "processes": (process(),),
        "files": files_table([file_row(READS=2, BYTES_READ=4096, F_READ_TIME=0.1)]),
        **changes,
    }
    return TraceTables(**values)
