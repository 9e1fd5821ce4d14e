"""What fio printed of a trial, in the shape of a trial of our engine: sums, threads, and one interval.

A histogram travels as text with the worker's answer, and is taken out of it where the rows are made.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

from leadline import _core
from leadline.imported.fio import FioLatency, FioReport, FioRow
from leadline.run.interface import plain_summary
from leadline.workloads.io.fio.jobfile import MEASURED, RAMP

HISTOGRAMS = "histograms"
_CLOCKS = ("submission", "completion", "total")


def summary_of(report: FioReport, started_unix_ns: int) -> dict[str, Any]:
    """The summary of a trial. The ramp is in `total` alone."""
    ramp = [row for row in report.rows if row.name == RAMP]
    rows = [row for row in report.rows if row.name == MEASURED]
    ramp_ns = max((row.runtime_ns for row in ramp), default=0)
    measured_ns = max((row.runtime_ns for row in rows), default=0)
    failed = next((row for row in (*ramp, *rows) if row.error), None)
    return plain_summary(
        started_unix_ns,
        measured_ns,
        state="error" if failed or not rows else "complete",
        error=None if failed is None else _error(failed),
        directions=_sums(rows),
        total=_sums([*ramp, *rows]),
        threads=[{"busy_share": row.user_share + row.system_share} for row in rows],
        ramp_ns=ramp_ns,
        first_done_ns=ramp_ns + min((row.runtime_ns for row in rows), default=0),
        last_done_ns=ramp_ns + measured_ns,
        cpu_user_ns=round(sum(row.user_share * row.threads_ns for row in (*ramp, *rows))),
        cpu_system_ns=round(sum(row.system_share * row.threads_ns for row in (*ramp, *rows))),
        generator={"program": "fio", "version": report.version, "notes": _notes(report, rows)},
        **{HISTOGRAMS: _histograms(rows)},
    )


def _error(row: FioRow) -> dict[str, str]:
    return {"operation": f"fio's job {row.name}", "message": f"it ended with error {row.error}", "kind": "io"}


def _sums(rows: Sequence[FioRow]) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for one in (one for row in rows for one in row.directions):
        sums = found.setdefault(one.name, {"bytes": 0, "operations": 0, "short": 0})
        sums["bytes"] += one.bytes
        sums["operations"] += one.operations
    syncs = sum(row.syncs for row in rows)
    return found | ({"sync": {"bytes": 0, "operations": syncs, "short": 0}} if syncs else {})


def _notes(report: FioReport, rows: Sequence[FioRow]) -> list[str]:
    return list(dict.fromkeys([*report.notes, *(note for row in rows for note in row.notes)]))


def _histograms(rows: Sequence[FioRow]) -> dict[str, dict[str, str]]:
    """By direction and clock, where every job has bins of it."""
    found: dict[str, dict[str, str]] = {}
    for name in dict.fromkeys(one.name for row in rows for one in row.directions if one.operations):
        moved = [one for row in rows for one in row.directions if one.name == name and one.operations]
        for clock in _CLOCKS:
            kept = [one.latencies[clock] for one in moved if clock in one.latencies]
            if len(kept) == len(moved):
                found.setdefault(name, {}).update(_histogram(clock, kept))
    syncs = [row.sync_latency for row in rows if row.sync_latency is not None]
    if syncs and (own := _histogram("total", syncs)):
        found["sync"] = own
    return found


def _histogram(clock: str, kept: Sequence[FioLatency]) -> dict[str, str]:
    if not all(one.bins for one in kept):
        return {}
    blob = _core.histogram_of_counts([pair for one in kept for pair in one.bins])
    return {clock: base64.b64encode(blob).decode()}


def record_of(summary: dict[str, Any]) -> dict[str, Any]:
    """The record that our engine would have written: one interval for each direction, after the ramp.

    Takes the histograms out of `summary`.
    """
    start_ns = summary["ramp_ns"]
    end_ns = start_ns + summary["measured_ns"]
    intervals = [
        {
            "index": 0,
            "direction": name,
            "start_ns": start_ns,
            "end_ns": end_ns,
            "measured": True,
            "bytes": summary["directions"].get(name, {}).get("bytes", 0),
            "operations": summary["directions"].get(name, {}).get("operations", 0),
            "in_flight_mean": None,
            "late_ns_max": None,
            "histograms": {clock: base64.b64decode(blob) for clock, blob in clocks.items()},
        }
        for name, clocks in summary.pop(HISTOGRAMS, {}).items()
    ]
    return {"header": None, "intervals": intervals, "summary": None, "truncated": False}
