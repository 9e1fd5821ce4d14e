"""Follows the copies of a trial with the planned tracer, and stores what it recorded beside the result.

A trace that fails costs its figures and says why; the run times of the trial stand without it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from leadline import units
from leadline.errors import LeadlineError
from leadline.interpreter import user_environment
from leadline.tracing.sources.launch import known_here
from leadline.tracing.sources.sources import Bounds, BpfSource, PreloadSource, Source
from leadline.tracing.store import write_tables
from leadline.tracing.tables import TraceTables

# Counters of about a million files in each process; calls are counted, not recorded one by one.
_BOUNDS = Bounds(segments_bytes=None, memory_bytes=256 * units.MIB)


class Follower:
    """One tracer for one trial, or none."""

    def __init__(self, source: Source | None) -> None:
        self._source = source

    def environment(self, copy: int) -> dict[str, str]:
        """What a copy starts with: the user's own environment, and what the tracer needs."""
        inherited = user_environment()
        return self._source.environment(copy, inherited) if self._source else inherited

    def follow(self, pid: int, copy: int) -> None:
        """A process waits to become a copy's command."""
        if self._source:
            self._source.follow(pid, copy)

    def store(
        self,
        result: Path,
        trial: str,
        summary: Mapping[str, Any],
        hear: Callable[[TraceTables], None] = lambda _: None,
    ) -> dict[str, Any]:
        """Store the tables of a complete trial, which `hear` is given; what is to be said in its summary."""
        if self._source is None or summary["state"] != "complete":
            return {}
        try:
            tables = known_here(self._source.finish(summary["started_unix_ns"]))
            write_tables(result, trial, replace(tables, extra={**tables.extra, **_known(summary)}))
            hear(tables)
        except (LeadlineError, OSError) as error:
            return {"trace_error": str(error).splitlines()[0]}
        return {"trace_lost": _lost(tables), "trace_warnings": list(tables.warnings)}


@contextmanager
def follower(mode: str, directory: Path) -> Iterator[Follower]:
    """The tracer of that mode; `directory` takes its logs while the trial runs."""
    if mode == "preload":
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        with PreloadSource(directory, _BOUNDS) as source:
            yield Follower(source)
    elif mode == "bpf":
        with BpfSource(_BOUNDS) as kernel_source:
            yield Follower(kernel_source)
    else:
        yield Follower(None)


def _known(summary: Mapping[str, Any]) -> dict[str, Any]:
    """What the tables say of a trial beyond rows, as `tracing.tables` has them."""
    return {
        "wall_s": summary["measured_ns"] / 1e9,
        "copies": [
            {
                "copy": copy["copy"],
                "wall_s": copy["wall_ns"] / 1e9,
                "end": "exit",
                "status": copy["exit"],
                "cpu_user_ns": copy["cpu_user_ns"],
                "cpu_system_ns": copy["cpu_system_ns"],
                "memory_bytes_max": copy["memory_max_bytes"],
            }
            for copy in summary["copies"]
        ],
    }


def _lost(tables: TraceTables) -> int:
    """Records that the tracer had no room for, of all processes."""
    lost = [json.loads(row.lost or "{}") for row in tables.processes]
    return sum(int(count) for kinds in lost for count in kinds.values())
