"""N copies of a command at once: started together, waited for, accounted for each, and none left behind.

Runs in a worker process. Copies wait at a gate before they become programs, so that they start together and a
tracer knows them before their first call. Each is a session of its own, so that all that it started can be
ended with it; what it prints is kept in files of bounded size.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import selectors
import signal
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from leadline.durable import new_file
from leadline.errors import StudyError
from leadline.run.interface import plain_summary

KEPT_BYTES_MAX = 1 << 20  # of each stream
_TAIL_KEPT_BYTES = 4096
_READ_BYTES = 1 << 16


class Capture:
    """The standard output and error of one copy: `PATH.out` and `PATH.err`, the first mebibyte of each.

    `stdout` and `stderr` are what the program is given; a thread reads them once `begin` is called.
    """

    def __init__(self, path: Path) -> None:
        self._pipes = {name: os.pipe() for name in ("out", "err")}
        self._files = {
            name: new_file(path.with_name(f"{path.name}.{name}"), buffering=0) for name in self._pipes
        }
        self._kept = dict.fromkeys(self._pipes, 0)
        self._tails = dict.fromkeys(self._pipes, b"")
        self._thread: threading.Thread | None = None
        self._wake = os.pipe()

    @property
    def stdout(self) -> int:
        """The end that the program writes its output to."""
        return self._pipes["out"][1]

    @property
    def stderr(self) -> int:
        """The end that the program writes its errors to."""
        return self._pipes["err"][1]

    def started(self) -> None:
        """The program has its ends now: ours are closed, so that its death is seen."""
        for _, writing in self._pipes.values():
            os.close(writing)

    def begin(self) -> None:
        """Read from now on."""
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def tail(self, size: int) -> str:
        """The end of what was printed as errors, or else as output, on one line."""
        last = self._tails["err"].strip() or self._tails["out"].strip()
        return " / ".join(last[-size:].decode("utf-8", "replace").split("\n"))

    def close(self) -> None:
        """Take what is there already, and stop: a stray process that holds an end is not waited for."""
        if self._thread is None:
            self.begin()
        os.write(self._wake[1], b"x")
        if self._thread is not None:
            self._thread.join()
        for reading, _ in self._pipes.values():
            os.close(reading)
        for descriptor in self._wake:
            os.close(descriptor)
        for file in self._files.values():
            file.close()

    def _read(self) -> None:
        with selectors.DefaultSelector() as selector:
            for name, (reading, _) in self._pipes.items():
                os.set_blocking(reading, False)
                selector.register(reading, selectors.EVENT_READ, name)
            selector.register(self._wake[0], selectors.EVENT_READ, "")
            while len(selector.get_map()) > 1:
                ready = selector.select()
                for key, _ in ready:
                    if key.data and not self._take(key.fd, key.data):
                        selector.unregister(key.fd)
                if len(ready) == 1 and not ready[0][0].data:
                    return  # nothing more is there, and nobody waits for more

    def _take(self, descriptor: int, name: str) -> bool:
        """Keep what was printed; False once there is no more."""
        try:
            data = os.read(descriptor, _READ_BYTES)
        except BlockingIOError:
            return True
        self._tails[name] = (self._tails[name] + data)[-_TAIL_KEPT_BYTES:]
        room = KEPT_BYTES_MAX - self._kept[name]
        if room > 0 and data:
            with contextlib.suppress(OSError):  # a full disk loses what is printed, not the trial
                self._kept[name] += self._files[name].write(data[:room])
        return bool(data)


_REFUSED = 127


@dataclass(frozen=True)
class Start:
    """One copy before it runs; `copy` counts from 1."""

    copy: int
    command: tuple[str, ...]
    directory: Path
    environment: Mapping[str, str]
    output: Path


class Barrier:
    """Makes waiting processes, and lets them go. Use from a process with one thread."""

    def __init__(self) -> None:
        self._waits, self._opens = os.pipe()
        self._errors: dict[int, int] = {}  # copy -> where it says why it could not begin

    def fork(self, one: Start, streams: tuple[int, int]) -> int:
        """A process in a session of its own that waits to become the command; its pid."""
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            self._become(one, streams, writing)
        os.close(writing)
        self._errors[one.copy] = reading
        return pid

    def open(self) -> tuple[dict[int, int], dict[int, str]]:
        """Release all; by copy the time at which its program was there at the latest (monotonic ns), and the
        reasons of those that could not become their command."""
        os.write(self._opens, b"+" * len(self._errors))
        begun, refused = {}, {}
        for copy, reading in self._errors.items():
            data = os.read(reading, 16)  # ends when the program has begun
            begun[copy] = time.monotonic_ns()
            if data:
                refused[copy] = os.strerror(int(data))
        return begun, refused

    def close(self) -> None:
        """Close all; what still waits gives up."""
        for descriptor in (self._waits, self._opens, *self._errors.values()):
            os.close(descriptor)
        self._errors = {}

    def _become(self, one: Start, streams: tuple[int, int], errors: int) -> NoReturn:
        """In the child: nothing of Python's may run past this, whatever happens."""
        try:
            os.setsid()
            _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            os.close(self._opens)
            if os.read(self._waits, 1) != b"+":
                os._exit(_REFUSED)
            for heard in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM, signal.SIGPIPE):
                signal.signal(heard, signal.SIG_DFL)
            os.chdir(one.directory)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            for number, descriptor in enumerate(streams, start=1):
                os.dup2(descriptor, number)
            _execute(one.command, one.environment)
        except OSError as error:
            os.write(errors, str(error.errno or 0).encode())
        finally:
            os._exit(_REFUSED)


