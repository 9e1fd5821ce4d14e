"""What the processes of a command wait for, looked at from outside many times a second.

A tracer times calls. A process that waits in none of them, for a page of a mapped file or for a CPU, would
pass for one that computes. It knows /proc only (`/proc/PID/task/TID/syscall`), so it serves both tracers. A
thread that is off the CPU and in no system call waits for a page: of a mapped file, a library, its program.
"""

from __future__ import annotations

import os
import platform
import signal
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

# In the order in which one thread speaks for its process: idle threads wait for locks.
PAGE, FILE, PEER, ASLEEP, OTHER, LOCK = KINDS = ("page", "file", "peer", "asleep", "other", "lock")
RUNNING = "running"
# Numbers of calls: x86-64's, then those of the kernel's generic table (arm64); None where a table has no
# such call.
_CALLS: dict[str, dict[str, tuple[int | None, int | None]]] = {
    FILE: {
        "open": (2, None),
        "close": (3, 57),
        "stat": (4, None),
        "fstat": (5, 80),
        "lstat": (6, None),
        "mmap": (9, 222),
        "pread64": (17, 67),
        "pwrite64": (18, 68),
        "access": (21, None),
        "msync": (26, 227),
        "sendfile": (40, 71),
        "execve": (59, 221),
        "flock": (73, 32),
        "fsync": (74, 82),
        "fdatasync": (75, 83),
        "truncate": (76, 45),
        "ftruncate": (77, 46),
        "getdents": (78, None),
        "rename": (82, None),
        "mkdir": (83, None),
        "rmdir": (84, None),
        "creat": (85, None),
        "link": (86, None),
        "unlink": (87, None),
        "symlink": (88, None),
        "readlink": (89, None),
        "statfs": (137, 43),
        "sync": (162, 81),
        "io_getevents": (208, 4),
        "getdents64": (217, 61),
        "openat": (257, 56),
        "mkdirat": (258, 34),
        "newfstatat": (262, 79),
        "unlinkat": (263, 35),
        "renameat": (264, 38),
        "linkat": (265, 37),
        "readlinkat": (267, 78),
        "faccessat": (269, 48),
        "sync_file_range": (277, 84),
        "fallocate": (285, 47),
        "preadv": (295, 69),
        "pwritev": (296, 70),
        "syncfs": (306, 267),
        "renameat2": (316, 276),
        "execveat": (322, 281),
        "copy_file_range": (326, 285),
        "preadv2": (327, 286),
        "pwritev2": (328, 287),
        "statx": (332, 291),
        "io_uring_enter": (426, 426),
        "openat2": (437, 437),
        "faccessat2": (439, 439),
    },
    ASLEEP: {
        "pause": (34, None),
        "nanosleep": (35, 101),
        "restart_syscall": (219, 128),
        "clock_nanosleep": (230, 115),
    },
    LOCK: {"semop": (65, 193), "futex": (202, 98), "semtimedop": (220, 192)},
    PEER: {
        "poll": (7, None),
        "select": (23, None),
        "connect": (42, 203),
        "accept": (43, 202),
        "sendto": (44, 206),
        "recvfrom": (45, 207),
        "sendmsg": (46, 211),
        "recvmsg": (47, 212),
        "wait4": (61, 260),
        "msgrcv": (70, 188),
        "epoll_wait": (232, None),
        "mq_timedreceive": (243, 183),
        "waitid": (247, 95),
        "pselect6": (270, 72),
        "ppoll": (271, 73),
        "epoll_pwait": (281, 22),
        "accept4": (288, 242),
        "recvmmsg": (299, 243),
        "sendmmsg": (307, 269),
    },
}
# What their first argument names decides: a file, or a pipe or socket of another program.
_BY_DESCRIPTOR: dict[str, tuple[int, int]] = {
    "read": (0, 63),
    "write": (1, 64),
    "readv": (19, 65),
    "writev": (20, 66),
    "splice": (275, 76),
}
_COLUMN = 0 if platform.machine() == "x86_64" else 1
_KIND_OF = {
    numbers[_COLUMN]: kind
    for kind, calls in _CALLS.items()
    for numbers in calls.values()
    if numbers[_COLUMN] is not None
}
_TRANSFERS = frozenset(numbers[_COLUMN] for numbers in _BY_DESCRIPTOR.values())
# Of the calls on files those whose first argument is the descriptor of the file.
_ON_A_FILE = (
    *("fstat", "pread64", "pwrite64", "sendfile", "flock", "fsync", "fdatasync", "ftruncate", "getdents"),
    *("getdents64", "sync_file_range", "fallocate", "preadv", "pwritev", "syncfs", "copy_file_range"),
    *("preadv2", "pwritev2"),
)
_CALL_ON_A_FILE = {
    numbers[_COLUMN]: name
    for name, numbers in {**_BY_DESCRIPTOR, **{name: _CALLS[FILE][name] for name in _ON_A_FILE}}.items()
    if numbers[_COLUMN] is not None
}


def kind_of(text: str, names: Callable[[int], str]) -> str | None:
    """The kind of wait that a line of `syscall` shows, or RUNNING; None of a thread that ended.

    `names` gives what a descriptor of the process leads to, as its link in `/proc/PID/fd` says.
    """
    words = text.split()
    if not words:
        return None
    if words[0] == RUNNING:
        return RUNNING
    if words[0] == "-1":
        return PAGE if len(words) > 1 and int(words[1], 16) else None  # without a stack it has ended
    number = int(words[0])
    if number not in _TRANSFERS:
        return _KIND_OF.get(number, OTHER)
    name = names(int(words[1], 16))
    if name.startswith(("pipe:", "socket:")):
        return PEER
    return FILE if name.startswith("/") and not name.startswith("/dev/") else OTHER


