"""What is measured in figures: names, units, which direction is good; what a trial cost its client; the
latency curves and time series of a cell, for charts.

What one kind of work alone has is in its folder below `workloads`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from leadline.store.tables import LatencyRow, SeriesRow, TrialRow

_POINTS = (
    *(0.0, 1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 85.0, 90.0, 92.5, 95.0, 97.0, 98.0),
    *(99.0, 99.3, 99.5, 99.7, 99.8, 99.9, 99.95, 99.97, 99.99, 99.995, 99.999, 99.9995, 99.9999),
)


@dataclass(frozen=True)
class Distribution:
    """All latencies of several trials: (percentile, ns), mean and standard deviation in ns.

    `buckets` are (ns, operations) of the merged histogram.
    """

    operations: int
    points: tuple[tuple[float, float], ...]
    mean_ns: float
    stdev_ns: float
    buckets: tuple[tuple[int, int], ...]


def latency_curve(rows: Sequence[LatencyRow], direction: str, clock: str) -> Distribution | None:
    """The merged distribution of all trials' rows; None where nothing was recorded.

    The curve ends at the last percentile with an operation beyond it, and at 100.
    """
    blobs = [
        r.histogram for r in rows if r.interval == WHOLE and (r.direction, r.clock) == (direction, clock)
    ]
    return merged_distribution(blobs) if blobs else None


def merged_distribution(blobs: Sequence[bytes]) -> Distribution:
    """Histograms as one; there is at least one."""
    from leadline import _core

    merged = _core.histogram_merge(list(blobs))
    summary = _core.histogram_summary(merged)
    count = int(summary["count"])
    wanted = [p for p in _POINTS if count * (100 - p) / 100 >= 1] + [100.0]
    found = _core.histogram_percentiles(merged, wanted)
    points = tuple((p, float(v)) for p, v in zip(wanted, found, strict=True))
    buckets = tuple((int(value), int(number)) for value, number in _core.histogram_buckets(merged))
    return Distribution(count, points, summary["mean"], summary["stdev"], buckets)


def summed_series(rows: Sequence[SeriesRow], source: str, metric: str) -> tuple[tuple[float, float], ...]:
    """(seconds since the start, value) of a metric of one trial, its subjects (directions) added up."""
    sums: dict[int, float] = {}
    for row in rows:
        if (row.source, row.metric) == (source, metric) and row.value is not None:
            sums[row.t_ns] = sums.get(row.t_ns, 0.0) + row.value
    return tuple((t_ns / 1e9, value) for t_ns, value in sorted(sums.items()))


_WIRE = ("wire_sent_bytes", "wire_received_bytes")


def add_costs(values: dict[str, float], reasons: dict[str, str], trial: TrialRow, operations: int) -> None:
    """Adds the metrics of `metrics.COST_METRICS`, or the reason of each that is not known.

    All of them are of the whole trial, its ramp included. What jobs that ran together cost is not told apart.
    """
    cpu_ns = trial.cpu_user_ns + trial.cpu_system_ns
    if trial.group is not None or not operations or cpu_ns <= 0:
        return
    values["client_cpu_per_operation"] = (cpu_ns + (trial.client_cpu_ns or 0)) / operations
    moved = trial.total_read_bytes + trial.total_write_bytes
    by_socket = "TCP sockets of process" in str(json.loads(trial.sources).get(_WIRE[0], ""))
    name = "wire_per_byte" if moved else "wire_per_operation"
    wire, reason = wire_bytes(trial)
    if wire is None:
        reasons[name] = reason
    elif wire == 0 and by_socket:
        reasons[name] = "the trial was over before its connections were seen"
    else:
        values[name] = wire / (moved or operations)


def wire_bytes(trial: TrialRow) -> tuple[int | None, str]:
    """Bytes between client and servers in both directions, or why they are not known."""
    if trial.wire_sent_bytes is None or trial.wire_received_bytes is None:
        why = json.loads(trial.reasons)
        return None, next((str(why[name]) for name in _WIRE if name in why), "not observable")
    sources: Mapping[str, str] = json.loads(trial.sources)
    if "both directions in each value" in sources.get(_WIRE[0], ""):
        return None, "servers are on this host: loopback carries what they send each other, too"
    return trial.wire_sent_bytes + trial.wire_received_bytes, ""


WHOLE = -1
LARGE_BLOCK_BYTES = 128 * 1024  # from here on people ask for bandwidth, below it for IOPS


@dataclass(frozen=True)
class MetricKind:
    """`unit` is the base unit; `higher_is_better` decides what "faster" means.

    `asked`: a work may be asked for it, and so comparisons of it get the greater share of the chance to err;
    else it explains another metric. `leads`: a headline may be about it.
    """

    unit: str
    higher_is_better: bool
    words: str
    asked: bool = True
    leads: bool = True


@dataclass(frozen=True)
class Measured:
    """A trial's metrics; a metric without a value has its reason instead.

    `sums` names those that may be zero and add up, as shares and amounts do: their mean is the plain one.
    """

    values: Mapping[str, float]
    reasons: Mapping[str, str]
    sums: frozenset[str] = frozenset()


PERCENTILES = {"p50": 50.0, "p95": 95.0, "p99": 99.0, "p99.9": 99.9}
LATENCY_METRICS = ("latency_mean", *(f"latency_{name}" for name in PERCENTILES), "latency_max")
# A percentile is reported when at least this many operations lie beyond it.
_BEYOND_MIN = 10
_ADDITIVE = ("1", "B")


# What an operation, or a byte of it, costs the client besides time.
COST_METRICS = {
    "client_cpu_per_operation": MetricKind("ns", False, "CPU time of engine and client daemon per operation"),
    "wire_per_byte": MetricKind("B/B", False, "bytes on the wire per byte of work"),
    "wire_per_operation": MetricKind("B", False, "bytes on the wire per operation"),
}
# Of a whole program that was run, traced or imported, not of an engine's operations.
PROGRAM_METRICS = {
    "run_time": MetricKind("s", False, "run time, the mean of the copies"),
    "run_time_slowest": MetricKind("s", False, "run time of the slowest copy"),
    "wall_throughput": MetricKind("B/s", True, "bytes over run time"),
    "agg_perf_by_slowest": MetricKind(
        "B/s", True, "bytes over the I/O time of the slowest process", asked=False, leads=False
    ),
    "bytes_read": MetricKind("B", False, "bytes read"),
    "bytes_written": MetricKind("B", False, "bytes written"),
    "io_time": MetricKind("s", False, "time in I/O, all processes"),
    "read_share": MetricKind("1", False, "share of reading"),
    "write_share": MetricKind("1", False, "share of writing"),
    "meta_share": MetricKind("1", False, "share of metadata"),
    "sync_share": MetricKind("1", False, "share of syncs"),
    "compute_share": MetricKind("1", True, "share of computing: CPU time outside of file calls"),
    "wait_share": MetricKind("1", False, "share of waiting outside of file calls"),
}


def general_kind(name: str, prefixes: Iterable[str]) -> MetricKind:
    """The kind of a metric of operations, by its name with or without one of `prefixes` in front."""
    before = next((prefix for prefix in prefixes if name.startswith(f"{prefix}_")), None)
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
    return MetricKind("ns", False, f"latency, {plain.removeprefix('latency_')}", asked=not _is_latency(name))


def _is_latency(name: str) -> bool:
    return "latency_" in name


def adds_up(kind: MetricKind) -> bool:
    """True for shares and amounts, whose mean is the plain one."""
    return kind.unit in _ADDITIVE


def nothing_done(names: Sequence[str], why: str) -> Measured:
    """A trial without a figure, and why."""
    return Measured({}, dict.fromkeys(names, why))


def cpu_per_operation(trial: TrialRow, operations: int) -> dict[str, float]:
    """CPU time of the load generator for each of `operations`; nothing where it is not known."""
    cpu_ns = trial.cpu_user_ns + trial.cpu_system_ns
    return {"cpu_per_operation": cpu_ns / operations} if cpu_ns > 0 and operations else {}


def add_latency(
    values: dict[str, float],
    reasons: dict[str, str],
    latency: Sequence[LatencyRow],
    direction: str,
    clock: str,
    *,
    prefix: str,
) -> None:
    """Adds mean, largest and percentiles of one direction's whole interval, or the reason of each percentile
    that too few operations lie beyond."""
    from leadline import _core

    for row in latency:
        if row.interval != WHOLE or row.direction != direction or row.clock != clock:
            continue
        values[f"{prefix}latency_mean"] = row.mean_ns
        values[f"{prefix}latency_max"] = float(row.max_ns)
        found = _core.histogram_percentiles(row.histogram, list(PERCENTILES.values()))
        for (name, percentile), value in zip(PERCENTILES.items(), found, strict=True):
            if row.operations * (100 - percentile) / 100 >= _BEYOND_MIN or percentile == 50.0:
                values[f"{prefix}latency_{name}"] = float(value)
            else:
                reasons[f"{prefix}latency_{name}"] = (
                    f"{row.operations} operations are too few: fewer than {_BEYOND_MIN} lie beyond {name}"
                )
