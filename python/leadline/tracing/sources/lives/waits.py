"""Looks from outside, many times a second, at what the processes of a command wait for.

A tracer times calls. A process that waits in none of them, for a page of a mapped file or for a CPU, would
pass for one that computes. It knows /proc only, so it serves both tracers.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from leadline.tracing.sources.lives.blocked import KINDS, RUNNING, kind_of

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

    def as_json(self) -> dict[str, Any]:
        """As `TraceTables.extra` keeps it for each copy."""
        return {
            "looks": self.looks,
            "watched_s": self.watched_s,
            "seconds": dict(self.seconds),
            "cpu_s": self.cpu_s,
            "queued_s": self.queued_s,
        }


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
