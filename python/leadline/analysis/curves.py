"""Latency curves and time series of a cell, for charts: histograms merged exactly, series summed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from leadline.analysis.metrics import WHOLE
from leadline.store.tables import LatencyRow, SeriesRow

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
