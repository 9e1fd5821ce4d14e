"""Counters of one file in one process, from its calls in their order, with Darshan's meaning.

Darshan's rules, from its POSIX module: an access is sequential when it begins beyond the last byte of the
one before in the same direction, consecutive when it begins right after it; a first access at offset 0 is
neither. Sizes are what was moved, not what was asked for. A *_TIME counts an overlap once, and
an fsync is write time.

strace's `-T` measures from the stop before a call to the stop behind it, with two switches between processes:
calls with nothing to do take as long as that. What a call on a file took beyond it is the file's.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from leadline.tracing.tables import SIZE_BINS

# The kernel answers these from what it has in memory, and no storage is asked.
REFERENCE_CALLS = frozenset(
    (
        *("arch_prctl", "brk", "dup", "dup2", "dup3", "fcntl", "getegid", "geteuid", "getgid", "getpgrp"),
        *("getpid", "getppid", "getrandom", "gettid", "getuid", "mprotect", "munmap", "prlimit64", "rseq"),
        *("rt_sigaction", "rt_sigprocmask", "set_robust_list", "set_tid_address", "sigaltstack", "umask"),
        "uname",
    )
)
REFERENCES_MIN = 8
_OWN_MIN = 20  # of a process alone; below, all of the log's count
_ERRORS = 3.0  # standard errors above the mean


@dataclass(frozen=True)
class StraceCost:
    """In ns: what strace's own cost explains of a call, and the longest stop that calls without work had."""

    call_ns: float
    stop_ns: float

    def left(self, spent_ns: float, calls: int) -> float:
        """What strace does not explain of the time of so many calls: their share, and one long stop more."""
        return max(0.0, spent_ns - calls * self.call_ns - self.stop_ns)


def cost_of_call(durations: Sequence[int]) -> float | None:
    """The most ns a call that strace's own cost explains; None of fewer than REFERENCES_MIN.

    The mean and three standard errors: costs of many calls add up, with the stops when another program had
    the processor.
    """
    count = len(durations)
    if count < REFERENCES_MIN:
        return None
    mean = sum(durations) / count
    variance = sum((value - mean) ** 2 for value in durations) / (count - 1)
    return float(mean + _ERRORS * (variance / count) ** 0.5)


def costs_of_processes(durations: Sequence[Sequence[int]]) -> list[StraceCost] | None:
    """For each process, by its own reference calls and by all of them; None where all are too few."""
    every = [value for part in durations for value in part]
    whole = cost_of_call(every)
    if whole is None:
        return None
    own = [(cost_of_call(part) or 0.0) if len(part) >= _OWN_MIN else 0.0 for part in durations]
    return [StraceCost(max(whole, cost), float(max(every))) for cost in own]


def is_reference(name: str, arguments: str) -> bool:
    """Whether a call's time is strace's alone."""
    return name in REFERENCE_CALLS or (name == "mmap" and "MAP_ANON" in arguments)


# What FILE_NOT_ALIGNED is counted against where nobody said the file system's block size: the page.
ALIGNMENT_BYTES = 4096
NS = 1e9

_BOUNDS = [bound for bound in SIZE_BINS.values() if bound is not None]
_BIN_NAMES = {
    "READ": [f"SIZE_READ_{name}" for name in SIZE_BINS],
    "WRITE": [f"SIZE_WRITE_{name}" for name in SIZE_BINS],
}
_COUNT = {"READ": "READS", "WRITE": "WRITES"}
_OF_OFFSETS = {
    "READ": ("MAX_BYTE_READ", "SEQ_READS", "CONSEC_READS"),
    "WRITE": ("MAX_BYTE_WRITTEN", "SEQ_WRITES", "CONSEC_WRITES", "rewritten_bytes"),
}
_VOLUME = {"READ": "BYTES_READ", "WRITE": "BYTES_WRITTEN"}
_HIGHEST = {"READ": "MAX_BYTE_READ", "WRITE": "MAX_BYTE_WRITTEN"}
_SEQUENTIAL = {"READ": "SEQ_READS", "WRITE": "SEQ_WRITES"}
_CONSECUTIVE = {"READ": "CONSEC_READS", "WRITE": "CONSEC_WRITES"}

_TIME = {
    "READ": ("F_READ_TIME", "F_MAX_READ_TIME"),
    "WRITE": ("F_WRITE_TIME", "F_MAX_WRITE_TIME"),
    "META": ("F_META_TIME", ""),
}
_STAMPS = {
    what: (f"F_{what}_START_TIMESTAMP", f"F_{what}_END_TIMESTAMP")
    for what in ("OPEN", "READ", "WRITE", "CLOSE")
}


