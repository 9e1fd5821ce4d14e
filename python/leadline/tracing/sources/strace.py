"""Logs of `strace -f -ttt -T -y`, also in several files (-ff) and with options missing, as tables of a trace.

What a log did not say is null, with a warning.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from leadline.errors import UsageError
from leadline.foreign import reading
from leadline.tracing.counters import FileCounters, column, costs_of_processes, time_column
from leadline.tracing.paths import renamed
from leadline.tracing.sources.lives import with_last_seen
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
from leadline.tracing.sources.strace_world import BIRTHS, EXECS, Process, World, call_kinds
from leadline.tracing.tables import (
    COUNTERS,
    KINDS,
    OWN_COUNTERS,
    TIMES,
    ProcessRow,
    TraceLatencyRow,
    TraceTables,
    files_schema,
    seconds_json,
)

# fileno() is no system call, and strace shows what is in a buffer, not where the buffer is.
_NEVER_KNOWN = frozenset(("FILENOS", "MEM_NOT_ALIGNED"))
_SAMPLE_MAX = 60
# Notes of requests whose ends are not in the log.
_UNSEEN = ("io_uring", "io_submit")


@dataclass
class Reading:
    """What was met while reading, besides calls."""

    lines: int = 0
    understood: int = 0
    damaged: int = 0
    halves: int = 0  # ends of calls without their beginnings
    unfinished: int = 0
    cut: bool = False
    summary: bool = False  # the counts of -c or -C are there
    styles: set[str] = field(default_factory=set)
    started_unix_ns: int | None = None
    wall_ns: int = 0
    _sample: str = ""

    def damage(self, body: str) -> None:
        """A line that is none of strace."""
        self.damaged += 1
        self._sample = self._sample or body[:_SAMPLE_MAX]

    def first_damage(self) -> str:
        """The first such line, printable."""
        return f"for example {self._sample!a}" if self._sample else "or an empty one"

    @property
    def timed(self) -> bool:
        """Every line has its time."""
        return bool(self.styles) and self.styles <= {"unix", "clock"}


def tables(world: World, reading: Reading) -> TraceTables:
    """The trace."""
    filtered = _filtered(world)
    unknown = set(_NEVER_KNOWN) | _not_looked_at(world, filtered)
    if world.untimed or not reading.timed:
        unknown.update(name for name in TIMES if world.untimed and name.endswith("_TIME"))
        unknown.update(name for name in TIMES if not reading.timed)
    segments = None if world.untimed or not reading.timed else world.segments.table()
    own_cost_s = None if world.untimed else _take_out_strace(world)
    found = TraceTables(
        mode="import",
        processes=tuple(_process(process, world, reading.timed) for process in world.family.processes),
        files=_file_rows(world, unknown),
        latency=() if world.untimed else tuple(_latency(world)),
        segments=segments,
        source=f"strace, {reading.understood} lines",
        warnings=tuple(_warnings(world, reading, filtered)),
        extra=_extra(world, reading) | {"call_cost_s": own_cost_s},
    )
    found = with_last_seen(found) if reading.timed else found
    return renamed(found, {path: None for path in world.streams})


def _take_out_strace(world: World) -> float | None:
    """Take strace's own cost out of times by file and process; seconds a call, the most; None if unknown."""
    processes = world.family.processes
    costs = costs_of_processes([process.reference for process in processes])
    if costs is None:
        return None
    for process, row in world.rows:
        for what in ("READ", "WRITE", "META"):
            row.take_out(what, costs[process.number])
    for process, cost in zip(processes, costs, strict=True):
        for kind in KINDS:
            spent, calls = process.spent_ns[kind], len(process.latencies[kind])
            process.spent_ns[kind] = round(cost.left(spent, calls))
    return max(cost.call_ns for cost in costs) / NS


def _process(process: Process, world: World, timed: bool) -> ProcessRow:
    notes = set(process.notes)
    if any(not executable for executable in process.mapped.values()):
        notes.add("mmap")
    seconds = {kind: None if world.untimed else process.spent_ns[kind] / NS for kind in KINDS}
    return ProcessRow(
        copy=0,
        process=process.number,
        parent=process.parent,
        pid=process.pid,
        executable=process.executable,
        command=json.dumps(process.command),
        mode="import",
        started_ns=process.started_ns if timed else 0,
        ended_ns=process.ended_ns if timed else None,
        end=process.end,
        status=process.status,
        threads=process.threads,
        bytes_read=process.bytes["READ"],
        bytes_written=process.bytes["WRITE"],
        calls=json.dumps(process.calls),
        seconds=seconds_json(seconds, unseen=any(note.startswith(_UNSEEN) for note in notes)),
        lost=json.dumps({}),
        notes=json.dumps(sorted(notes)),
    )


