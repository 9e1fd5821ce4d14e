"""Processes that wait at a gate before they become programs: all are released by one write.

So copies start together, and a tracer knows a process before its first call.
"""

from __future__ import annotations

import ctypes
import os
import signal
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

_PR_SET_PDEATHSIG = 1
_REFUSED = 127
_libc = ctypes.CDLL(None)


@dataclass(frozen=True)
class Start:
    """One copy before it runs; `copy` counts from 1."""

    copy: int
    command: tuple[str, ...]
    directory: Path
    environment: Mapping[str, str]
    output: Path


class Gate:
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