class FileCounters:
    """One file in one process. `number` is its row; `unknown` names counters that its source cannot know."""

    __slots__ = (
        "_busy_until",
        "_last_byte",
        "_last_direction",
        "counts",
        "number",
        "path",
        "timed",
        "times",
        "unknown",
    )

    def __init__(self, number: int, path: str) -> None:
        self.number = number
        self.path = path
        self.counts: dict[str, int] = {}
        self.times: dict[str, float] = {}
        self.timed: dict[str, int] = {}  # calls behind each F_<what>_TIME
        self.unknown: set[str] = set()
        self._last_byte = {"READ": 0, "WRITE": 0}  # as in Darshan, where none is 0
        self._last_direction = ""
        self._busy_until: dict[str, int] = {}

    def add(self, counter: str, value: int = 1) -> None:
        """Count."""
        self.counts[counter] = self.counts.get(counter, 0) + value

    def access(self, direction: str, offset: int | None, moved: int) -> None:
        """One read or write that moved `moved` bytes. Without its offset its order stays unknown."""
        self.add(_COUNT[direction])
        self.add(_VOLUME[direction], moved)
        if direction == "READ" and not moved:
            self.add("empty_reads")
        self.add(_BIN_NAMES[direction][bisect_left(_BOUNDS, moved)])
        if self._last_direction and self._last_direction != direction:
            self.add("RW_SWITCHES")
        self._last_direction = direction
        if offset is None:
            self.unknown.update((*_OF_OFFSETS[direction], "FILE_NOT_ALIGNED"))
        else:
            self._place(direction, offset, moved)

    def _place(self, direction: str, offset: int, moved: int) -> None:
        last = self._last_byte[direction]
        if offset > last:
            self.add(_SEQUENTIAL[direction])
        if offset == last + 1:
            self.add(_CONSECUTIVE[direction])
        self._last_byte[direction] = offset + moved - 1
        if offset % ALIGNMENT_BYTES:
            self.add("FILE_NOT_ALIGNED")
        if moved <= 0:
            return
        highest = _HIGHEST[direction]
        before = self.counts.get(highest, -1)
        if direction == "WRITE" and offset <= before:
            self.add("rewritten_bytes", min(offset + moved, before + 1) - offset)
        if offset + moved - 1 > before:
            self.counts[highest] = offset + moved - 1

    def spend(self, what: str, start_ns: int, duration_ns: int) -> int:
        """Add a call's time to F_<what>_TIME; what overlaps with the calls before it counts once.

        Returns how many ns that was.
        """
        end = start_ns + duration_ns
        self.timed[what] = self.timed.get(what, 0) + 1
        free = max(start_ns, self._busy_until.get(what, start_ns))
        self._busy_until[what] = max(end, free)
        times, key, longest = self.times, *_TIME[what]
        if end > free:
            times[key] = times.get(key, 0.0) + (end - free) / NS
        if longest and duration_ns / NS > times.get(longest, 0.0):
            times[longest] = duration_ns / NS
        return max(end - free, 0)

    def take_out(self, what: str, cost: StraceCost) -> None:
        """Leave in F_<what>_TIME what the tracer's own cost does not explain."""
        key, longest = _TIME[what]
        if key in self.times:
            self.times[key] = cost.left(self.times[key] * NS, self.timed.get(what, 0)) / NS
        if longest in self.times:
            self.times[longest] = cost.left(self.times[longest] * NS, 1) / NS

    def seen(self, what: str, start_ns: int, duration_ns: int | None) -> None:
        """Note the first beginning and the last end of an open, read, write or close."""
        times, (first, last) = self.times, _STAMPS[what]
        start_s = start_ns / NS
        if times.get(first, math.inf) > start_s:
            times[first] = start_s
        if duration_ns is not None:
            times[last] = max(times.get(last, 0.0), (start_ns + duration_ns) / NS)


def column(rows: Sequence[FileCounters], name: str, unknown: Iterable[str]) -> list[int | None]:
    """One counter of all rows: null where it is unknown in the row or in the whole source."""
    if name in unknown:
        return [None] * len(rows)
    return [None if name in row.unknown else row.counts.get(name, 0) for row in rows]


def time_column(rows: Sequence[FileCounters], name: str, unknown: Iterable[str]) -> list[float | None]:
    """One time of all rows. A timestamp of what never happened is null, a time of nothing is 0."""
    if name in unknown:
        return [None] * len(rows)
    absent = None if name.endswith("_TIMESTAMP") else 0.0
    return [row.times.get(name, absent) for row in rows]