def _execute(command: Sequence[str], environment: Mapping[str, str]) -> NoReturn:
    os.execvpe(command[0], list(command), dict(environment))  # noqa: S606 - the user's own command


_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_TERM_GRACE_S = 1.0  # a program may remove its own temporary files
_KILL_GRACE_S = 5.0
_POLL_S = 0.02
_TAIL_BYTES = 600
_libc = ctypes.CDLL(None)


class _LimitError(Exception):
    """The trial took longer than it may."""


class _ParentGoneError(BaseException):
    """The parent died: nothing may outlive this process."""


def run_copies(
    starts: Sequence[Start],
    limit_s: float,
    follow: Callable[[int, int], None] = lambda *_: None,
    spare: frozenset[int] = frozenset(),
) -> dict[str, Any]:
    """Run all copies to their end, at most for `limit_s`; one account each, in order.

    `follow` hears each copy's pid and number before it becomes the command. On an interrupt all are ended
    before it goes on. Children of this process that are in `spare` are not ended with them.
    """
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1)  # what a copy leaves running becomes ours to end
    crew = _Crew(starts, spare)
    with _parent_watched(), _time_limit(limit_s):
        late = False
        try:
            crew.start(follow)
            crew.wait()
        except _LimitError:
            late = True
        except _ParentGoneError:
            crew.end()
            os._exit(1)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            crew.end()
    return crew.account(late)


