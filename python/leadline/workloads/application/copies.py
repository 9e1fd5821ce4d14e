"""N copies of a command at once: started together, waited for, accounted for each, and none left behind.

Runs in a worker process. A copy is a session of its own, so that all that it started can be ended with it.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

from leadline.errors import StudyError
from leadline.run.interface import plain_summary
from leadline.workloads.application.barrier import Barrier, Start
from leadline.workloads.application.capture import Capture

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
