"""The keys `trace` and `traces` of `show --json`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from leadline.tracing.figures import KINDS, RESTS, Share
from leadline.tracing.model import TraceView
from leadline.tracing.words import cost_words


def traces_json(views: Sequence[TraceView]) -> dict[str, Any]:
    """The keys `trace`, of the first trial, and `traces`, of all where there are several."""
    found: dict[str, Any] = {"trace": trace_json(views[0])}
    if len(views) > 1:
        found["traces"] = [trace_json(view) for view in views]
    return found


def trace_json(view: TraceView) -> dict[str, Any]:
    """One trial's trace. What is not known is null."""
    speed = view.speeds
    return {
        "trial": view.trial,
        "mode": view.mode,
        "source": view.source,
        "lost": {"records": sum(view.lost.values()), **view.lost},
        "warnings": list(view.warnings),
        "notes": dict(view.notes),
        "totals": {
            "bytes_read": speed.bytes_read,
            "bytes_written": speed.bytes_written,
            "calls": dict(view.calls),
            "processes": view.processes_count,
            "files": view.counted.own,
            "files_looked_at": view.counted.looked_at,
            "other_files": dict(view.counted.others),
        },
        "speeds": {
            "wall_s": speed.wall_s,
            "wall_throughput": speed.wall_throughput,
            "agg_perf_by_slowest": speed.agg_perf_by_slowest,
            "posix_bytes": speed.posix_bytes,
            "slowest_io_s": speed.slowest_io_s,
            "reasons": dict(speed.reasons),
        },
        "shares": _share_json(view.whole),
        "slowest": None if view.slowest is None else asdict(view.slowest),
        "copies": [
            {
                "copy": item.copy,
                "run_s": item.run_s,
                "ended": item.ended,
                "bytes_read": item.bytes_read,
                "bytes_written": item.bytes_written,
                "cpu_s": item.cpu_s,
                "memory_bytes_max": item.memory_bytes_max,
                "faults_major": item.faults_major,
                "shares": _share_json(item.share),
            }
            for item in view.copies
        ],
        "findings": [{**_lists(asdict(item)), "words": cost_words(item, view)} for item in view.findings],
        "files": [asdict(item) for item in view.files],
        "mapped": [asdict(item) for item in view.mapped.files],
        "processes": [
            {
                **{name: getattr(item, name) for name in _PROCESS_FIELDS},
                "calls": dict(item.calls),
                "seconds": dict(item.seconds),
                "lost": dict(item.lost),
                "notes": list(item.notes),
            }
            for item in view.processes
        ],
    }


def _lists(values: dict[str, Any]) -> dict[str, Any]:
    return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}


_PROCESS_FIELDS = (
    "copy",
    "process",
    "life",
    "parent",
    "pid",
    "executable",
    "command",
    "started_s",
    "ended_s",
    "end",
    "status",
    "threads",
    "bytes_read",
    "bytes_written",
    "cpu_s",
)


def _share_json(share: Share) -> dict[str, Any]:
    return {
        "basis": share.basis,
        "base_s": share.base_s,
        "seconds": dict(share.seconds),
        **{kind: getattr(share, kind) for kind in (*KINDS, *RESTS)},
        "waits": dict(share.waits),
        "overlapped": share.overlapped,
    }
