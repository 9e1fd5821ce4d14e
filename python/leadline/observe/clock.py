"""The time of day as it was when this process began, going on steadily: who sets it moves nothing stored."""

from __future__ import annotations

import time
from collections.abc import Iterable

STEP_NS_MIN = 100_000_000  # less is what keeping a clock right moves it by
_ROUNDS = 5


def closest(rounds: Iterable[tuple[int, int, int]]) -> tuple[int, int, int]:
    """The offset of another clock, its largest error, and when it was read by this one, all ns.

    A round is (this clock before, the other clock, this clock after). The shortest round counts: its offset
    is wrong by half its length at most (Cristian, Probabilistic clock synchronization, 1989). Raises
    ValueError without a round.
    """
    before, other, after = min(rounds, key=lambda one: one[2] - one[0])
    return other - (before + after) // 2, -(-max(after - before, 0) // 2), after


def offset_ns(clock: int = time.CLOCK_MONOTONIC) -> int:
    """The time of day minus a steady clock, ns: by rounds, as the CPU can be lost between two reads."""
    rounds = (
        (time.clock_gettime_ns(clock), time.time_ns(), time.clock_gettime_ns(clock)) for _ in range(_ROUNDS)
    )
    return closest(rounds)[0]


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
