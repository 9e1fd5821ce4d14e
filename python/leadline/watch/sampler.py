"""Looks on while others use a mount: collects for a while, writes nothing there and adds no load of its own.

What is collected is judged by `causes`. The tracer counts a call when it ends, and none that had begun before
it looked. So threads are looked at, too: one that the kernel shows in the same call twice
(`/proc/PID/task/TID/syscall`), without CPU in between, was in it all the time.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Set
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leadline.errors import UsageError
from leadline.observe.ceph.client import NotObservableError, ask_socket
from leadline.observe.client import Observer
from leadline.observe.host.processes import ProcessThreads
from leadline.observe.mounts.mountinfo import Mount, read_mounts
from leadline.observe.mounts.users import (
    User,
    Users,
    io_of,
    outside_words,
    own_processes,
    unseen_words,
    users_of,
)
from leadline.observe.reading import Sample, delta
from leadline.study.target import TargetFacts
from leadline.tracing.sources.waits import call_of
from leadline.watch.store import Seen, SeenFile, SeenProcess, SeenWait

if TYPE_CHECKING:
    from leadline.tracing.sources.bpf import Session


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


_LOOK_S = 1.0
_TARGET = "mount"
_SHORTEST_S = 1e-3
_FILES_MAX = 4096  # of a process
_TRACER_BYTES = 64 << 20
_SOCKET_DEADLINE_S = 2.0


@dataclass
class _Process:
    """A process as it was met first and seen last; files and uses are kept by where they lie.

    `met` is when, None where it was met after the first look: then it had just begun.
    """

    user: User
    met: float | None
    first: Mapping[str, int] | None
    last: Mapping[str, int] | None
    ended: bool = False
    positions: dict[tuple[int, str], int] = field(default_factory=dict)
    files: dict[str, tuple[bool, int]] = field(default_factory=dict)
    uses: dict[tuple[str, str], None] = field(default_factory=dict)

    def meet(self, user: User) -> None:
        """What it has open now."""
        self.user = user
        self.uses |= dict.fromkeys(user.uses)
        for file in user.files:
            if len(self.files) >= _FILES_MAX and file.place not in self.files:
                continue
            writing, advanced_bytes = self.files.get(file.place, (False, 0))
            if file.position is not None:
                key = (file.descriptor, file.place)
                advanced_bytes += max(file.position - self.positions.get(key, file.position), 0)
                self.positions[key] = file.position
            self.files[file.place] = (writing or file.writing, advanced_bytes)

    def seen(self, below: Callable[[str], str | None], followed_s: float) -> SeenProcess:
        """Plain values, of what lies below the watched path."""
        moved = None
        if self.first is not None and self.last is not None:
            moved = {name: self.last[name] - value for name, value in self.first.items() if name in self.last}
        files = tuple(
            SeenFile(path, writing, advanced_bytes)
            for place, (writing, advanced_bytes) in self.files.items()
            if (path := below(place)) is not None
        )
        return SeenProcess(
            pid=self.user.pid,
            name=self.user.name,
            account=self.user.account,
            files=files,
            uses=tuple(dict.fromkeys(words for words, place in self.uses if below(place) is not None)),
            moved=moved,
            followed_s=followed_s,
            open_elsewhere=len(self.files) - len(files),
            ended=self.ended,
        )


def watch(
    path: str,
    facts: TargetFacts,
    mount: Mount,
    duration_s: float,
    *,
    stop: Callable[[], bool],
    progress: Callable[[float, int], None],
    use_bpf: bool = True,
    labs: tuple[str, ...] = (),
) -> Seen:
    """Look on for `duration_s`, or until `stop`; `progress` is told the seconds so far and the users seen.

    Ports of the labs in `labs` (directories) are looked at, too.

    Raises ObserverError where the observers cannot be started.
    """
    observer = Observer({_TARGET: facts}, labs=labs)
    started_unix_ns = time.time_ns()
    with ExitStack() as stack:
        session, reason = _tracer(stack, use_bpf)
        observer.start()
        stack.callback(observer.stop)
        crowd = _Crowd(mount, facts, session)
        client_before, client_reason = _client(facts)
        before = observer.mark("watch:start", _TARGET, None)
        samples: list[Sample] = []
        begun = crowd.begun = time.monotonic()
        for elapsed_s in _ticks(begun, duration_s, stop):
            crowd.look()
            samples += observer.drain()
            progress(elapsed_s, len(crowd.processes))
        after = observer.mark("watch:end", _TARGET, None)
        client_after, _ = _client(facts)
        elapsed_s = time.monotonic() - begun
        samples += observer.drain()
        crowd.look()
        crowd.ended = time.monotonic()  # finishing detaches first, and then takes its time
        calls = None if session is None else session.finish(started_unix_ns=started_unix_ns)
    both = None if client_before is None or client_after is None else (client_before, client_after)
    seen = Seen(
        path=path,
        words=facts.words,
        access=facts.access,
        mount=mount,
        elapsed_s=elapsed_s,
        change=delta(before, after).as_json(),
        samples=tuple((it.t_ns, it.source, it.subject, it.metric, it.value, it.unit) for it in samples),
        processes=(),
        unseen=tuple(words for words in (unseen_words(crowd.unseen), outside_words()) if words),
        calls=calls,
        calls_reason=crowd.refused or reason,
        client=both,
        client_reason=client_reason,
        mounts=crowd.mounts,
        foreign={pid: one.user.mounts for pid, one in crowd.processes.items() if one.user.mounts},
    )
    return replace(
        seen,
        calls_s=crowd.ended - begun,
        processes=tuple(one.seen(seen.below, crowd.followed_s(one)) for one in crowd.processes.values()),
        waits=tuple(crowd.standing.waits(seen.below)),
    )


def _ticks(begun: float, duration_s: float, stop: Callable[[], bool]) -> Iterator[float]:
    """The seconds gone, about once a second, until the time is over or `stop` says so."""
    due = begun
    while (now := time.monotonic()) - begun < duration_s and not stop():
        if now >= due:
            due += _LOOK_S
            yield now - begun
        time.sleep(min(0.1, max(0.0, begun + duration_s - now)))


def _tracer(stack: ExitStack, wanted: bool) -> tuple[Session | None, str]:
    from leadline.tracing.sources.bpf import Session, unavailable

    if not wanted:
        return None, "the tracer in the kernel was not to be used"
    why = unavailable()
    if why is not None:
        return None, why
    session: AbstractContextManager[Session] = Session(segments_bytes=None, memory_bytes=_TRACER_BYTES)
    try:
        return stack.enter_context(session), ""
    except UsageError as error:
        return None, error.message


def _client(facts: TargetFacts) -> tuple[Mapping[str, Any] | None, str]:
    """The client daemon's perf dump, or why there is none."""
    if facts.ceph is None:
        return None, "the mount has no client daemon of Ceph"
    path, pid = facts.ceph.client_socket, facts.ceph.client_pid
    if path is None or pid is None:
        kernel = facts.access == "ceph-kernel"
        unseen = facts.ceph.distrusted or "its admin socket is not seen"
        return None, "the kernel client has no admin socket" if kernel else unseen
    try:
        return ask_socket(path, pid, "perf dump", _SOCKET_DEADLINE_S), ""
    except NotObservableError as error:
        return None, str(error)


