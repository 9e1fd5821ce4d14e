"""An application's trial in figures: what each copy took and moved, and where its time went.

Times are seconds, sizes bytes. What a trace alone can tell is None without one, and `reasons` says so.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from leadline.analysis.statistics.means import typical
from leadline.store.tables import TrialRow

if TYPE_CHECKING:
    from leadline.tracing.tables import TraceTables

KINDS = ("read", "write", "sync", "meta")
_SMALL = "less than the process that started it, which is counted with it"
MOVING = ("read", "write", "sync")
NOT_TRACED = "the program's I/O was not traced"


@dataclass(frozen=True)
class CopyTrace:
    """What a trace says of one copy: seconds in calls by kind, over all its processes, and bytes of files.

    `perf_by_slowest` is bytes per second over the I/O time of the slowest process, which is what Darshan
    estimates at the POSIX layer. `share` is each kind's part of the run time, or of `base_s` where
    processes together lived longer. `overlapped`: I/O went on beside other I/O or beside computing, so that
    the remainder is not known.
    """

    seconds: Mapping[str, float]
    share: Mapping[str, float]
    bytes_read: int
    bytes_written: int
    perf_by_slowest: float | None
    overlapped: bool = False
    base_s: float | None = None


@dataclass(frozen=True)
class CopyFigures:
    """One copy of one trial. Without a trace, bytes are those of all read and write calls, pipes included."""

    copy: int
    run_time_s: float
    cpu_s: float
    memory_max_bytes: int | None
    bytes_read: float | None
    bytes_written: float | None
    trace: CopyTrace | None

    @property
    def transferred(self) -> float | None:
        """Bytes both ways."""
        known = self.bytes_read is not None and self.bytes_written is not None
        return (self.bytes_read or 0) + (self.bytes_written or 0) if known else None


def copy_traces(tables: TraceTables) -> dict[int, CopyTrace]:
    """What a trial's trace says of each copy; copies whose time in I/O it does not know are left out.

    Shares are of the copy's run time, as long as its processes together do not live longer: then of theirs.
    """
    import pyarrow.compute as pc

    from leadline.tracing.figures import copy_seconds, shares, speeds, wall_seconds

    found, run_s = {}, copy_seconds(tables)
    for part in shares(tables, wall_seconds(tables)).copies:
        if part.copy is None or part.read is None or part.write is None or part.meta is None:
            continue
        own = replace(
            tables,
            processes=tuple(row for row in tables.processes if row.copy == part.copy),
            files=tables.files.filter(pc.equal(tables.files["copy"], part.copy)),
            extra={},
        )
        speed = speeds(own, None)
        spent = {kind: part.seconds.get(kind) or 0.0 for kind in KINDS}
        base_s = max(part.base_s, run_s.get(part.copy, 0.0), 1e-9)
        found[part.copy] = CopyTrace(
            spent,
            {kind: seconds / base_s for kind, seconds in spent.items()},
            speed.bytes_read,
            speed.bytes_written,
            speed.agg_perf_by_slowest,
            part.overlapped,
            base_s,
        )
    return found


def account_of(trial: TrialRow) -> list[dict[str, Any]]:
    """What the worker wrote down of each copy; empty for a trial of another kind."""
    found = json.loads(trial.summary).get("copies")
    return [dict(copy) for copy in found] if isinstance(found, list) else []


def copies_of(trial: TrialRow, traces: Mapping[int, CopyTrace]) -> tuple[CopyFigures, ...]:
    """Every copy's figures; `traces` by copy, empty where the trial was not traced."""
    return tuple(_figures(copy, traces.get(int(copy["copy"]))) for copy in account_of(trial))


def _figures(account: Mapping[str, Any], trace: CopyTrace | None) -> CopyFigures:
    read, written = account.get("read_bytes"), account.get("write_bytes")
    return CopyFigures(
        copy=int(account["copy"]),
        run_time_s=account["wall_ns"] / 1e9,
        cpu_s=(account["cpu_user_ns"] + account["cpu_system_ns"]) / 1e9,
        memory_max_bytes=account["memory_max_bytes"],
        bytes_read=trace.bytes_read if trace else read,
        bytes_written=trace.bytes_written if trace else written,
        trace=trace,
    )


def application_metrics(copies: Sequence[CopyFigures]) -> tuple[dict[str, float], dict[str, str]]:
    """Metrics of a trial, each the mean over its copies but for `run_time_slowest`; reasons for the rest.

    As over blocks, the mean of times and rates is the geometric one, that of shares and bytes the plain one.
    """
    values: dict[str, float] = {}
    reasons: dict[str, str] = {}
    if not copies:
        return values, {"run_time": "no copy ended"}
    add = partial(_add, values, reasons)
    add("run_time", [copy.run_time_s for copy in copies], "a copy took no time", typical)
    values["run_time_slowest"] = max(copy.run_time_s for copy in copies)
    add("cpu_time", [copy.cpu_s for copy in copies], "", typical)
    add("memory_max", [copy.memory_max_bytes for copy in copies], _SMALL)
    add("bytes_read", [copy.bytes_read for copy in copies], "not readable from /proc")
    add("bytes_written", [copy.bytes_written for copy in copies], "not readable from /proc")
    wall = [None if c.transferred is None else c.transferred / c.run_time_s for c in copies if c.run_time_s]
    add("wall_throughput", wall, "not readable from /proc", typical)
    speeds = [copy.trace.perf_by_slowest if copy.trace else None for copy in copies]
    why = "no time was spent in I/O" if all(copy.trace for copy in copies) else NOT_TRACED
    add("agg_perf_by_slowest", speeds, why, typical)
    for kind in KINDS:
        shares = [copy.trace.share[kind] if copy.trace else None for copy in copies]
        add(f"{kind}_share", shares, NOT_TRACED)
    from leadline.tracing.figures import OVERLAPPED

    rests = [rest_shares(copy) for copy in copies]
    beside = any(copy.trace and copy.trace.overlapped for copy in copies)
    for name, place in (("compute_share", 0), ("wait_share", 1)):
        add(name, [rest[place] if rest else None for rest in rests], OVERLAPPED if beside else NOT_TRACED)
    both = [moving_s(copy.trace) if copy.trace else None for copy in copies]
    add("read_write_time", both, NOT_TRACED, typical)
    return values, reasons


def moving_s(trace: CopyTrace) -> float:
    """Seconds in reading and writing together, syncs among them, as in Darshan."""
    return sum(trace.seconds[kind] for kind in MOVING)


def rest_shares(copy: CopyFigures) -> tuple[float, float] | None:
    """What no call on a file took: (computing, as long as a CPU ran, and waiting for anything else).

    None where it was not traced or I/O overlapped: what was computed meanwhile is not known.
    """
    trace = copy.trace
    if trace is None or trace.overlapped:
        return None
    rest = max(0.0, 1 - sum(trace.share[kind] for kind in KINDS))
    base_s = trace.base_s or copy.run_time_s
    compute = min(rest, copy.cpu_s / base_s) if base_s > 0 else 0.0
    return compute, rest - compute


def _plain(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _add(
    values: dict[str, float],
    reasons: dict[str, str],
    name: str,
    found: Sequence[float | None],
    why: str,
    mean_of: Callable[[Sequence[float]], float | None] = _plain,
) -> None:
    known = [value for value in found if value is not None]
    mean = mean_of(known) if len(known) == len(found) else None
    if mean is not None:
        values[name] = mean
    else:
        reasons[name] = "a copy measured zero" if known and len(known) == len(found) else why
