"""What is computed of each trial: the metrics, their units, and which direction is good."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from leadline.analysis.costs import add_costs
from leadline.store.tables import LatencyRow, TrialRow
from leadline.workloads.application.figures import (
    CopyTrace,
    account_of,
    application_metrics,
    copies_of,
)
from leadline.workloads.coherence.figures import coherence_metrics
from leadline.workloads.coherence.job import LAGS, WORDS
from leadline.workloads.metadata.job import OPERATIONS

WHOLE = -1
LARGE_BLOCK_BYTES = 128 * 1024  # from here on people ask for bandwidth, below it for IOPS


@dataclass(frozen=True)
class MetricKind:
    """`unit` is the base unit; `higher_is_better` decides what "faster" means."""

    unit: str
    higher_is_better: bool
    words: str


_PERCENTILES = {"p50": 50.0, "p95": 95.0, "p99": 99.0, "p99.9": 99.9}

# A percentile is reported when at least this many operations lie beyond it.
_BEYOND_MIN = 10


# What an application's cells have besides: figures of a copy, the mean over those of a trial.
_OF_COPIES = {
    "read_write_time": MetricKind("s", False, "time in reading, writing and syncing"),
    "cpu_time": MetricKind("s", False, "CPU time"),
    "memory_max": MetricKind("B", False, "largest memory"),
}
APPLICATION_COMPARED = ("run_time", "read_write_time", "agg_perf_by_slowest")  # the first is what is asked


# What an operation, or a byte of it, costs the client besides time.
_COSTS = {
    "client_cpu_per_operation": MetricKind("ns", False, "CPU time of engine and client daemon per operation"),
    "wire_per_byte": MetricKind("B/B", False, "bytes on the wire per byte of work"),
    "wire_per_operation": MetricKind("B", False, "bytes on the wire per operation"),
}
COST_METRICS = tuple(_COSTS)
# What one way to a file system sees of another.
_SEEN: dict[str, MetricKind] = {
    **{f"seen_{name}": MetricKind("ns", False, f"time until seen: {WORDS[name]}") for name in LAGS},
    "shared_bandwidth": MetricKind("B/s", True, "bandwidth of two writers in one file"),
}


# What stands before a metric's name: the direction of a mixed work, or a metadata operation.
_PREFIXES = ("read", "write", "sync", "meta", *OPERATIONS)


# Of a whole program that was run, traced or imported, not of an engine's operations.
PROGRAM_METRICS = {
    "run_time": MetricKind("s", False, "run time, the mean of the copies"),
    "run_time_slowest": MetricKind("s", False, "run time of the slowest copy"),
    "wall_throughput": MetricKind("B/s", True, "bytes over run time"),
    "agg_perf_by_slowest": MetricKind("B/s", True, "bytes over the I/O time of the slowest process"),
    "bytes_read": MetricKind("B", False, "bytes read"),
    "bytes_written": MetricKind("B", False, "bytes written"),
    "io_time": MetricKind("s", False, "time in I/O, all processes"),
    "read_share": MetricKind("1", False, "share of reading"),
    "write_share": MetricKind("1", False, "share of writing"),
    "meta_share": MetricKind("1", False, "share of metadata"),
    "sync_share": MetricKind("1", False, "share of syncs"),
    "compute_share": MetricKind("1", True, "share of computing, the remainder"),
}


def metric_operation(name: str) -> str | None:
    """The metadata operation that a metric is of; None for a metric of data."""
    return next((operation for operation in OPERATIONS if name.startswith(f"{operation}_")), None)


STAGE_TIME = "stage_time_"


def metric_stage(name: str) -> str | None:
    """The stage of a pipeline that a metric is the time of; None for every other metric."""
    return name.removeprefix(STAGE_TIME) if name.startswith(STAGE_TIME) else None


def _stage_kind(name: str) -> MetricKind | None:
    stage = metric_stage(name)
    return None if stage is None else MetricKind("s", False, f"time of stage {stage}")


def stage_names(job: Mapping[str, object]) -> tuple[str, ...]:
    """The stages of a pipeline's JSON, in order; none for every other job."""
    found = job.get("pipeline")
    return tuple(str(stage["stage"]) for stage in found) if isinstance(found, list | tuple) else ()


def operation_label(work: str, operation: str) -> str:
    """How one operation of a metadata work is named where each has a line."""
    return work if work == operation else f"{work} {operation}"


