"""Waits for what a traced command leaves running: its I/O is the command's, and much of it may be to come.

Every process of a trace has the trace's mark in its environment, which /proc shows whoever its parent is by
then. One that was started with another environment is not found: a tracer that follows it says that it runs.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

MARK_VARIABLE = "LEADLINE_TRACE"
SECONDS = 60.0
_POLL_S = 0.05


@dataclass(frozen=True)
class SurvivorWait:
    """For how long at most, and who is told how many processes are waited for, once the command has ended.

    `mark` is what they have in their environment; empty for one of their own.
    """

    seconds: float = SECONDS
    told: Callable[[int, float], None] = lambda _count, _seconds: None
    mark: str = ""


PATIENCE = SurvivorWait()


def survivors(mark: str) -> list[int]:
    """The processes that have this mark, and are no zombies: those have no environment any more."""
    wanted = f"{MARK_VARIABLE}={mark}\0".encode()
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if wanted in (process / "environ").read_bytes():
                found.append(int(process.name))
    return found


def wait_for_survivors(
    mark: str, patience: SurvivorWait, heard: list[int], until: Collection[signal.Signals]
) -> list[int]:
    """Wait until none is left, at most as `patience` says, or until a signal of `until`, which are blocked.

    Gives the processes that still run. A signal that was heard is added to `heard`.
    """
    end_s = time.monotonic() + patience.seconds
    left = survivors(mark)
    if left and patience.seconds:
        patience.told(len(left), patience.seconds)
    while left and time.monotonic() < end_s:
        info = signal.sigtimedwait(until, _POLL_S)
        if info is not None:
            heard.append(info.si_signo)
            break
        left = survivors(mark)
    return left