class _Crew:
    """The copies of one trial, from their start to the last account."""

    def __init__(self, starts: Sequence[Start], spare: frozenset[int]) -> None:
        self._starts = starts
        self._spare = spare
        self._started_unix_ns = time.time_ns()
        self._gate = Barrier()
        self._begun: dict[int, int] = {}  # pid -> monotonic ns
        self._started: dict[int, int] = {}  # copy -> monotonic ns at which its program was there
        self._copy_of: dict[int, Start] = {}
        self._accounts: dict[int, dict[str, Any]] = {}  # copy -> account
        self._captures: dict[int, Capture] = {}
        self._failed: dict[int, str] = {}
        self._killed: set[int] = set()
        self._left: set[int] = set()
        # The kernel counts what a process held before it became the program.
        self._floor_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

    def start(self, follow: Callable[[int, int], None]) -> None:
        """Make all of them, then let them go at once. `follow` hears of each beforehand: pid and copy."""
        try:
            for one in self._starts:
                capture = self._captures[one.copy] = Capture(one.output)
                pid = self._gate.fork(one, (capture.stdout, capture.stderr))
                self._copy_of[pid] = one
                capture.started()
                follow(pid, one.copy)
            self._started_unix_ns = time.time_ns()
            self._begun = dict.fromkeys(self._copy_of, time.monotonic_ns())
            self._started, refused = self._gate.open()
        except OSError as error:
            raise StudyError(f"copies cannot be started: {error.strerror}", "start fewer at once") from None
        self._failed = {copy: f"cannot be started: {why}" for copy, why in refused.items()}
        for capture in self._captures.values():
            capture.begin()

    def wait(self) -> None:
        """Until every copy has ended, or one has failed: then the others have nothing to measure."""
        while len(self._accounts) < len(self._begun) and not self._failed:
            found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
            if found is not None:
                self._reap(found.si_pid)

    def _reap(self, pid: int) -> None:
        ended = time.monotonic_ns()
        moved = _moved(pid)  # of the process and what it waited for; gone once it is reaped
        _, status, usage = os.wait4(pid, 0)
        one = self._copy_of.get(pid)
        if one is None:
            return  # something that a copy had left behind
        code, memory_bytes = os.waitstatus_to_exitcode(status), usage.ru_maxrss * 1024
        self._accounts[one.copy] = {
            "copy": one.copy,
            "pid": pid,
            "released_ns": self._begun.get(pid, ended),
            "started_ns": self._started.get(one.copy, ended),
            "wall_ns": ended - self._begun.get(pid, ended),
            "exit": max(code, 0),
            "signal": -code if code < 0 else None,
            "cpu_user_ns": round(usage.ru_utime * 1e9),
            "cpu_system_ns": round(usage.ru_stime * 1e9),
            "memory_max_bytes": memory_bytes if memory_bytes > self._floor_bytes else None,
            "memory_floor_bytes": self._floor_bytes,
            **moved,
        }
        if code != 0 and one.copy not in self._killed and one.copy not in self._failed:
            self._failed[one.copy] = _death_words(code)

    def end(self) -> None:
        """End what still runs: politely, then for good. What cannot be ended is named in the account."""
        waiting = {pid: one.copy for pid, one in self._copy_of.items() if one.copy not in self._accounts}
        self._killed.update(waiting.values())
        for number, grace_s in ((signal.SIGTERM, _TERM_GRACE_S), (signal.SIGKILL, _KILL_GRACE_S)):
            groups = [pid for pid, copy in waiting.items() if copy not in self._accounts]
            for pid in groups:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(pid, number)
            told = self._tell_and_reap(number, time.monotonic() + grace_s)
            if not waiting:
                self._left.update(told)
        for capture in self._captures.values():
            capture.close()
        self._gate.close()

    def _tell_and_reap(self, number: int, until: float) -> set[int]:
        """Signal each process that is seen, once, and reap what ends; without waiting for what does not.

        One look may miss some: a process whose parent ends just then is in neither one's list of children.
        """
        told: set[int] = set()
        while time.monotonic() < until and (strays := _descendants(self._spare)):
            told.update(_send_to(set(strays) - told, number, lambda: _descendants(self._spare)))
            try:
                found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT | os.WNOHANG)
            except ChildProcessError:
                break
            if found is None:
                time.sleep(_POLL_S)
            else:
                self._reap(found.si_pid)
        return told

    def account(self, late: bool) -> dict[str, Any]:
        """The trial's summary, as the tables take it from any job."""
        copies = [self._accounts[one.copy] for one in self._starts if one.copy in self._accounts]
        for copy in copies:
            copy["ended_by_us"] = copy["copy"] in self._killed
        lost = [pid for pid, one in self._copy_of.items() if one.copy not in self._accounts]
        stuck = [pid for pid in lost if Path(f"/proc/{pid}").exists()]
        begun = [account["started_ns"] for account in copies]
        first = min(begun, default=0)
        done = [copy["wall_ns"] for copy in copies]  # all were released at once
        read, written = (_sum(copies, name) for name in ("read", "write"))
        moved = {"read": read, "write": written}
        for copy in copies:
            copy["started_ns"] -= first
        return plain_summary(
            self._started_unix_ns,
            max(done, default=0),
            state="deadline" if stuck else "error" if late or self._failed else "complete",
            error=self._error(late, stuck),
            first_done_ns=min(done, default=0),
            start_skew_ns=max(begun, default=0) - first if copies else None,
            cpu_user_ns=sum(copy["cpu_user_ns"] for copy in copies),
            cpu_system_ns=sum(copy["cpu_system_ns"] for copy in copies),
            cpus=len(os.sched_getaffinity(0)),
            directions=moved,
            total=moved,
            process_read_bytes=_total(copies, "storage_read_bytes"),
            process_written_bytes=_total(copies, "storage_write_bytes"),
            stuck_threads=stuck,
            left_running=len(self._left),
            copies=copies,
        )

    def _error(self, late: bool, stuck: list[int]) -> dict[str, str] | None:
        if stuck or not (late or self._failed):
            return None
        if self._failed:
            copy = min(self._failed)
            tail = self._captures[copy].tail(_TAIL_BYTES) if copy in self._captures else ""
            words = f"{self._failed[copy]}{f': {tail}' if tail else ''}"
            return {"operation": f"copy {copy} of {len(self._starts)}", "message": words, "kind": "program"}
        ended = sorted(self._killed)
        return {
            "operation": f"{len(ended)} of {len(self._starts)} copies",
            "message": "did not end within runtime, and were ended",
            "kind": "limit",
        }


