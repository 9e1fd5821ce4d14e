"""A process's threads, cheaply: an OSD has 60, and what looks at them must not cost what it looks for.

`schedstat` is a fifth of the work of `stat`, and says nanoseconds where that has ticks; the state is read of
those alone that may wait for a device. Names do not change, and are read once.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from leadline.observe.host.proc_parse import parse_task_stat
from leadline.observe.host.reader import TICK_NS

_BYTES_MAX = 4096  # of what the kernel says of one thread
_BLOCKED = "D"


class ProcessThreads:
    """The threads of one process; one that ended meanwhile is left out."""

    def __init__(self, directory: Path) -> None:
        self._tasks = str(directory / "task")
        self._names: dict[str, str] = {}

    def look(self) -> Iterator[tuple[str, str, int]]:
        """Number, name and CPU time (ns) of each."""
        try:
            threads = os.listdir(self._tasks)  # noqa: PTH208 - names are all it needs
        except OSError:
            return
        for thread in threads:
            used_ns = self._used_ns(thread)
            if used_ns is not None:
                yield thread, self._name(thread), used_ns

    def is_blocked(self, names: Sequence[str]) -> bool | None:
        """Whether one whose name begins so stands in the kernel; None where there is none of that name."""
        known = False
        for thread in [number for number, name in self._names.items() if name.startswith(tuple(names))]:
            stat = parse_task_stat(self.text(thread, "stat"))
            known = known or stat is not None
            if stat is not None and stat.state == _BLOCKED:
                return True
        return False if known else None

    def _used_ns(self, thread: str) -> int | None:
        first = self.text(thread, "schedstat").partition(" ")[0]
        if first.isdecimal():
            return int(first)
        stat = parse_task_stat(self.text(thread, "stat"))  # a kernel may be built without
        return None if stat is None else stat.cpu_ticks * TICK_NS

    def _name(self, thread: str) -> str:
        if thread not in self._names:
            self._names[thread] = self.text(thread, "comm").strip()
        return self._names[thread]

    def text(self, thread: str, name: str) -> str:
        """A file of a thread in /proc; "" of one that ended, or that this user may not look at."""
        try:
            descriptor = os.open(f"{self._tasks}/{thread}/{name}", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return ""
        try:
            return os.read(descriptor, _BYTES_MAX).decode("utf-8", "replace")
        except OSError:
            return ""
        finally:
            os.close(descriptor)
