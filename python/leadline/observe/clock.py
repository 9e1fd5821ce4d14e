"""The time of day as it was when this process began, going on steadily: who sets it moves nothing stored."""

from __future__ import annotations

import time

STEP_NS_MIN = 100_000_000  # less is what keeping a clock right moves it by
_PAIRS = 5


def offset_ns(clock: int = time.CLOCK_MONOTONIC) -> int:
    """What lies between a steady clock and the time of day at this moment, ns.

    Who is put off the CPU between the two reads is wrong by that long, so the closest of a few pairs counts.
    """
    found = []
    for _ in range(_PAIRS):
        before = time.clock_gettime_ns(clock)
        unix = time.time_ns()
        after = time.clock_gettime_ns(clock)
        found.append((after - before, unix - (before + after) // 2))
    return min(found)[1]


_BEGUN_NS = offset_ns()


def steady_unix_ns() -> int:
    """Now, as all processes of a run tell it that began before the clock was set."""
    return _BEGUN_NS + time.monotonic_ns()


class ClockWatch:
    """Finds out that the time of day was set, forwards or back."""

    def __init__(self) -> None:
        self._before_ns = self._seen_ns = _BEGUN_NS

    def step_ns(self) -> int:
        """How far it was set since the last call; 0 where it was not."""
        self._before_ns, self._seen_ns = self._seen_ns, offset_ns()
        step_ns = self._seen_ns - self._before_ns
        return step_ns if abs(step_ns) >= STEP_NS_MIN else 0

    def steady(self, unix_ns: int, near_ns: int) -> int:
        """A time of day between the last two calls as `steady_unix_ns` told it, which was near to that."""
        told = (unix_ns - offset + _BEGUN_NS for offset in (self._before_ns, self._seen_ns))
        return min(told, key=lambda found: abs(found - near_ns))
