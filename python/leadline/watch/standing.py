"""Calls that do not end: in which a thread stands from one look to the next.

The tracer counts a call when it ends, and none that had begun before it looked. The kernel shows what a
thread is in (`/proc/PID/task/TID/syscall`). A thread that shows the same twice, and had no CPU in between,
was in that call all the time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass, replace
from pathlib import Path

from leadline.observe.host.processes import ProcessThreads
from leadline.tracing.sources.waits import call_of
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
        self._shown: dict[int, dict[str, _Look]] = {}  # by process and thread
        self._ended: list[StandingCall] = []
        self._threads: dict[int, ProcessThreads] = {}  # of every process that was looked at

    def look(self, pid: int, places: Mapping[int, str], now_s: float) -> None:
        """Look at each thread of a process; `places`: where its descriptors on the file system lead to."""
        first = pid not in self._threads
        threads = self._threads.setdefault(pid, ProcessThreads(self._proc / str(pid)))
        before, now = self._shown.pop(pid, {}), dict[str, _Look]()
        room = _THREADS_MAX - sum(map(len, self._shown.values()))
        for thread, _, used_ns in threads.look() if places else ():
            if len(now) >= room:
                break
            text = threads.text(thread, "syscall")
            call, descriptor = call_of(text) or ("", -1)
            place = places.get(descriptor)
            if place is None:
                continue
            was = before.get(thread)
            if was is not None and (was.text, was.used_ns, was.call.place) == (text, used_ns, place):
                now[thread] = replace(before.pop(thread), call=replace(was.call, until=now_s))
            else:
                now[thread] = _Look(text, used_ns, StandingCall(pid, call, place, now_s, now_s, first))
        self._shown[pid] = now
        self._end(before)

    def only(self, pids: Set[int]) -> None:
        """The processes that use the file system yet: what the others stood in has ended."""
        for pid in self._shown.keys() - pids:
            self._end(self._shown.pop(pid))

    def _end(self, looks: Mapping[str, _Look]) -> None:
        self._ended += _stood(looks)

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
        return list(self._ended), [call for looks in self._shown.values() for call in _stood(looks)]


def _stood(looks: Mapping[str, _Look]) -> list[StandingCall]:
    """Those that were seen twice."""
    return [one.call for one in looks.values() if one.call.until > one.call.since]
