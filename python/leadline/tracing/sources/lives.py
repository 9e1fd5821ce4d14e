"""When the traced processes end, how, and which of them the command leaves running.

A log that appears names its process, whose end the kernel then tells by a pidfd, of whoever it is the child.
How it ended is known while it waits for its parent, and from Linux 6.15 on afterwards too. Without an end the
last that records show of a process is sure. Every process of a trace has the trace's mark in its environment,
which /proc shows whoever its parent is by then; one that was started with another environment is not found.
"""

from __future__ import annotations

import array
import ctypes
import fcntl
import os
import select
import signal
import struct
import threading
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from leadline.tracing.tables import LAST_SEEN, TIMES, ProcessRow, TraceTables

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


def with_last_seen(tables: TraceTables) -> TraceTables:
    """`tables` where no process is without an end but those that still run.

    One whose end nobody recorded has `end` "last seen", and `ended_ns` is when its last call ended, as far as
    they were listed or files say so, or its last child began: it lived at least until then.
    """
    if all(row.ended_ns is not None or row.end == "running" for row in tables.processes):
        return tables
    shown: dict[tuple[int, int], int] = {}
    for key, at_ns in (*_of_files(tables), *_of_segments(tables)):
        shown[key] = max(shown.get(key, 0), at_ns)
    for row in tables.processes:
        if row.parent is not None:
            key = row.copy, row.parent
            shown[key] = max(shown.get(key, 0), row.started_ns)
    rows = (_ended(row, shown.get((row.copy, row.process), 0)) for row in tables.processes)
    return replace(tables, processes=tuple(rows))


def _ended(row: ProcessRow, shown_ns: int) -> ProcessRow:
    if row.ended_ns is not None or row.end == "running":
        return row
    end = LAST_SEEN if row.end == "unknown" else row.end
    return replace(row, ended_ns=max(row.started_ns, shown_ns), end=end)


def _of_files(tables: TraceTables) -> list[tuple[tuple[int, int], int]]:
    names = [name for name in TIMES if name.endswith("_END_TIMESTAMP")]
    sums = tables.files.group_by(["copy", "process"]).aggregate([(name, "max") for name in names])
    found = []
    for row in sums.to_pylist():
        known = [row[f"{name}_max"] for name in names if row[f"{name}_max"] is not None]
        if known:
            found.append(((row["copy"], row["process"]), int(max(known) * 1e9)))
    return found


def _of_segments(tables: TraceTables) -> list[tuple[tuple[int, int], int]]:
    import pyarrow.compute as pc

    if tables.segments is None or not tables.segments.num_rows:
        return []
    ends = pc.add(tables.segments["start_ns"], tables.segments["duration_ns"])
    keyed = tables.segments.select(["copy", "process"]).append_column("end", ends)
    rows = keyed.group_by(["copy", "process"]).aggregate([("end", "max")]).to_pylist()
    return [((row["copy"], row["process"]), int(row["end_max"])) for row in rows]


_CREATED = 0x100  # IN_CREATE of sys/inotify.h
_OVERFLOWN = 0x4000  # IN_Q_OVERFLOW
_NOTICE = struct.Struct("iIII")  # struct inotify_event without its name
_NOTICES_BYTES = 1 << 16
# Of linux/pidfd.h: struct pidfd_info in its first version, how it is asked for, and its word for an end.
_INFO_BYTES = 64
_GET_INFO = 0xC000_0000 | _INFO_BYTES << 16 | 0xFF << 8 | 11
_INFO_EXIT = 1 << 3
_EXIT_CODE_AT = 60


@dataclass(frozen=True)
class SeenEnd:
    """What was seen of the end of a process.

    `kernel_start` is field 22 of its /proc/PID/stat, None where it was gone before it could be read;
    `status` is as wait() gives it, None where nobody told it.
    """

    kernel_start: int | None
    ended_unix_ns: int
    status: int | None

    @property
    def end(self) -> tuple[str, int | None]:
        """The words of table `processes`: its `end` and `status`."""
        if self.status is None:
            return "unknown", None
        number = self.status & 0x7F
        return ("signal", number) if number else ("exit", self.status >> 8 & 0xFF)


@dataclass
class _Watched:
    pid: int
    descriptor: int
    kernel_start: int | None
    names: list[str]


def stat_fields(pid: int) -> list[str] | None:
    """/proc/PID/stat from its third field on, None where there is no such process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None


def kernel_start(pid: int) -> int | None:
    """When the process that has this number now was started, in the kernel's ticks."""
    fields = stat_fields(pid)
    return None if fields is None else int(fields[19])