def call_of(text: str) -> tuple[str, int] | None:
    """The call and the descriptor that a line of `syscall` shows; None of another call, or of none."""
    words = text.split()
    if len(words) < 2 or not words[0].isdecimal() or int(words[0]) not in _CALL_ON_A_FILE:
        return None
    return _CALL_ON_A_FILE[int(words[0])], int(words[1], 16)


_EVERY_S = 0.025
_OWN_SHARE = 0.01  # of one CPU: what looking may take
_TASKS_MAX = 512  # that one look reads
_NS = 1e9


@dataclass
class Waits:
    """Of one copy: by kind, seconds in which its processes waited, or could run, each without a living child.

    `cpu_s` and `queued_s` are what its threads had run, and had waited for a CPU, when they were last seen;
    `looks` were made over `watched_s`.
    """

    looks: int = 0
    watched_s: float = 0.0
    seconds: dict[str, float] = field(default_factory=dict)
    cpu_s: float = 0.0
    queued_s: float = 0.0


class WaitWatch:
    """Watches processes and all that they start, beside its caller, until it is closed."""

    def __init__(self, proc: Path = Path("/proc"), now_s: Callable[[], float] = time.monotonic) -> None:
        self._proc, self._now_s = proc, now_s
        self._copies: dict[int, int] = {}
        self._found: dict[int, Waits] = {}
        self._tasks: dict[tuple[int, int], tuple[int, int, int]] = {}
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._looked_s = 0.0

    def begin(self, copies: Mapping[int, int]) -> None:
        """Watch from now on; `copies` has the number of each copy by the pid that it starts as."""
        self.add(copies)
        self._thread = threading.Thread(target=self._run, name="what processes wait for", daemon=True)
        before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())  # they are the caller's
        self._thread.start()
        signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def add(self, copies: Mapping[int, int]) -> None:
        """The processes to look at, and what they start from then on."""
        self._copies.update(copies)
        self._found.update({copy: Waits() for copy in copies.values()})
        self._looked_s = self._now_s()

    def close(self) -> dict[int, Waits]:
        """Watch no more; what was seen, by copy."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        for copy, run_ns, queued_ns in self._tasks.values():
            self._found[copy].cpu_s += run_ns / _NS
            self._found[copy].queued_s += queued_ns / _NS
        self._tasks.clear()
        return self._found

    def look(self) -> None:
        """One look at every process that is known by now."""
        now_s = self._now_s()
        passed_s, self._looked_s = now_s - self._looked_s, now_s
        copies = set(self._copies.values())
        for copy in copies:
            self._found[copy].looks += 1
            self._found[copy].watched_s += passed_s
        left = _TASKS_MAX
        waiting = list(self._copies)
        while waiting and left > 0:
            pid = waiting.pop()
            tasks = self._listed(pid)
            if not tasks:
                del self._copies[pid]
                continue
            left -= len(tasks)
            children = self._children(pid, tasks)
            fresh = [child for child in children if child not in self._copies]
            self._copies.update(dict.fromkeys(fresh, self._copies[pid]))
            waiting += fresh
            self._take_times(pid, tasks)
            kind = None if children else self._kind(pid, tasks)
            if kind is not None:
                seconds = self._found[self._copies[pid]].seconds
                seconds[kind] = seconds.get(kind, 0.0) + passed_s

    def _run(self) -> None:
        every_s = _EVERY_S
        while not self._stop.wait(every_s):
            began_s = time.thread_time()
            self.look()
            every_s = max(_EVERY_S, (time.thread_time() - began_s) / _OWN_SHARE)

    def _listed(self, pid: int) -> list[int]:
        with suppress(OSError):
            return [int(name) for name in os.listdir(self._proc / str(pid) / "task")]  # noqa: PTH208 - many a second
        return []

    def _text(self, pid: int, task: int, name: str) -> str:
        with suppress(OSError), (self._proc / str(pid) / "task" / str(task) / name).open() as file:
            return file.read()
        return ""

    def _children(self, pid: int, tasks: list[int]) -> list[int]:
        """Those that live: one that ended and was not waited for yet keeps nobody waiting."""
        found = [int(word) for task in tasks for word in self._text(pid, task, "children").split()]
        return [child for child in found if not self._has_ended(child)]

    def _has_ended(self, pid: int) -> bool:
        with suppress(OSError):
            text = (self._proc / str(pid) / "stat").read_text()
            return text.rpartition(")")[2].split()[:1] in (["Z"], ["X"])
        return True

    def _take_times(self, pid: int, tasks: list[int]) -> None:
        for task in tasks:
            words = self._text(pid, task, "schedstat").split()
            if len(words) >= 2:
                self._tasks[pid, task] = (self._copies[pid], int(words[0]), int(words[1]))

    def _kind(self, pid: int, tasks: list[int]) -> str | None:
        """What the process waits for: the first of KINDS that one of its threads does, if none runs."""
        kinds = {kind_of(self._text(pid, task, "syscall"), lambda fd: self._name(pid, fd)) for task in tasks}
        if RUNNING in kinds:
            return RUNNING
        return next((kind for kind in KINDS if kind in kinds), None)

    def _name(self, pid: int, descriptor: int) -> str:
        with suppress(OSError):
            return os.readlink(self._proc / str(pid) / "fd" / str(descriptor))  # noqa: PTH115 - many a second
        return ""
