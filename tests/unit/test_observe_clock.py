"""The distance of two clocks, by who is put off the CPU between reading them."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from leadline.observe.reading import offset_ns

DISTANCE_NS = 1_700_000_000_000_000_000
HELD_NS = 30_000_000


class HeldClocks:
    """Two clocks that are DISTANCE_NS apart; some reads return late, by `held`, in their order."""

    def __init__(self, held: Iterator[int]) -> None:
        self._now = 1_000_000_000
        self._held = held

    def steady(self, _: int) -> int:
        self._now += 100 + next(self._held)
        return self._now

    def unix(self) -> int:
        return self.steady(0) + DISTANCE_NS


@pytest.mark.parametrize("late", [(1,), (2,), (1, 5), (0, 4, 8, 11)])
def test_the_distance_of_two_clocks_is_right_for_one_who_is_held_up_between_them(
    late: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    clocks = HeldClocks(HELD_NS if n in late else 0 for n in range(1000))
    monkeypatch.setattr(time, "clock_gettime_ns", clocks.steady)
    monkeypatch.setattr(time, "time_ns", clocks.unix)
    assert abs(offset_ns() - DISTANCE_NS) < 1000
