"""A pool of forks of this process, for work on files of strangers: each fork has its own memory bound.

What ends a fork costs one item, which gets the reason, and a new fork goes on. A fork that met a damaged item
is replaced, too: what is left of it in memory meets no other item.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import select
import signal
import socket
import struct
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar

from leadline.errors import LeadlineError
from leadline.foreign import parse_json, reason_of, within_memory

_Item = TypeVar("_Item")
_NUMBER = struct.Struct("Q")  # the place of an item, or the length of an answer
_ANSWER_BYTES_MAX = 64 << 20
_FORKS_MAX = 8
_END_S = 5.0  # for all forks to remove what they were writing: a busy machine may give each a turn late
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class ForkAnswer:
    """What the work on one item gave, plain JSON; with a `problem` there is no `value`."""

    place: int
    value: Any = None
    problem: str = ""


def in_forks(
    items: Sequence[_Item], work: Callable[[_Item], Any], bytes_max: int, forks: int | None = None
) -> Generator[ForkAnswer, None, None]:
    """The answer to each item, as they come. `work` runs in forks and returns plain JSON.

    All forks together may need `bytes_max` of memory beyond what this process has: each has an equal share.
    Closing the generator ends them.
    """
    if not items:
        return
    forks = forks or _forks_for(len(items))
    crew = _ForkCrew(range(len(items)), lambda place: work(items[place]), bytes_max // forks)
    try:
        for _ in range(forks):
            crew.give_next()
        while crew.forks:
            for ready in select.select(list(crew.forks), [], [])[0]:
                fork = crew.forks[ready]
                answer = fork.answer()
                if answer.problem:
                    crew.end(fork)
                crew.give_next(None if answer.problem else fork)
                yield answer
    finally:
        crew.end_all()


def _forks_for(count: int) -> int:
    return min(len(os.sched_getaffinity(0)), _FORKS_MAX, count)


class _ForkCrew:
    """The forks at work, by what they are heard by, and the items that none has had yet."""

    def __init__(self, places: Iterable[int], work: Callable[[int], Any], bytes_max: int) -> None:
        self.forks: dict[socket.socket, _Fork] = {}
        self._waiting, self._work, self._bytes_max = deque(places), work, bytes_max

    def give_next(self, fork: _Fork | None = None) -> None:
        """Hand an item to a fork, or to a new one; where none is left the fork ends."""
        if not self._waiting:
            if fork is not None:
                self.end(fork)
            return
        if fork is None:
            fork = _Fork(self._work, self._bytes_max)
            self.forks[fork.ours] = fork
        fork.ask(self._waiting.popleft())

    def end(self, fork: _Fork) -> None:
        """End it, and forget it."""
        fork.interrupt()
        fork.end(time.monotonic() + _END_S)
        del self.forks[fork.ours]

    def end_all(self) -> None:
        """End them all within the time that one may take."""
        for fork in self.forks.values():
            fork.interrupt()
        end_s = time.monotonic() + _END_S
        for fork in self.forks.values():
            fork.end(end_s)
        self.forks.clear()


class _Fork:
    """A process that works on one item at a time."""

    def __init__(self, work: Callable[[int], Any], bytes_max: int) -> None:
        self.ours, theirs = socket.socketpair()
        self._place = -1
        # Ctrl-C between the fork and its first line would send two commands up this stack.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
        try:
            self._pid = os.fork()
            if self._pid == 0:
                _serve(work, theirs, bytes_max)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        theirs.close()

    def ask(self, place: int) -> None:
        """Hand it an item. It may have been killed: its answer tells."""
        self._place = place
        with suppress(OSError):
            self.ours.sendall(_NUMBER.pack(place))

    def answer(self) -> ForkAnswer:
        """What it found, waited for."""
        head = _received(self.ours, _NUMBER.size)
        size = _NUMBER.unpack(head)[0] if head else 0
        if size > _ANSWER_BYTES_MAX:
            problem = f"what it holds takes more than {_ANSWER_BYTES_MAX >> 20} MiB"
            return ForkAnswer(self._place, problem=problem)
        data = _received(self.ours, size) if head else None
        if data is None:
            return ForkAnswer(
                self._place, problem=f"the process that read it ended by {self._how_it_ended()}"
            )
        try:
            return ForkAnswer(self._place, *parse_json(data))
        except (ValueError, TypeError) as error:
            return ForkAnswer(self._place, problem=reason_of(error))

    def _how_it_ended(self) -> str:
        code = os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])
        self._pid = 0
        return signal.Signals(-code).name if code < 0 else f"exit code {code}"

    def interrupt(self) -> None:
        """Have it remove what it was writing, and end."""
        if self._pid:
            os.kill(self._pid, signal.SIGINT)

    def end(self, end_s: float) -> None:
        """Wait for its end, which it was asked for; at `end_s` of the monotonic clock it is killed."""
        self.ours.close()
        if not self._pid:
            return
        watched = os.pidfd_open(self._pid)
        try:
            if not select.select([watched], [], [], max(end_s - time.monotonic(), 0.0))[0]:
                os.kill(self._pid, signal.SIGKILL)
        finally:
            os.close(watched)
        os.waitpid(self._pid, 0)


def _serve(work: Callable[[int], Any], theirs: socket.socket, bytes_max: int) -> NoReturn:
    """In the fork: answer until nobody asks, with nothing else of the command's open."""
    code = 1
    try:
        os.setsid()  # Ctrl-C is for the command, which then ends this
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGINT)
        for number in _ENDING:
            signal.signal(number, signal.default_int_handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nothing, stream)
        os.closerange(3, theirs.fileno())
        os.closerange(theirs.fileno() + 1, os.sysconf("SC_OPEN_MAX"))
        gc.freeze()  # to look at it copies it
        with within_memory(bytes_max):
            while asked := _received(theirs, _NUMBER.size):
                data = _answered(work, _NUMBER.unpack(asked)[0])
                theirs.sendall(_NUMBER.pack(len(data)) + data)
        code = 0
    except BaseException:  # noqa: S110 - its code tells
        pass  # and what this exception held is let go here: a writer in it removes its file
    finally:
        os._exit(code)


def _answered(work: Callable[[int], Any], place: int) -> bytes:
    try:
        return json.dumps([work(place), ""], allow_nan=False).encode()
    except LeadlineError as error:
        return json.dumps([None, error.message]).encode()
    except Exception as error:
        return json.dumps([None, reason_of(error)]).encode()


def _received(sender: socket.socket, size: int) -> bytes | None:
    """So many bytes; None where the other side is gone."""
    parts = []
    while size:
        try:
            part = sender.recv(min(size, 1 << 20))
        except OSError:
            part = b""
        if not part:
            return None
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
