"""The times of a trial on many hosts, and what each host moved in the interval that all have in common.

Every host's own times are moved to one beginning by corrected clocks. They are ns; without another word since
the trial's start, which is that of the first host to begin. Counts are known at the ends of the engine's
intervals; between two of them they are taken to grow evenly, and what the engine gives no rate of, a last
interval of less than half the length, ends with the host's own time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from leadline.hosts.model import HostTrial


@dataclass(frozen=True)
class JoinedTimes:
    """`shifts`: host -> how long after the first one it began, by corrected clocks; it moves all its times.

    `begin` and `end` bound the measured interval; they are equal where the hosts have no time in common.
    """

    started_unix_ns: int
    shifts: Mapping[str, int]
    begin: int
    end: int
    first_done: int
    last_done: int

    @property
    def start_skew(self) -> int:
        """From the first host's start to the last one's."""
        return max(self.shifts.values())


def joined_times(hosts: Sequence[HostTrial], *, common: bool) -> JoinedTimes:
    """`common`: measured is the time that all of them measured; else from the first start to the last end.

    A host whose trial never began has no start of its own: it counts as begun with the first.
    """
    starts = {one.host: one.row.started_unix_ns - one.clock.offset_ns for one in hosts if _began(one)}
    first = min(starts.values(), default=0)
    shifts = {one.host: starts.get(one.host, first) - first for one in hosts}
    begun = [one for one in hosts if _began(one)] or list(hosts)
    begins = [shifts[one.host] + one.row.ramp_ns for one in begun]
    ends = [shifts[one.host] + one.row.ramp_ns + one.row.measured_ns for one in begun]
    begin, end = (max(begins), min(ends)) if common else (min(begins), max(ends))
    return JoinedTimes(
        started_unix_ns=first,
        shifts=shifts,
        begin=begin,
        end=max(begin, end),
        first_done=min(shifts[one.host] + one.row.first_done_ns for one in begun),
        last_done=max(shifts[one.host] + one.row.last_done_ns for one in begun),
    )


def done_skew(hosts: Sequence[HostTrial], times: JoinedTimes) -> int:
    """From the end of the first host to that of the last one."""
    ends = [times.shifts[one.host] + one.row.last_done_ns for one in hosts if _began(one)]
    return max(ends, default=0) - min(ends, default=0)


def _began(one: HostTrial) -> bool:
    return one.row.started_unix_ns > 0


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
