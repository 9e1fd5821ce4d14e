"""Waiting by polling, with a deadline: nothing here ever sleeps for luck."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Clock:
    """The time source and the pause between two polls; tests give their own."""

    now_s: Callable[[], float] = time.monotonic
    pause: Callable[[float], None] = time.sleep


SYSTEM_CLOCK = Clock()


def poll(
    condition: Callable[[], bool], deadline_s: float, *, interval_s: float = 0.1, clock: Clock = SYSTEM_CLOCK
) -> bool:
    """True as soon as `condition` holds, False where it did not within `deadline_s` seconds."""
    end_s = clock.now_s() + deadline_s
    while not condition():
        if clock.now_s() >= end_s:
            return False
        clock.pause(interval_s)
    return True