class _Crowd:
    """The processes that use the file system, as they come and go; each is handed to the tracer once."""

    def __init__(self, mount: Mount, facts: TargetFacts, session: Session | None) -> None:
        self._mount, self._session = mount, session
        self.mounts = read_mounts()
        daemon = None if facts.ceph is None else facts.ceph.client_pid
        self._daemon = frozenset({daemon} if daemon is not None else ())
        self.processes: dict[int, _Process] = {}
        self.unseen: dict[int, str] = {}
        self.refused = ""
        self.begun = self.ended = 0.0
        self._looks = 0
        self.standing = StandingCalls()

    def followed_s(self, process: _Process) -> float:
        """For how long its calls were counted; all of the time where it began within."""
        return max(self.ended - (self.begun if process.met is None else process.met), _SHORTEST_S)

    def look(self) -> None:
        found: Users = users_of(self._mount, self.mounts, without=self._daemon | own_processes())
        self.unseen |= found.unseen
        for user in found.users:
            # Before the tracer follows it: it will not see the end of what had begun.
            places = {file.descriptor: file.place for file in user.files}
            self.standing.look(user.pid, places, time.monotonic())
            self._meet(user)
        self.standing.only({user.pid for user in found.users})
        self._looks += 1
        for pid, process in self.processes.items():
            now = io_of(pid)
            process.last, process.ended = now or process.last, now is None

    def _meet(self, user: User) -> None:
        known = self.processes.get(user.pid)
        if known is None:
            now = io_of(user.pid)
            self._follow(user.pid)
            met = None if self._looks else time.monotonic()
            known = self.processes[user.pid] = _Process(user, met, now, now)
        known.meet(user)

    def _follow(self, pid: int) -> None:
        if self._session is None or self.refused:
            return
        try:
            with contextlib.suppress(ProcessLookupError):
                self._session.attach(pid)
        except UsageError as error:
            self.refused = error.message
