"""Tells all hosts, again and again, that their parent is there: without it they end by themselves."""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from typing import Any

from leadline.errors import LeadlineError, UsageError
from leadline.hosts.workers.calls import Crew
from leadline.hosts.workers.remote import Function

_VARIABLE = "LEADLINE_LEASE_S"
_LEAST_S, _MOST_S = 5.0, 3600.0


def _lease_s() -> float:
    """A minute, or what the environment says. Raises UsageError where that is no time."""
    text = os.environ.get(_VARIABLE, "60")
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not _LEAST_S <= seconds <= _MOST_S:
        raise UsageError(
            f"{_VARIABLE}={text!a} is no time for a lease",
            f"write {_LEAST_S:.0f} to {_MOST_S:.0f} seconds, or leave it out",
        )
    return seconds


LEASE_S = _lease_s()
_EVERY_S = LEASE_S / 6  # five may be lost
_END_S = 5.0


class Lease:
    """Renews for as long as the block lasts, in a thread of its own."""

    def __init__(self, crew: Crew, renew: Function, study_id: str) -> None:
        self._crew, self._renew, self._study = crew, renew, study_id
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="leadline-lease", daemon=True)

    def __enter__(self) -> Lease:
        self._thread.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._ended.set()
        self._thread.join(_END_S)

    def _run(self) -> None:
        while not self._ended.wait(_EVERY_S):
            with suppress(LeadlineError, OSError, RuntimeError):  # whoever waits for a host finds out, too
                self._crew.tell(self._renew, self._study, timeout_s=_EVERY_S)