def metric_kind(name: str) -> MetricKind:
    """The kind of a metric, by its name with or without a direction or an operation in front."""
    of_program = PROGRAM_METRICS.get(name) or _OF_COPIES.get(name) or (_COSTS | _SEEN).get(name)
    of_program = of_program or _stage_kind(name)
    if of_program is not None:
        return of_program
    before = next((prefix for prefix in _PREFIXES if name.startswith(f"{prefix}_")), None)
    plain = name if before is None else name.removeprefix(f"{before}_")
    if plain == "bandwidth":
        return MetricKind("B/s", True, "bandwidth")
    if plain.startswith("rate_at_"):
        return MetricKind(
            "1/s", True, f"highest rate held, {plain.removeprefix('rate_at_').replace('_', ' under ')}"
        )
    if plain == "iops":
        return MetricKind("1/s", True, "operations per second")
    if plain == "run_time":
        return MetricKind("s", False, "time from the first call to the last one's end")
    if plain == "io_time":
        return MetricKind("s", False, "time in calls, summed over threads")
    if plain == "cpu_per_operation":
        return MetricKind("ns", False, "CPU time of the load generator per operation")
    return MetricKind("ns", False, f"latency, {plain.removeprefix('latency_')}")


def known_metrics() -> tuple[str, ...]:
    """All names that a cell can have."""
    latency = ("latency_mean", *(f"latency_{p}" for p in _PERCENTILES), "latency_max")
    plain = ("bandwidth", "iops", *latency)
    return (
        *plain,
        "cpu_per_operation",
        *COST_METRICS,
        *_SEEN,
        *(f"{d}_{m}" for d in ("read", "write") for m in plain),
        "sync_latency_mean",
        *("run_time", "io_time", *(f"{d}_{m}" for d in ("meta", "sync") for m in latency)),
        *(f"{operation}_{m}" for operation in OPERATIONS for m in ("iops", *latency)),
        *_OF_COPIES,
        *PROGRAM_METRICS,
    )


def primary_metric(job: Mapping[str, object]) -> str:
    """What a work is asked for: bandwidth for large blocks, IOPS for small ones, a program's run time."""
    if "script" in job:
        # With the recorded pauses most of the time is the program's own.
        return "io_time" if job["pace"] == "recorded" else "run_time"
    if "command" in job:
        return APPLICATION_COMPARED[0]
    if "questions" in job:
        return "shared_bandwidth"
    size = job["bs"]
    return "bandwidth" if isinstance(size, int) and size >= LARGE_BLOCK_BYTES else "iops"


def default_metrics(job: Mapping[str, object]) -> tuple[str, ...]:
    """What two cells of a work are compared in where the study does not say: a rate and a tail latency.

    Of metadata each operation has its own; a rate over all of them would say how they were mixed.
    """
    if "script" in job:
        moved = [name for name in ("read", "write") if job[f"{name}_bytes"]]
        return (primary_metric(job), *(f"{name}_latency_p99" for name in moved))
    if "pipeline" in job:
        return (APPLICATION_COMPARED[0], *(f"{STAGE_TIME}{name}" for name in stage_names(job)))
    if "questions" in job:
        return ()  # a writer's readers are no alternatives to each other
    if "command" in job:
        return APPLICATION_COMPARED[: 1 if job.get("trace") == "off" else None]
    operations = job.get("operations")
    if isinstance(operations, list | tuple):
        return (*(f"{name}_iops" for name in operations), *(f"{name}_latency_p99" for name in operations))
    mixed = job["rw"] in ("rw", "randrw")
    latencies = ("read_latency_p99", "write_latency_p99") if mixed else ("latency_p99",)
    return (primary_metric(job), *latencies)


@dataclass(frozen=True)
class Measured:
    """A trial's metrics; a metric without a value has its reason instead."""

    values: Mapping[str, float]
    reasons: Mapping[str, str]


def trial_metrics(
    trial: TrialRow,
    latency: Sequence[LatencyRow],
    open_loop: bool,
    traces: Mapping[int, CopyTrace] | None = None,
) -> Measured:
    """Every metric of one trial. `latency` are this trial's rows, `traces` those of its copies."""
    if account_of(trial):
        of_copies, lacking = application_metrics(copies_of(trial, traces or {}))
        return Measured({**of_copies, **_stage_times(trial)}, lacking)
    phases = operation_phases(trial)
    if phases:
        return _operation_metrics(trial, phases, latency)
    summary = json.loads(trial.summary)
    if "coherence" in summary:
        return Measured(*coherence_metrics(trial))
    if "replay" in summary:
        return _replay_metrics(trial, summary["directions"], latency)
    values: dict[str, float] = {}
    reasons: dict[str, str] = {}
    seconds = trial.measured_ns / 1e9
    amounts = {
        "read": (trial.read_bytes, trial.read_operations),
        "write": (trial.write_bytes, trial.write_operations),
    }
    used = [name for name, (_, operations) in amounts.items() if operations]
    if seconds <= 0 or not used:
        return Measured(
            {},
            {name: "no operation was completed in the measured interval" for name in ("bandwidth", "iops")},
        )
    for name in used if len(used) > 1 else ():
        values[f"{name}_bandwidth"] = amounts[name][0] / seconds
        values[f"{name}_iops"] = amounts[name][1] / seconds
    values["bandwidth"] = sum(amounts[name][0] for name in used) / seconds
    operations = sum(amounts[name][1] for name in used)
    values["iops"] = operations / seconds
    clock = "intended" if open_loop else "total"
    for name in (*used, *(("sync",) if trial.sync_operations else ())):
        prefix = f"{name}_" if len(used) > 1 or name == "sync" else ""
        _add_latency(values, reasons, prefix, [row for row in latency if _is(row, name, clock)])
    cpu_ns = trial.cpu_user_ns + trial.cpu_system_ns
    every = _all_operations(trial) or operations
    if cpu_ns > 0:
        values["cpu_per_operation"] = cpu_ns / every
    add_costs(values, reasons, trial, every)
    return Measured(values, reasons)


