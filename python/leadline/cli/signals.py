"""What signals do to a command, and whether the limits of its process let a run come to its end."""

from __future__ import annotations

import importlib
import mmap
import os
import resource
import signal
from types import FrameType
from typing import Any

from leadline.errors import FILES_REMEDY, UsageError, no_memory

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class _Handling:
    """Has handlers of its own for some signals, and puts back those of before at its end."""

    def __init__(self) -> None:
        self._before: dict[int, Any] = {}

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)


class StopRequest(_Handling):
    """Callable: True once a signal asked to stop. A second SIGINT does not wait for the trial."""

    def __init__(self) -> None:
        super().__init__()
        self._number: int | None = None

    def __enter__(self) -> StopRequest:
        for number in _SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:  # `nohup` stays in force
                self._before[number] = signal.signal(number, self._note)
        return self

    def __call__(self) -> bool:
        return self._number is not None

    @property
    def exit_code(self) -> int:
        """128 plus the signal's number, as shells have it."""
        return 128 + (self._number or 0)

    def _note(self, number: int, _frame: FrameType | None) -> None:
        self._number = self._number or number


class Unwinding(_Handling):
    """Context: the first of the signals unwinds what runs in it, by KeyboardInterrupt with its number.

    Every later one is ignored, also once `ignore` was called. What puts things back on the way out is not
    interrupted where it stands in the outer `finally` of two, and the inner one calls `ignore`: a signal at
    that very moment has ignored the next ones itself.
    """

    def __enter__(self) -> Unwinding:
        self._before = {number: signal.getsignal(number) for number in _SIGNALS}
        for number in _SIGNALS:
            signal.signal(number, self._unwind)
        return self

    @staticmethod
    def ignore() -> None:
        """From here on none of the signals does anything."""
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_IGN)

    def _unwind(self, number: int, _frame: FrameType | None) -> None:
        self.ignore()
        raise KeyboardInterrupt(number)


FILES_MIN = 64  # a run of one job has some 40 open
_ROOM_BYTES = 512 << 20  # for tables, and for the stacks and pools of threads
# What a verb loads at its end: it stores tables and judges them.
_AT_THE_END = (
    "pyarrow.parquet",
    "leadline.analysis.statistics.special",
    "leadline.verdict.findings",
    "rich.table",
)


def require_room() -> None:
    """Raises UsageError where the limits of this process let no run end well."""
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if 0 <= files < FILES_MIN:
        raise UsageError(
            f"this process may open {files} files; a run needs {FILES_MIN} or more", FILES_REMEDY
        )
    if resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY and not _can_load():
        raise UsageError(*no_memory())


def _can_load() -> bool:
    """Whether memory holds what is loaded at the end; in a fork, as libraries of C++ abort without."""
    pid = os.fork()
    if pid == 0:
        try:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            for name in _AT_THE_END:
                importlib.import_module(name)
            mmap.mmap(-1, _ROOM_BYTES)
            os._exit(0)
        finally:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
