"""From what the engine and the observers reported to the rows of the tables."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from leadline import _core
from leadline.counters.catalogue import trial_figures
from leadline.foreign import reading
from leadline.observe.reading import Delta, Sample
from leadline.plan.model import PlannedCell, Trial
from leadline.run.child import Answer
from leadline.store.tables import LatencyRow, SeriesRow, TrialRow, TrialState

WHOLE = -1
_OTHER_RECORD = "remove it, and run the trial again: leadline run --resume DIR"
_DIRECTIONS = ("read", "write", "sync")


def read_engine_record(path: Path) -> dict[str, Any]:
    """The engine's record of a trial; an empty one when the trial ended before its first byte.

    Raises ResultError where what is there is no record of an engine of this version.
    """
    if not path.exists():
        return {"header": None, "intervals": [], "summary": None, "truncated": True}
    with reading(path, _OTHER_RECORD):
        record = _core.read_record(str(path))
        for name in ("header", "summary"):
            if not isinstance(record[name], dict | None):
                raise ValueError(f"its {name} is no object of JSON")
        return record


def trial_state(answer: Answer) -> TrialState:
    """How the trial ended, in the table's words."""
    if answer.outcome == "done":
        states: dict[str, TrialState] = {
            "complete": "complete",
            "error": "error",
            "interrupted": "interrupted",
            "deadline": "hung",
        }
        return states[answer.value["state"]]
    if answer.outcome in ("interrupted", "hung"):
        return "interrupted" if answer.outcome == "interrupted" else "hung"
    return "error"


def trial_error(answer: Answer) -> str | None:
    """What went wrong, in one line; None when nothing did."""
    if answer.outcome != "done":
        return "; ".join(part for part in (answer.message, answer.remedy) if part)
    error = answer.value.get("error")
    if error:
        where = f" of {error['file']} at offset {error['offset']}" if error.get("file") else ""
        words, message = f"{error.get('operation') or 'I/O'}{where}: ", str(error["message"])
        # The engine's own messages say where, as they do wherever else they are shown.
        return f"{'' if message.startswith(words) else words}{message} ({error['kind']})"
    if answer.value["state"] == "deadline" and answer.value.get("copies") is not None:
        stuck = ", ".join(str(pid) for pid in answer.value["stuck_threads"])
        return f"copies could not be ended: processes {stuck} are stuck in the kernel; see /proc/PID/stack"
    if answer.value["state"] == "deadline":
        threads = ", ".join(str(thread) for thread in answer.value.get("stuck_threads", ()))
        return (
            f"I/O did not end by its deadline: process {answer.pid} (threads {threads}) is stuck"
            f" in the kernel; look at /proc/{answer.pid}/stack and at the server behind the mount"
        )
    return None


def build_trial_row(
    trial: Trial,
    cell: PlannedCell,
    answer: Answer,
    record: Mapping[str, Any],
    change: Delta,
    caches_dropped: bool,
    peaks: Mapping[str, int | None] | None = None,
) -> TrialRow:
    """The row of table `trials`. `peaks`: what samples saw of the cluster at worst."""
    summary = answer.value or record["summary"] or _summary_of_intervals(record)
    counted, total = (all_directions(as_data(summary[part])) for part in ("directions", "total"))
    pacer = summary.get("pacer") or {}
    busy = [
        thread["busy_share"] for thread in summary.get("threads", ()) if thread.get("busy_share") is not None
    ]
    steady = summary.get("steady") or {}
    return TrialRow(
        trial=trial.id,
        cell=cell.id,
        target=cell.target,
        work=cell.work,
        block=trial.block,
        order=trial.order,
        seed=trial.seed,
        state=trial_state(answer),
        error=trial_error(answer),
        started_unix_ns=summary["started_unix_ns"],
        ramp_ns=summary["ramp_ns"],
        measured_ns=summary["measured_ns"],
        first_done_ns=summary["first_done_ns"],
        last_done_ns=summary["last_done_ns"],
        read_bytes=counted["read"]["bytes"],
        read_operations=counted["read"]["operations"],
        write_bytes=counted["write"]["bytes"],
        write_operations=counted["write"]["operations"],
        sync_operations=counted["sync"]["operations"],
        total_read_bytes=total["read"]["bytes"],
        total_write_bytes=total["write"]["bytes"],
        cpu_user_ns=summary["cpu_user_ns"],
        cpu_system_ns=summary["cpu_system_ns"],
        busy_share_max=max(busy, default=None),
        late_ns_max=pacer.get("late_ns_max"),
        late_ns_mean=pacer.get("late_ns_mean"),
        unwritten_blocks=summary["unwritten_blocks_read"],
        verified_blocks=summary["verified_blocks"],
        **_observed(change, summary, peaks or {}),
        caches_dropped=caches_dropped,
        job=json.dumps(cell.job.as_json()),
        factors=json.dumps(cell.factors),
        threads=json.dumps(summary.get("threads", [])),
        summary=json.dumps(summary),
        reasons=json.dumps(dict(change.reasons)),
        sources=json.dumps(dict(change.sources)),
        start_state=json.dumps(change.state_start.as_json() if change.state_start else None),
        end_state=json.dumps(change.state_end.as_json() if change.state_end else None),
        group=cell.group,
        start_skew_ns=summary.get("start_skew_ns"),
        steady=steady.get("steady"),
        steady_range=steady.get("range"),
        steady_slope=steady.get("slope"),
    )


