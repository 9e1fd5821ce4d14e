"""Logs of `strace -f -ttt -T -y`, also in several files (-ff) and with options missing, as tables."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from pathlib import Path

from leadline.errors import UsageError
from leadline.foreign import reading
from leadline.tracing.sources.strace_calls import Interpreter
from leadline.tracing.sources.strace_lines import (
    COUNTED,
    NS,
    Begun,
    Call,
    Ended,
    Event,
    Passed,
    Resumed,
    Stamp,
    call,
    event,
    first_directory,
    head,
    raw,
)
from leadline.tracing.sources.strace_processes import BIRTHS
from leadline.tracing.sources.strace_tables import Reading, tables
from leadline.tracing.tables import TraceTables

LINE_MAX = 1 << 20
_DAY_NS = 86_400 * NS
_MANY_FILES = 200  # more are read whole, one after the other: descriptors are limited
_LOOK_AHEAD = 100_000  # lines
_ATTACHED = "strace: Process "
_REMEDY = "make the log with: strace -f -ttt -T -y -o FILE COMMAND"

Line = tuple[Stamp, str]


def read_strace(path: Path) -> TraceTables:
    """The trace that is in `path`, or in `path`.PID for every process. Raises UsageError."""
    paths = _files(path)
    with reading(path, _REMEDY, UsageError):
        try:
            reader = StraceReader(_directory(paths))
            for stamp, body in _lines(paths, reader.reading):
                reader.feed(stamp, body)
        except OSError as error:
            raise UsageError(f"{error.filename or path} cannot be read: {error.strerror}", _REMEDY) from None
        return reader.finish(str(path))


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        raise UsageError(
            f"{path} is a directory", "name the log; of files of -ff, what they have before .PID"
        )
    if path.exists():
        return [path]
    parts = sorted(part for part in path.parent.glob(f"{path.name}.*") if part.suffix[1:].isdigit())
    if not parts:
        raise UsageError(f"there is no {path}, nor {path}.PID", _REMEDY)
    return parts


def _directory(paths: Sequence[Path]) -> str | None:
    """Where the first program was started: what comes before -y says it needs it too."""
    for path in paths:
        with path.open(encoding="latin-1", newline="\n") as file:
            for _ in range(_LOOK_AHEAD):
                line = file.readline(LINE_MAX)
                found = first_directory(line)
                if found is not None or "chdir(" in line or not line:
                    return found
    return None


def _lines(paths: Sequence[Path], reading: Reading) -> Iterator[Line]:
    """Lines in order; those of several files by their time."""
    if len(paths) == 1 and not paths[0].suffix[1:].isdigit():
        yield from _of_file(paths[0], None, reading, whole=False)
        return
    many = len(paths) > _MANY_FILES
    streams = [_of_file(path, int(path.suffix[1:]), reading, whole=many) for path in paths]
    yield from heapq.merge(*streams, key=_time_of)


def _time_of(line: Line) -> int:
    return line[0].time_ns or 0


def _of_file(path: Path, thread: int | None, reading: Reading, *, whole: bool) -> Iterator[Line]:
    with path.open(encoding="latin-1", newline="\n") as file:
        source = iter(file.readlines()) if whole else iter(lambda: file.readline(LINE_MAX), "")
        carried = ""
        for line in source:
            reading.lines += 1
            if not line.endswith("\n") and len(line) < LINE_MAX:  # cut: its last figure may lack digits
                reading.cut = True
                reading.damage(line)
                return
            text = carried + line.rstrip("\n")
            carried = ""
            announced = text.find(_ATTACHED)
            if announced > 0 and text.endswith(" attached"):  # it came in the middle of a line on a terminal
                carried = text[:announced]
                continue
            if text:
                stamp, body = head(text)
                if stamp.thread is None:
                    stamp.thread = thread
                yield stamp, body


class StraceReader:
    """Joins calls that others interrupted, and hands them on in the order of their ends."""

    def __init__(self, directory: str | None = None) -> None:
        self.reading = Reading()
        self._calls = Interpreter(directory)
        self._family = self._calls.world.family
        self._begun: dict[int, tuple[int, Begun]] = {}
        self._held: dict[int, list[tuple[int, Event]]] = {}
        self._main = 0  # the thread of lines without a pid
        self._first_ns: int | None = None
        self._now_ns = 0  # since the first line
        self._midnights = 0

    def feed(self, stamp: Stamp, body: str) -> None:
        """One line."""
        found = event(body)
        if found is None:
            self.reading.damage(body)
            return
        if found is COUNTED:
            self.reading.summary = True
            return
        if isinstance(found, Passed) and stamp.style == "none":  # a message, or a line of a stack: no time
            return
        self.reading.understood += 1
        now = self._time(stamp)
        thread = self._main if stamp.thread is None else stamp.thread
        if isinstance(found, Passed):
            return
        self.reading.styles.add(stamp.style)
        if thread not in self._family.by_thread and self._is_held(thread):
            self._held.setdefault(thread, []).append((now, found))
            return
        self._take(thread, now, found)
        # Only now: a thread that waited may announce another that waits, in a later one of its lines.
        while self._held and not self._births_under_way():
            self._release(next(iter(self._held)))

    def _time(self, stamp: Stamp) -> int:
        if stamp.time_ns is None:
            return self._now_ns
        at = stamp.time_ns + self._midnights * _DAY_NS
        if self._first_ns is None:
            self._first_ns = at
            if stamp.style == "unix":
                self.reading.started_unix_ns = at
        if stamp.style == "clock" and at - self._first_ns < self._now_ns - _DAY_NS // 2:
            self._midnights += 1
            at += _DAY_NS
        self._now_ns = max(self._now_ns, at - self._first_ns)
        return max(at - self._first_ns, 0)

    def _is_held(self, thread: int) -> bool:
        """A thread that nobody announced waits while a clone is under way: it is what that returns."""
        if self._main == 0 and 0 in self._family.by_thread and not self._births_under_way():
            process = self._family.by_thread.pop(0)  # from its second process on strace names the first one
            process.alive, process.pid = {thread}, thread
            self._family.by_thread[thread] = process
            self._main = thread
            return False
        return self._births_under_way()

    def _births_under_way(self) -> bool:
        return any(begun.name in BIRTHS for _, begun in self._begun.values())

    def _take(self, thread: int, now: int, found: Event) -> None:
        if isinstance(found, Call):
            self._call(thread, now, found)
        elif isinstance(found, Begun):
            self._begun[thread] = (now, found)
        elif isinstance(found, Resumed):
            self._resume(thread, found)
        elif isinstance(found, Ended):
            self._end(thread, now, found)

    def _call(self, thread: int, start: int, found: Call) -> None:
        self._calls.call(thread, start, found)
        if found.name == "exit_group":
            self._family.leaving(thread, found.arguments, start)
        elif raw(found):
            self.reading.styles.add("raw")
        end = start + (found.duration_ns or 0)
        self._now_ns = max(self._now_ns, end)
        if found.name in BIRTHS and found.result is not None and found.result in self._held:
            self._release(found.result)

    def _release(self, thread: int) -> None:
        for at, held in self._held.pop(thread, ()):
            self._take(thread, at, held)

    def _resume(self, thread: int, found: Resumed) -> None:
        start, begun = self._begun.pop(thread, (0, None))
        whole = None if begun is None else call(f"{begun.name}({begun.arguments}{found.rest}")
        if begun is None or begun.name != found.name or whole is None:
            self.reading.halves += 1
            return
        self._call(thread, start, whole)

    def _end(self, thread: int, now: int, found: Ended) -> None:
        if found.superseded_by is not None:  # the thread that called exec goes on under this number
            if found.superseded_by in self._begun:
                self._begun[thread] = self._begun.pop(found.superseded_by)
            return
        if self._begun.pop(thread, None) is not None:
            self.reading.unfinished += 1
        self._family.ended(thread, found.code, found.signal, now)

    def finish(self, name: str) -> TraceTables:
        """The tables. Raises UsageError when this is no log of strace."""
        while self._held:
            self._release(next(iter(self._held)))
        reading = self.reading
        if reading.summary and not self._family.processes:
            raise UsageError(f"{name} is no log of strace's calls, it has their counts (-c)", _REMEDY)
        if not self._family.processes or reading.damaged > reading.understood:
            raise UsageError(f"{name} is no log of strace, {reading.first_damage()}", _REMEDY)
        if "relative" in reading.styles:
            raise UsageError(f"{name} has times relative to the line before (-r)", _REMEDY)
        if "raw" in reading.styles:
            raise UsageError(f"{name} has numbers in place of names (-X raw, -e raw)", _REMEDY)
        self._family.left()
        reading.unfinished += len(self._begun)
        reading.wall_ns = self._now_ns
        return tables(self._calls.world, reading)
