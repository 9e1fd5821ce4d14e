"""What fio says of a job besides sums and percentiles, as far as leadline knows it.

The classes are fio's own (stat.c): a latency counts in the first class that it does not exceed.
"""

from __future__ import annotations

import statistics
from typing import Any

from leadline.verdict.model import Cell, Line

_CLASSES = (2, 4, 10, 20, 50, 100, 250, 500, 750, 1000)
_UNITS = (
    ("latency_ns", 1, _CLASSES),
    ("latency_us", 1_000, _CLASSES),
    ("latency_ms", 1_000_000, (*_CLASSES, 2000)),
)
_SLOWEST = ">=2000"
_SAMPLED = (("bw", ("min", "max", "agg", "mean", "dev")), ("iops", ("min", "max", "mean", "stddev")))
# As fio writes it where it took no samples, which `bw_samples` and `iops_samples` say.
NO_SAMPLES: dict[str, int] = {f"{rate}_{name}": 0 for rate, names in _SAMPLED for name in (*names, "samples")}


def shares_of_cpu(cell: Cell) -> dict[str, float]:
    """`usr_cpu` and `sys_cpu`, percent of the time of all its jobs."""
    numjobs = cell.job.get("numjobs")
    trials = [trial.values for trial in cell.trials if trial.state == "complete"]
    known = [one for one in trials if None not in (one.get("cpu_user_s"), one.get("cpu_system_s"))]
    seconds = sum(one.get("measured_s") or 0.0 for one in known) * (
        numjobs if isinstance(numjobs, int) else 0
    )
    if not seconds or len(known) < len(trials):
        return {}
    names = (("usr_cpu", "cpu_user_s"), ("sys_cpu", "cpu_system_s"))
    return {key: 100 * sum(one[name] or 0.0 for one in known) / seconds for key, name in names}


def rate_samples(cell: Cell, direction: str) -> dict[str, Any]:
    """KiB/s and operations per second over the intervals of a job of one direction and one size."""
    size = cell.job.get("bs")
    if cell.shown.directions != (direction,) or cell.job.get("bssplit") or not isinstance(size, int):
        return {}
    rates = [value for line in cell.lines for value in _measured(line)]
    if len(rates) < 2:
        return {}
    iops, kib = [one / size for one in rates], [one / 1024 for one in rates]
    return {
        "bw_min": int(min(kib)),
        "bw_max": int(max(kib)),
        "bw_agg": 100.0,  # of all jobs of its group: a cell has all of them
        "bw_mean": statistics.fmean(kib),
        "bw_dev": statistics.stdev(kib),
        "bw_samples": len(kib),
        "iops_min": int(min(iops)),
        "iops_max": int(max(iops)),
        "iops_mean": statistics.fmean(iops),
        "iops_stddev": statistics.stdev(iops),
        "iops_samples": len(iops),
    }


def _measured(line: Line) -> list[float]:
    """Of the intervals after the ramp."""
    end_s = line.measured_to_s
    return [
        value
        for second, value in line.points
        if second > line.measured_from_s and (end_s is None or second <= end_s + 1e-6)
    ]


def latency_shares(cell: Cell) -> dict[str, dict[str, float]]:
    """Percent of all reads and writes in each of fio's classes; nothing where latencies were not kept."""
    buckets = [
        bucket
        for curve in cell.curves
        if (curve.clock, curve.direction) in (("total", "read"), ("total", "write"))
        for bucket in curve.buckets
    ]
    operations = sum(count for _, count in buckets)
    if not operations:
        return {}
    found = {name: {str(limit): 0.0 for limit in limits} for name, _, limits in _UNITS}
    found["latency_ms"][_SLOWEST] = 0.0
    for latency_ns, count in buckets:
        name, limit = _class_of(latency_ns)
        found[name][limit] += 100 * count / operations
    return found


def _class_of(latency_ns: int) -> tuple[str, str]:
    for name, unit_ns, limits in _UNITS:
        for limit in limits:
            if latency_ns <= limit * unit_ns:
                return name, str(limit)
    return "latency_ms", _SLOWEST