class EndWatch:
    """Watches directories in which processes make logs `PID-NS.SUFFIX`; `ends` is by such a name."""

    def __init__(self, suffix: str, now_ns: Callable[[], int] = time.time_ns) -> None:
        self.ends: dict[str, SeenEnd] = {}
        self._suffix, self._now_ns = suffix, now_ns
        self._directories: list[Path] = []
        self._by_pid: dict[int, _Watched] = {}
        self._by_descriptor: dict[int, _Watched] = {}
        self._thread: threading.Thread | None = None
        self._library = ctypes.CDLL(None, use_errno=True)
        self._notices = self._library.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        self._stop = os.eventfd(0, os.EFD_CLOEXEC)
        self._ready = select.epoll()
        self._ready.register(self._stop, select.EPOLLIN)
        if self._notices >= 0:
            self._ready.register(self._notices, select.EPOLLIN)

    def add(self, directory: Path) -> None:
        """Watch a directory, before the first process writes there."""
        self._directories.append(directory)
        if self._notices >= 0:
            self._library.inotify_add_watch(self._notices, os.fsencode(directory), _CREATED)

    def begin(self) -> None:
        """Watch from now on, beside the caller."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="ends of processes", daemon=True)
            before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())  # they are the caller's
            self._thread.start()
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def close(self) -> None:
        """Take what has happened until now, and watch no more."""
        if self._stop < 0:
            return
        if self._thread is not None:
            os.eventfd_write(self._stop, 1)
            self._thread.join()
        for watched in list(self._by_descriptor.values()):
            os.close(watched.descriptor)
        self._ready.close()
        for descriptor in (self._notices, self._stop):
            if descriptor >= 0:
                os.close(descriptor)
        self._stop = -1

    def _run(self) -> None:
        stopped = False
        while True:
            happened = self._ready.poll(0 if stopped else None)
            descriptors = {descriptor for descriptor, _ in happened}
            # An end first: the next process may have its number.
            ended = [self._by_descriptor[one] for one in descriptors if one in self._by_descriptor]
            for watched in ended:
                self._ended(watched)
            if self._notices in descriptors:
                self._new_logs()
            if stopped and not ended and self._notices not in descriptors:
                return
            stopped = stopped or self._stop in descriptors

    def _new_logs(self) -> None:
        data = os.read(self._notices, _NOTICES_BYTES)
        place = 0
        while place < len(data):
            _, mask, _, length = _NOTICE.unpack_from(data, place)
            place += _NOTICE.size
            name = data[place : place + length].rstrip(b"\0").decode(errors="replace")
            place += length
            if mask & _OVERFLOWN:
                for directory in self._directories:
                    for log in directory.iterdir():
                        self._appeared(log.name)
            elif name:
                self._appeared(name)

    def _appeared(self, name: str) -> None:
        """A log was made. An exec makes another one of the same process."""
        text, _, rest = name.partition("-")
        if not rest.endswith(self._suffix) or not text.isdigit():
            return
        stem, pid = name.removesuffix(self._suffix), int(text)
        known = self._by_pid.get(pid)
        if known is not None and known.kernel_start == kernel_start(pid):
            if stem not in known.names:
                known.names.append(stem)
            return
        if stem in self.ends:
            return
        try:
            descriptor = os.pidfd_open(pid)
        except ProcessLookupError:
            self.ends[stem] = SeenEnd(None, self._now_ns(), None)
            return
        except (
            OSError
        ):  # no more descriptors, or a number that is none of ours: it is seen by its records only
            return
        watched = _Watched(pid, descriptor, kernel_start(pid), [stem])
        self._by_pid[pid] = self._by_descriptor[descriptor] = watched
        self._ready.register(descriptor, select.EPOLLIN)

    def _ended(self, watched: _Watched) -> None:
        """Its pidfd said so."""
        at_ns = self._now_ns()
        seen = SeenEnd(watched.kernel_start, at_ns, _status(watched))
        for name in watched.names:
            self.ends[name] = seen
        self._ready.unregister(watched.descriptor)
        os.close(watched.descriptor)
        del self._by_descriptor[watched.descriptor]
        if self._by_pid.get(watched.pid) is watched:
            del self._by_pid[watched.pid]


def _status(watched: _Watched) -> int | None:
    """As wait() gives it: of one that still waits for its parent, else of what the kernel keeps of it."""
    fields = stat_fields(watched.pid)
    if fields is not None and fields[0] in "ZX" and int(fields[19]) == watched.kernel_start:
        return int(fields[49])
    info = array.array("B", bytes(_INFO_BYTES))
    struct.pack_into("Q", info, 0, _INFO_EXIT)
    with suppress(OSError):
        fcntl.ioctl(watched.descriptor, _GET_INFO, info)
        if struct.unpack_from("Q", info, 0)[0] & _INFO_EXIT:
            return int(struct.unpack_from("i", info, _EXIT_CODE_AT)[0])
    return None
