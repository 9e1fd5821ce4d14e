"""The attempt that a session is at, between the thread that hears what it is told and the one that works.

Who asked for the last step is answered when that is done: prepared, or ended.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

_LOOK_EVERY_S = 0.1
_FUTURE_S_MAX = 600.0  # a start further off is no start that was agreed on
PREPARED = {"prepared": True}

Tell = Callable[[int, Mapping[str, Any]], None]


class Turn:
    """One attempt at a time. `tell` answers a request, by its number; `stopping` ends any wait."""

    def __init__(self, tell: Tell, stopping: Callable[[], bool]) -> None:
        self._tell = tell
        self._stopping = stopping
        self._changed = threading.Condition()
        self._attempt = ""
        self._asker: int | None = None
        self._prepared = False
        self._start_ns: int | None = None
        self._called_off: set[str] = set()

    def take(self, attempt: str, asker: int) -> None:
        """The attempt is the one that is worked at; `asker` is the request to prepare it."""
        with self._changed:
            self._attempt, self._asker = attempt, asker
            self._prepared, self._start_ns = False, None

    def is_off(self) -> bool:
        """Whether it was called off."""
        with self._changed:
            return self._attempt in self._called_off

    def wait(self) -> int | None:
        """Say that all is prepared, and wait for its start (ns of CLOCK_MONOTONIC); None: called off."""
        with self._changed:
            if self._ended():
                return None  # who asked hears how it ended
            self._answer(PREPARED)
            self._prepared = True
            while self._start_ns is None and not self._ended():
                self._changed.wait(_LOOK_EVERY_S)
            self._prepared = False
            start_ns, self._start_ns = self._start_ns, None
            return start_ns

    def _ended(self) -> bool:
        return self._stopping() or self._attempt in self._called_off

    def begin(self, attempt: str, start_unix_ns: int, asker: int) -> str:
        """Have it start then, on this host's time of day. Why that cannot be, or ""."""
        monotonic_ns, unix_ns = time.monotonic_ns(), time.time_ns()
        with self._changed:
            if attempt != self._attempt or not self._prepared or self._start_ns is not None:
                return (
                    f"attempt {attempt} is not prepared here: it was begun before, has ended, or is another"
                )
            if start_unix_ns - unix_ns > _FUTURE_S_MAX * 1e9:
                return f"its start is {(start_unix_ns - unix_ns) / 1e9:,.0f} s away by this host's clock"
            self._start_ns = monotonic_ns + start_unix_ns - unix_ns
            self._asker = asker
            self._changed.notify_all()
        return ""

    def call_off(self, attempt: str) -> None:
        """End an attempt, also one that has not come yet."""
        with self._changed:
            self._called_off.add(attempt)
            self._changed.notify_all()

    def end(self, answer: Mapping[str, Any]) -> None:
        """It has ended; who waits for it is told how."""
        with self._changed:
            self._answer(answer)
            self._attempt = ""

    def _answer(self, answer: Mapping[str, Any]) -> None:
        asker, self._asker = self._asker, None
        if asker is not None:
            self._tell(asker, answer)
