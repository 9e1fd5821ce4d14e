"""The times of a trial on many hosts: every host's own, moved to one beginning by corrected clocks.

Times are ns; without another word since the trial's start, which is that of the first host to begin.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

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
