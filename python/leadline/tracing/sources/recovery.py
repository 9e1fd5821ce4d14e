"""Reads what a killed `leadline trace` recorded: the logs of the preloaded library outlive leadline.

The library writes each log through a shared mapping, so a log is whole up to the last call of its process.
What only leadline sees is lost with it: how the command ended, and how long its processes waited for what.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from leadline.errors import ResultError
from leadline.foreign import reading
from leadline.tracing.join import join_copies
from leadline.tracing.sources.launch import known_here
from leadline.tracing.sources.preload import LOG_SUFFIX, read_logs
from leadline.tracing.tables import TraceTables

WARNING = (
    "recovered from the records of a trace that was not stored as it ended: how the command ended, and what"
    " it waited for, is not known; time 0 is the first record"
)


def recovered_tables(logs: Path, copies: int) -> TraceTables:
    """The tables of one trial from the logs below `logs`, in `copy-N` of each copy.

    Raises ResultError where nothing was recorded.
    """
    with reading(logs, "trace the command again"):
        directories = {copy: logs / f"copy-{copy}" for copy in range(copies)}
        starts = [
            start for directory in directories.values() if directory.is_dir() for start in _starts(directory)
        ]
        if not starts:
            raise ResultError(f"{logs} holds no record: the command had not begun", "trace the command again")
        parts = [
            read_logs(directory, started_unix_ns=min(starts), copy=copy)
            for copy, directory in directories.items()
            if directory.is_dir()
        ]
    tables = known_here(join_copies(parts))
    ends = [row.ended_ns for row in tables.processes if row.ended_ns is not None]
    known: dict[str, Any] = {"wall_s": max(ends, default=0) / 1e9}
    return replace(tables, extra={**tables.extra, **known}, warnings=(WARNING, *tables.warnings))


def _starts(directory: Path) -> list[int]:
    """When the processes of a copy began to record (unix, ns): their logs are named PID-NS."""
    ends = (path.stem.partition("-")[2] for path in directory.iterdir() if path.suffix == LOG_SUFFIX)
    return [int(text) for text in ends if text.isascii() and text.isdigit()]
