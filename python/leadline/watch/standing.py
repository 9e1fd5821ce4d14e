"""Calls that do not end: in which a thread stands from one look to the next.

The tracer counts a call when it ends, and none that had begun before it looked. The kernel shows what a
thread is in (`/proc/PID/task/TID/syscall`). A thread that shows the same twice, and had no CPU in between,
was in that call all the time.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from leadline.observe.host.threads import ProcessThreads
from leadline.tracing.sources.lives.blocked import call_of
from leadline.watch.store import SeenWait

_THREADS_MAX = 4096  # of all processes: what looks must not cost what it looks for


@dataclass(frozen=True)
class StandingCall:
    """A thread in one call on a file, by where that lies on the file system.

    `since` and `until` are monotonic seconds of looks. `from_first`: it was there at the first look at its
    process.
    """

    pid: int
    call: str
    place: str
    since: float
    until: float
    from_first: bool


@dataclass(frozen=True)
class _Look:
    text: str
    used_ns: int
    call: StandingCall


class StandingCalls:
    """Looks at threads; `found` are the calls in which one stood from one look to the next, or longer."""

    def __init__(self, proc: Path = Path("/proc")) -> None:
        self._proc = proc
        self._shown: dict[tuple[int, str], _Look] = {}
        self._ended: list[StandingCall] = []
        self._met: set[int] = set()
        self._threads: dict[int, ProcessThreads] = {}

    def look(self, pid: int, places: Mapping[int, str], now_s: float) -> None:
        """Look at each thread of a process; `places`: where its descriptors on the file system lead to."""
        threads = self._threads.setdefault(pid, ProcessThreads(self._proc / str(pid)))
        first = pid not in self._met
        self._met.add(pid)
        before = {key: one for key, one in self._shown.items() if key[0] == pid}
        for key in before:
            del self._shown[key]
        for thread, _, used_ns in threads.look():
            if len(self._shown) >= _THREADS_MAX:
                break
            text = self._text(pid, thread)
            call, descriptor = call_of(text) or ("", -1)
            place = places.get(descriptor)
            if place is None:
                continue
            was = before.pop((pid, thread), None)
            if was is not None and (was.text, was.used_ns, was.call.place) == (text, used_ns, place):
                self._shown[pid, thread] = replace(was, call=replace(was.call, until=now_s))
                continue
            if was is not None:
                self._end(was.call)
            began = StandingCall(pid, call, place, now_s, now_s, first)
            self._shown[pid, thread] = _Look(text, used_ns, began)
        for was in before.values():
            self._end(was.call)

    def only(self, pids: Collection[int]) -> None:
        """The processes that use the file system yet: what the others stood in has ended."""
        for pid, thread in [key for key in self._shown if key[0] not in pids]:
            self._end(self._shown.pop((pid, thread)).call)

    def _end(self, call: StandingCall) -> None:
        if call.until > call.since:
            self._ended.append(call)

    def waits(self, below: Callable[[str], str | None]) -> Iterator[SeenWait]:
        """Those on files below the path; none counts for one whose beginning and end were both seen."""
        ended, going_on = self.found()
        for one in (*ended, *going_on):
            path, stood_s = below(one.place), one.until - one.since
            if path is not None:
                uncounted = one.from_first or one in going_on
                yield SeenWait(one.pid, one.call, path, stood_s, stood_s if uncounted else 0.0)

    def found(self) -> tuple[list[StandingCall], list[StandingCall]]:
        """Those that ended within the watch, and those that go on."""
        return list(self._ended), [
            one.call for one in self._shown.values() if one.call.until > one.call.since
        ]

    def _text(self, pid: int, thread: str) -> str:
        try:
            descriptor = os.open(self._proc / str(pid) / "task" / thread / "syscall", os.O_RDONLY)
        except OSError:
            return ""
        try:
            return os.read(descriptor, 4096).decode("ascii", "replace")
        except OSError:  # it has ended, or this user may not look
            return ""
        finally:
            os.close(descriptor)