def _stage_times(trial: TrialRow) -> dict[str, float]:
    """How long each stage of a pipeline took, the mean over the clients."""
    seconds: dict[str, list[float]] = {}
    for stage in json.loads(trial.summary).get("stages") or ():
        seconds.setdefault(str(stage["stage"]), []).append(float(stage["seconds"]))
    return {f"{STAGE_TIME}{name}": sum(found) / len(found) for name, found in seconds.items()}


def operation_phases(trial: TrialRow) -> dict[str, dict[str, int]]:
    """The phases of a metadata trial: operations, bytes, elapsed_ns of each. Empty for a trial of data."""
    found: dict[str, dict[str, int]] = json.loads(trial.summary).get("directions", {})
    return {name: phase for name, phase in found.items() if name in OPERATIONS}


def _operation_metrics(
    trial: TrialRow, phases: Mapping[str, Mapping[str, int]], latency: Sequence[LatencyRow]
) -> Measured:
    """Each operation's rate over the time of its own phases, and its latencies."""
    values: dict[str, float] = {}
    reasons: dict[str, str] = {}
    for name, phase in phases.items():
        if not phase["operations"] or phase.get("elapsed_ns", 0) <= 0:
            reasons[f"{name}_iops"] = "its phase was not completed"
            continue
        values[f"{name}_iops"] = phase["operations"] / (phase["elapsed_ns"] / 1e9)
        _add_latency(values, reasons, f"{name}_", [row for row in latency if _is(row, name, "total")])
    cpu_ns = trial.cpu_user_ns + trial.cpu_system_ns
    operations = sum(phase["operations"] for phase in phases.values())
    if cpu_ns > 0 and operations:
        values["cpu_per_operation"] = cpu_ns / operations
        add_costs(values, reasons, trial, operations)
    return Measured(values, reasons)


def _replay_metrics(
    trial: TrialRow, classes: Mapping[str, Mapping[str, int]], latency: Sequence[LatencyRow]
) -> Measured:
    """Times of the whole replay, and rates and latencies of each class of calls that it has."""
    values: dict[str, float] = {}
    reasons: dict[str, str] = {}
    seconds = trial.measured_ns / 1e9
    calls = sum(found["operations"] for found in classes.values())
    if seconds <= 0 or not calls:
        return Measured({}, dict.fromkeys(("run_time", "io_time"), "no call was completed"))
    values["run_time"] = seconds
    values["io_time"] = sum(found["io_ns"] for found in classes.values()) / 1e9
    values["bandwidth"] = sum(found["bytes"] for found in classes.values()) / seconds
    values["iops"] = calls / seconds
    for name, found in classes.items():
        if name in ("read", "write"):
            values[f"{name}_bandwidth"] = found["bytes"] / seconds
        values[f"{name}_iops"] = found["operations"] / seconds
        _add_latency(values, reasons, f"{name}_", [row for row in latency if _is(row, name, "total")])
    cpu_ns = trial.cpu_user_ns + trial.cpu_system_ns
    if cpu_ns > 0:
        values["cpu_per_operation"] = cpu_ns / calls
    # A mean of nothing is no figure: where nothing was moved there is no bandwidth.
    return Measured({name: value for name, value in values.items() if value > 0}, reasons)


def _all_operations(trial: TrialRow) -> int:
    """Operations of the whole trial, as CPU time is counted; 0 where the engine did not say."""
    total = json.loads(trial.summary).get("total") or {}
    return sum(sums.get("operations", 0) for name, sums in total.items() if name != "sync")


def _is(row: LatencyRow, direction: str, clock: str) -> bool:
    return row.interval == WHOLE and row.direction == direction and row.clock == clock


def _add_latency(
    values: dict[str, float], reasons: dict[str, str], prefix: str, rows: Sequence[LatencyRow]
) -> None:
    from leadline import _core

    for row in rows:
        values[f"{prefix}latency_mean"] = row.mean_ns
        values[f"{prefix}latency_max"] = float(row.max_ns)
        found = _core.histogram_percentiles(row.histogram, list(_PERCENTILES.values()))
        for (name, percentile), value in zip(_PERCENTILES.items(), found, strict=True):
            if row.operations * (100 - percentile) / 100 >= _BEYOND_MIN or percentile == 50.0:
                values[f"{prefix}latency_{name}"] = float(value)
            else:
                reasons[f"{prefix}latency_{name}"] = (
                    f"{row.operations} operations are too few: fewer than {_BEYOND_MIN} lie beyond {name}"
                )