def _file_rows(world: World, unknown: set[str]) -> Any:
    import pyarrow as pa

    rows: list[FileCounters] = [row for _, row in world.rows]
    for row in rows:
        row.counts.setdefault("FILE_ALIGNMENT", 4096)
    columns: dict[str, list[Any]] = {
        "copy": [0] * len(rows),
        "process": [process.number for process, _ in world.rows],
        "file": [row.number for row in rows],
        "module": ["POSIX"] * len(rows),
        "path": [row.path for row in rows],
    }
    columns.update({name: column(rows, name, unknown) for name in (*COUNTERS, *OWN_COUNTERS)})
    columns.update({name: time_column(rows, name, unknown) for name in TIMES})
    return pa.table(columns, schema=files_schema())


def _latency(world: World) -> list[TraceLatencyRow]:
    from leadline._core import histogram_of

    return [
        TraceLatencyRow(0, process.number, kind, len(values), histogram_of(values))
        for process in world.family.processes
        for kind, values in process.latencies.items()
        if values
    ]


def _filtered(world: World) -> bool:
    """True when the log has calls of our table only: every whole log has memory and signals too."""
    known = call_kinds()
    passed = set(world.seen) - set(known) - BIRTHS - set(EXECS)
    return not passed and bool(world.seen)


def _not_looked_at(world: World, filtered: bool) -> set[str]:
    """Counters whose calls a filtered log may have left out."""
    if not filtered:
        return set()
    kinds = call_kinds()
    seen = {kinds[name].does for name in world.seen if name in kinds}
    counted = {kinds[name].counter for name in world.seen if name in kinds}
    unknown = {kind.counter for kind in kinds.values() if kind.counter} - counted
    if "read" not in seen:
        unknown |= {name for name in COUNTERS if "READ" in name} | {"RW_SWITCHES", "empty_reads"}
    if "write" not in seen:
        unknown |= {name for name in COUNTERS if "WRIT" in name} | {"RW_SWITCHES", "rewritten_bytes"}
    for does, counters in {
        "open": {"OPENS"},
        "close": {"closes"},
        "seek": {"SEEKS"},
        "map": {"MMAPS", "mapped_bytes", "write_mmaps"},
        "duplicate": {"DUPS"},
        "rename": {"RENAME_SOURCES", "RENAME_TARGETS"},
        "copy": {"copied_in_bytes", "copied_out_bytes"},
    }.items():
        unknown |= set() if does in seen else counters
    return {name for name in unknown if name}


def _warnings(world: World, reading: Reading, filtered: bool) -> list[str]:
    found: list[str] = []
    if reading.cut:
        found.append("the log ends in the middle of a line: it was cut, and what followed is missing")
    if reading.damaged:
        found.append(
            f"{reading.damaged} lines could not be read, {reading.first_damage()}: their calls are missing"
        )
    if reading.halves:
        found.append(f"{reading.halves} calls end without their beginning in the log: they are not counted")
    if reading.unfinished:
        found.append(f"{reading.unfinished} calls did not end in the log: they are not counted")
    if filtered:
        found.append(
            "the log seems to be filtered (-e): calls that it left out are not counted, null where known"
        )
    endless = sum(1 for process in world.family.processes if process.end == "unknown")
    if endless:
        found.append(
            f"the end of {endless} processes is not in the log: it was cut, strace was detached, "
            "or -q left it out"
        )
    if world.family.strangers:
        found.append(
            f"the beginning of {world.family.strangers} processes is not in the log (no -f, -p, or -z)"
        )
    if world.other.unknown_descriptors:
        found.append(
            f"{world.other.unknown_descriptors} reads and writes are on descriptors of unknown origin: they "
            "are not counted as files' (option -y names them)"
        )
    rings = sum(1 for process in world.family.processes if "io_uring" in process.notes)
    if rings:
        found.append(f"{rings} processes use io_uring: what they read and write through it is not in the log")
    found += sorted(
        {n for p in world.family.processes for n in p.notes if n.startswith(("io_submit", "relative"))}
    )
    return found


def _time_doubts(world: World, reading: Reading) -> list[str]:
    """Which options were missing: no call and no byte is less for it."""
    found = []
    if world.untimed:
        found.append("durations are missing (option -T): no times, latencies and segments")
    if not reading.timed:
        found.append("times are missing (option -ttt): no timestamps and segments")
    elif "clock" in reading.styles:
        found.append("times lack their date (option -tt instead of -ttt)")
    return found


def _extra(world: World, reading: Reading) -> dict[str, Any]:
    other = world.other
    return {
        "wall_s": reading.wall_ns / NS if reading.timed else None,
        "time_doubts": _time_doubts(world, reading),
        "started_unix_ns": reading.started_unix_ns,
        "lines": reading.lines,
        "lost": {
            "lines": reading.damaged,
            "halves of calls": reading.halves,
            "unfinished calls": reading.unfinished,
        },
        "not_files": {
            "calls": other.calls,
            "bytes_read": other.bytes["READ"],
            "bytes_written": other.bytes["WRITE"],
        },
    }


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
