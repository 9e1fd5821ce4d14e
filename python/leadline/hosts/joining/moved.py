"""What each host moved in the measured interval that all of them have in common.

Counts are known at the ends of the engine's intervals; between two of them they are taken to grow evenly, and
what the engine gives no rate of, a last interval of less than half the length, ends with the host's own time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

# Directions of data alone: phases of metadata and calls of a replay have times of their own.
DATA = frozenset({"read", "write", "sync"})
_METRICS = {"bytes": "bandwidth", "operations": "iops"}

# (direction, metric) -> the ends of intervals, ns since the host's start, and rates per second
Rates = Mapping[tuple[str, str], tuple[Sequence[int], Sequence[float]]]


def is_cut(summary: Mapping[str, Any]) -> bool:
    """Whether this work moves data all the time, so that a part of its time has a rate."""
    directions = summary.get("directions") or {}
    own_time = any(summary.get(key) is not None for key in ("copies", "replay"))
    return bool(directions) and directions.keys() <= DATA and not own_time


def counts_between(
    directions: Mapping[str, Mapping[str, int]], own: tuple[int, int], wanted: tuple[int, int], rates: Rates
) -> dict[str, dict[str, int]]:
    """`directions` with what of its bytes and operations lies in `wanted`; all times since the host's start.

    `own` is the interval that they were counted in.
    """
    return {
        direction: {
            name: _between(count, own, wanted, rates.get((direction, _METRICS.get(name, "")), ((), ())))
            for name, count in counts.items()
        }
        for direction, counts in directions.items()
    }


def _between(
    count: int, own: tuple[int, int], wanted: tuple[int, int], rates: tuple[Sequence[int], Sequence[float]]
) -> int:
    begin, end = max(own[0], wanted[0]), min(own[1], wanted[1])
    if (begin, end) == own or not count:
        return count
    if begin >= end:
        return 0
    times, counted = _grown(count, own, rates)
    low, high = np.interp([begin, end], times, counted)
    return round(float(high - low))


def _grown(
    count: int, own: tuple[int, int], rates: tuple[Sequence[int], Sequence[float]]
) -> tuple[list[float], list[float]]:
    """(times, what was counted until each): from nothing at the beginning to everything at the end."""
    times, counted = [float(own[0])], [0.0]
    ends = [end for end in rates[0] if own[0] < end <= own[1]]
    lengths = np.diff([own[0], *ends])
    usual = float(np.median(lengths)) if len(lengths) else 0.0
    for end, rate in zip(rates[0], rates[1], strict=True):
        if not own[0] < end <= own[1]:
            continue
        start = max(times[-1], end - usual)  # an interval without operations is not there
        times += [start, float(end)]
        counted += [counted[-1], counted[-1] + rate * (end - start) / 1e9]
    if times[-1] < own[1]:
        return [*times, float(own[1])], [*(min(one, count) for one in counted), float(count)]
    scale = count / counted[-1] if counted[-1] else 0.0
    return times, [one * scale for one in counted]
