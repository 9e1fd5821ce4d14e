"""The attempts that a host has begun, by its own journal: what it has begun it does not begin again.

Whoever hands out work may hand it out twice: a scheduler does so once it has lost an answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from leadline.store.journal import Event

BEGUN = "attempt_begun"
ENDED = "attempt_ended"
FORGOTTEN = "attempt_forgotten"
HELD_MAX = 64  # attempts whose tables nobody has fetched: more of them would fill the host's disk


class Attempts:
    """What became of each attempt; `take` is told every event as it is journalled."""

    def __init__(self, events: Iterable[Event]) -> None:
        self.begun: dict[str, tuple[str, ...]] = {}
        self.ended: dict[str, Mapping[str, Any]] = {}
        self._forgotten: set[str] = set()
        self._finished: dict[str, str] = {}  # trial -> the attempt that has its tables
        self._current = ""
        for event in events:
            self.take(event)

    def take(self, event: Event) -> None:
        """One more event."""
        attempt = str(event.details.get("attempt", ""))
        if event.event == BEGUN:
            self._current = attempt
            self.begun[attempt] = tuple(map(str, event.details["trials"]))
        elif event.event == ENDED:
            self.ended[attempt] = event.details
        elif event.event == FORGOTTEN:
            self._forgotten.add(attempt)
            self._finished = {trial: by for trial, by in self._finished.items() if by != attempt}
        for trial in event.finished:
            self._finished[trial] = self._current

    def why_not(self, attempt: str, trials: Sequence[str]) -> str:
        """Why an attempt is refused; "" where it is new and none of its trials is held."""
        if attempt in self.begun:
            return f"attempt {attempt} was begun here before, and is not begun twice"
        for trial in trials:
            if trial in self._finished:
                return (
                    f"trial {trial} was finished here by attempt {self._finished[trial]}, which is still held"
                )
        if len(set(self._finished.values())) >= HELD_MAX:
            return f"{HELD_MAX} attempts are held here that nobody has fetched"
        return ""

    def unended(self) -> tuple[str, ...]:
        """Those that were begun and whose end nobody noted, as their session was killed."""
        return tuple(attempt for attempt in self.begun if attempt not in self.ended)

    def held(self) -> dict[str, tuple[str, ...]]:
        """The finished trials of every attempt that was not forgotten, by attempt."""
        found: dict[str, tuple[str, ...]] = {attempt: () for attempt in self.begun}
        for trial, attempt in self._finished.items():
            found[attempt] = (*found.get(attempt, ()), trial)
        return {attempt: trials for attempt, trials in found.items() if attempt not in self._forgotten}

    def has_finished(self, attempt: str) -> bool:
        """Whether its tables are here: those of its trials count from one line of the journal on."""
        return attempt in self._finished.values()