def _death_words(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"ended by signal {-code}"


def _moved(pid: int) -> dict[str, int | None]:
    """What an ended process moved, with what it waited for (proc(5), /proc/PID/io); None where unreadable."""
    names = {
        "read_bytes": "rchar",
        "write_bytes": "wchar",
        "read_calls": "syscr",
        "write_calls": "syscw",
        "storage_read_bytes": "read_bytes",
        "storage_write_bytes": "write_bytes",
    }
    try:
        lines = Path(f"/proc/{pid}/io").read_text().splitlines()
    except OSError:
        return dict.fromkeys(names)
    found = {name: int(value) for name, _, value in (line.partition(": ") for line in lines)}
    return {ours: found.get(theirs) for ours, theirs in names.items()}


def _descendants(spare: frozenset[int]) -> list[int]:
    """Children of this process, and theirs, that still run; without those to be spared."""
    found: list[int] = []
    waiting = [os.getpid()]
    while waiting:
        parent = waiting.pop()
        for task in _listed(Path(f"/proc/{parent}/task")):
            try:
                children = (Path(f"/proc/{parent}/task") / task / "children").read_text().split()
            except OSError:
                continue
            own = [int(child) for child in children if int(child) not in spare]
            found += own
            waiting += own
    return found


def _send_to(pids: Collection[int], number: int, still: Callable[[], Collection[int]]) -> set[int]:
    """Signal processes that others may reap, and say which: who gets such a pid meanwhile is none of them.

    A descriptor holds whoever has the pid by then; it is one of ours where it still is after that.
    """
    held: dict[int, int] = {}
    try:
        for pid in pids:
            with contextlib.suppress(OSError):
                held[pid] = os.pidfd_open(pid)
        ours = held.keys() & set(still()) if held else set()
        for pid in ours:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                signal.pidfd_send_signal(held[pid], number)
        return ours
    finally:
        for descriptor in held.values():
            os.close(descriptor)


def _listed(path: Path) -> list[str]:
    try:
        return os.listdir(path)  # noqa: PTH208 - names are all that is needed
    except OSError:
        return []


def _sum(copies: Sequence[Mapping[str, Any]], direction: str) -> dict[str, int]:
    return {
        "bytes": sum(copy[f"{direction}_bytes"] or 0 for copy in copies),
        "operations": sum(copy[f"{direction}_calls"] or 0 for copy in copies),
    }


def _total(copies: Sequence[Mapping[str, Any]], name: str) -> int | None:
    values = [copy[name] for copy in copies]
    return None if None in values else sum(values)


@contextlib.contextmanager
def _time_limit(limit_s: float) -> Iterator[None]:
    def over(_number: int, _frame: FrameType | None) -> None:
        raise _LimitError

    before = signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_REAL, limit_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextlib.contextmanager
def _parent_watched() -> Iterator[None]:
    """While copies run, a parent that dies is heard of and not died with: the copies are ended first."""

    def gone(_number: int, _frame: FrameType | None) -> None:
        raise _ParentGoneError

    before = signal.signal(signal.SIGTERM, gone)
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    try:
        yield
    finally:
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        signal.signal(signal.SIGTERM, before)