def _observed(change: Delta, summary: Mapping[str, Any], peaks: Mapping[str, int | None]) -> dict[str, Any]:
    """What observers saw; of figures that each job has for itself its worker knows better."""
    own = {figure.name: summary.get(figure.name) for figure in trial_figures() if figure.each_job}
    return {**change.figures(), **own, **peaks}


# Metadata operations that move data, and the direction in which they do.
_MOVES = {"first_byte": "read", "create": "write"}


def as_data(found: Mapping[str, Mapping[str, int]]) -> dict[str, Mapping[str, int]]:
    """Bytes of metadata operations count as read and written; their numbers are in `summary` alone."""
    moved = {
        direction: {"bytes": found[operation]["bytes"]}
        for operation, direction in _MOVES.items()
        if operation in found
    }
    return {**found, **moved}


def all_directions(found: Mapping[str, Mapping[str, int]]) -> dict[str, dict[str, int]]:
    """Counts of every direction; the engine names those that the job uses, and the others are truly 0."""
    return {name: {"bytes": 0, "operations": 0, **found.get(name, {})} for name in _DIRECTIONS}


def _summary_of_intervals(record: Mapping[str, Any]) -> dict[str, Any]:
    """What can be said of a trial whose worker was lost: the intervals that it had written."""
    intervals = [i for i in record["intervals"] if i["measured"]]
    ramp = [i["end_ns"] for i in record["intervals"] if not i["measured"]]
    directions = dict.fromkeys((*_DIRECTIONS, *(i["direction"] for i in record["intervals"])))

    def count(chosen: Sequence[Mapping[str, Any]], direction: str) -> dict[str, int]:
        rows = [i for i in chosen if i["direction"] == direction]
        return {
            "bytes": sum(i["bytes"] for i in rows),
            "operations": sum(i["operations"] for i in rows),
            "short": 0,
        }

    start, end = max(ramp, default=0), max((i["end_ns"] for i in intervals), default=0)
    return {
        "directions": {d: count(intervals, d) for d in directions},
        "total": {d: count(record["intervals"], d) for d in directions},
        "started_unix_ns": 0,
        "ramp_ns": start,
        "measured_ns": max(end - start, 0),
        "first_done_ns": 0,
        "last_done_ns": 0,
        "cpu_user_ns": 0,
        "cpu_system_ns": 0,
        "unwritten_blocks_read": 0,
        "verified_blocks": 0,
    }


def build_latency_rows(trial: str, record: Mapping[str, Any]) -> list[LatencyRow]:
    """One row per interval, direction and clock, and one for the whole measured interval of each."""
    rows = []
    whole: dict[tuple[str, str], list[LatencyRow]] = {}
    for interval in record["intervals"]:
        for clock, blob in interval["histograms"].items():
            if blob is None or not interval["operations"]:
                continue
            row = latency_row(
                trial,
                interval["direction"],
                clock,
                interval["index"],
                (interval["start_ns"], interval["end_ns"]),
                interval["measured"],
                blob,
            )
            rows.append(row)
            if row.measured:
                whole.setdefault((row.direction, clock), []).append(row)
    for (direction, clock), parts in whole.items():
        merged = _core.histogram_merge([part.histogram for part in parts])
        bounds = (min(p.start_ns for p in parts), max(p.end_ns for p in parts))
        rows.append(latency_row(trial, direction, clock, WHOLE, bounds, True, merged))
    return rows


def latency_row(
    trial: str,
    direction: str,
    clock: str,
    interval: int,
    bounds: tuple[int, int],
    measured: bool,
    blob: bytes,
) -> LatencyRow:
    found = _core.histogram_summary(blob)
    p50, p99 = _core.histogram_percentiles(blob, [50.0, 99.0])
    return LatencyRow(
        trial=trial,
        direction=direction,
        clock=clock,
        interval=interval,
        start_ns=bounds[0],
        end_ns=bounds[1],
        measured=measured,
        operations=int(found["count"]),
        min_ns=int(found["min"]),
        mean_ns=found["mean"],
        max_ns=int(found["max"]),
        p50_ns=p50,
        p99_ns=p99,
        histogram=blob,
    )


def build_series_rows(
    trial: str, record: Mapping[str, Any], samples: Sequence[Sample], started_unix_ns: int
) -> list[SeriesRow]:
    """The engine's series and the observers' samples on one clock: ns since the trial's start."""
    rows = list(_engine_series(trial, record))
    rows += [
        SeriesRow(trial, s.t_ns - started_unix_ns, s.source, s.subject, s.metric, s.value, s.unit)
        for s in samples
    ]
    return rows


def _engine_series(trial: str, record: Mapping[str, Any]) -> Iterator[SeriesRow]:
    lengths = [interval["end_ns"] - interval["start_ns"] for interval in record["intervals"]]
    for interval, length_ns in zip(record["intervals"], lengths, strict=True):
        if length_ns <= 0 or length_ns * 2 < max(lengths):
            continue  # what is in flight at the end drains in a stub of an interval: no rate of its own
        seconds = length_ns / 1e9
        values = (
            ("bandwidth", interval["bytes"] / seconds, "B/s"),
            ("iops", interval["operations"] / seconds, "1/s"),
            ("in_flight", interval["in_flight_mean"], "1"),
            ("late_max", interval["late_ns_max"], "ns"),
        )
        for metric, value, unit in values:
            if value is not None:
                yield SeriesRow(
                    trial, interval["end_ns"], "engine", interval["direction"], metric, float(value), unit
                )
