"""The state of a log of strace while its calls are read: processes, open files, counters, segments.

Births, execs and ends tell what descriptors stand for; `calls.yaml` names calls. Segments are in columns
while they are collected: about 50 bytes each, no object per call.
"""

from __future__ import annotations

import os.path
import signal
from array import array
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from leadline.knowledge.tables import entries, text_of
from leadline.tracing.counters import FileCounters
from leadline.tracing.sources.strace_lines import DELETED, Call, c_number, split, text, unescape
from leadline.tracing.tables import KINDS

BIRTHS = frozenset(("clone", "clone3", "fork", "vfork"))
EXECS = {"execve": 0, "execveat": 1}  # where their path stands
_MEMORY = "/dev/shm/"  # noqa: S108 - recognised, not used


class Description:
    """An open file: several descriptors, also of several processes, may share it. No file: `path` None."""

    __slots__ = ("append", "offset", "path")

    def __init__(self, path: str | None, offset: int | None, append: bool = False) -> None:
        self.path = path
        self.offset = offset
        self.append = append


@dataclass(frozen=True, slots=True)
class Submitted:
    """An asynchronous request that is under way: `direction` is READ or WRITE."""

    direction: str
    row: FileCounters
    offset: int | None
    asked: int
    began_ns: int


class Process:
    """One process image and what was counted of it."""

    def __init__(self, number: int, pid: int, parent: Process | None, started_ns: int) -> None:
        self.number = number
        self.pid = pid
        self.parent: int | None = None if parent is None else parent.number
        self.executable: str = "" if parent is None else parent.executable
        self.command: list[str] = [] if parent is None else parent.command
        self.started_ns = started_ns
        self.ended_ns: int | None = None
        self.end = "unknown"
        self.status: int | None = None
        self.leaving: tuple[int | None, int] | None = None  # what exit_group was called with, and when
        self.alive: set[int] = {pid}
        self.threads = 1
        self.descriptors: dict[int, Description] = {} if parent is None else dict(parent.descriptors)
        self.closed_by_exec: set[int] = set() if parent is None else set(parent.closed_by_exec)
        self.directory: list[str | None] = [None] if parent is None else list(parent.directory)
        self.rows: dict[str, FileCounters] = {}
        self.calls: dict[str, int] = {}
        self.spent_ns = dict.fromkeys(KINDS, 0)
        self.latencies = {kind: array("Q") for kind in KINDS}
        self.bytes = {"READ": 0, "WRITE": 0}
        self.reference = array("Q")  # ns of calls that only strace made long
        self.notes: set[str] = set()
        self.mapped: dict[str, bool] = {}  # path -> mapped for execution at least once
        self.submitted: dict[str, list[Submitted]] = {}

    def share(self, parent: Process, flags: str) -> None:
        """What a clone shares instead of copying."""
        if "CLONE_FILES" in flags:
            self.descriptors, self.closed_by_exec = parent.descriptors, parent.closed_by_exec
        if "CLONE_FS" in flags:
            self.directory = parent.directory

    def finish(self, end: str, status: int | None, at_ns: int) -> None:
        """The end of this image."""
        self.end, self.status, self.ended_ns = end, status, at_ns
        waiting = sum(len(rest) for rest in self.submitted.values())
        if waiting:
            self.notes.add(f"io_submit: the end of {waiting} operations is not in the log")


class Family:
    """All processes of a log, by thread."""

    def __init__(self) -> None:
        self.processes: list[Process] = []
        self.by_thread: dict[int, Process] = {}
        self.directory: str | None = None  # where the first program was started
        self.strangers = 0  # processes whose beginning is not in the log
        self._known_paths: dict[str, str | None] = {}

    def stranger(self, thread: int, at_ns: int) -> Process:
        """A thread that nobody announced: the first, or one that strace was attached to."""
        process = self._add(thread, None, at_ns)
        if len(self.processes) > 1:
            self.strangers += 1
        else:
            process.directory[0] = self.directory
        return process

    def born(self, parent: Process, call: Call, at_ns: int) -> None:
        """A clone, fork or vfork returned in the parent."""
        thread = call.result
        if thread is None or thread <= 0:
            return
        if "CLONE_THREAD" in call.arguments:
            parent.alive.add(thread)
            parent.threads += 1
            self.by_thread[thread] = parent
        else:
            self._add(thread, parent, at_ns).share(parent, call.arguments)

    def executed(self, thread: int, process: Process, call: Call, at_ns: int) -> None:
        """An exec succeeded: the image ends and the next begins, with the descriptors that stay open."""
        first = EXECS[call.name]
        arguments = split(call.arguments)
        image = process
        if process.executable or process.calls or process.parent is not None:
            image = self._add(process.pid, process, at_ns)
            image.parent = process.parent
            for other in process.alive:
                self.by_thread.pop(other, None)
            process.finish("exec", None, at_ns)
        else:
            image.started_ns = min(image.started_ns, at_ns)
        for number in image.closed_by_exec:
            image.descriptors.pop(number, None)
        image.closed_by_exec = set()
        image.alive = {thread}
        self.by_thread[thread] = image
        image.executable = (text(arguments[first]) if len(arguments) > first else None) or ""
        image.command = _strings(arguments[first + 1]) if len(arguments) > first + 1 else []

    def ended(self, thread: int, code: int | None, killed_by: str | None, at_ns: int) -> None:
        """A thread's last line; the last thread's is the end of the process."""
        process = self.by_thread.pop(thread, None)
        if process is None:
            return
        process.alive.discard(thread)
        if process.alive:
            return
        if killed_by is None:
            process.finish("exit", code, at_ns)
        else:
            number = getattr(signal, killed_by, None)
            process.finish("signal", None if number is None else int(number), at_ns)

    def leaving(self, thread: int, arguments: str, at_ns: int) -> None:
        """A thread called exit_group, which never returns."""
        process = self.by_thread.get(thread)
        if process is not None:
            code = c_number(arguments)
            process.leaving = None if code is None else code & 255, at_ns

    def left(self) -> None:
        """Behind the last line: whoever called exit_group has ended, where -q left that line out, too."""
        for process in self.processes:
            if process.end == "unknown" and process.leaving is not None:
                process.finish("exit", *process.leaving)

    def _add(self, pid: int, parent: Process | None, at_ns: int) -> Process:
        process = Process(len(self.processes), pid, parent, at_ns)
        self.processes.append(process)
        self.by_thread[pid] = process
        return process

    def named(self, process: Process, path: str, base: str | None) -> str:
        """A path as the kernel would begin to read it; one whose directory is unknown stays relative."""
        if path.startswith("/"):
            whole = path
        else:
            whole = f"{base}/{path}" if base is not None else path
            if base is None:
                process.notes.add("relative paths: the current directory is not in the log")
        return whole if "//" not in whole and "/." not in whole else _tidy(whole)

    def file_path(self, annotated: str) -> str | None:
        """What -y says of a descriptor as a path; None when it is no file."""
        if annotated in self._known_paths:
            return self._known_paths[annotated]
        path: str | None = unescape(annotated)
        if path is not None:
            path = path.removesuffix(DELETED).split("<", 1)[0]
            path = path if is_file(path) else None
        self._known_paths[annotated] = path
        return path


def is_file(path: str) -> bool:
    """Files and directories; no pipes, sockets, terminals and devices."""
    if not path.startswith("/"):
        return ":" not in path.split("[", 1)[0]
    device = path.startswith("/dev/") and not path.startswith(_MEMORY)
    return not device and not path.startswith("/memfd:")


def _tidy(path: str) -> str:
    """Without `//` and `/./`. A `..` stays: behind a symbolic link it is not the parent in the text."""
    return path if "/.." in path else os.path.normpath(path)


def _strings(argument: str) -> list[str]:
    if not argument.startswith("["):
        return []
    words = []
    for word in split(argument.strip("[]")):
        cut = word.endswith('"...')
        clean = text(word.removesuffix("..."))
        words.append("..." if clean is None else clean + ("..." if cut else ""))
    return words


ABSENT = -(1 << 63)
_CHUNK_ROWS = 200_000


class SegmentColumns:
    """Appends calls; `table` gives them in the order of their start."""

    def __init__(self, copy: int = 0) -> None:
        self._copy = copy
        self._names: dict[str, int] = {}
        self._chunks: list[Any] = []
        self._clear()

    def _clear(self) -> None:
        self._narrow = array("i")  # process, thread, file; and again
        self._calls = array("h")
        self._wide = array("q")  # offset, length, result, start, duration; and again

    def append(
        self,
        place: tuple[int, int, int],
        call: str,
        span: tuple[int | None, int | None],
        result: int,
        when: tuple[int, int],
    ) -> None:
        """One call: (process, thread, file or -1), its name, (offset, length), result, (start, duration)."""
        names = self._names
        offset, length = span
        self._calls.append(names.setdefault(call, len(names)))
        self._narrow.extend(place)
        self._wide.extend(
            (ABSENT if offset is None else offset, ABSENT if length is None else length, result, *when)
        )
        if len(self._calls) >= _CHUNK_ROWS:
            self._chunks.append(self._batch())
            self._clear()

    def _batch(self) -> Any:
        import numpy as np

        narrow = np.frombuffer(self._narrow, dtype=np.int32).reshape(-1, 3).T.copy()
        wide = np.frombuffer(self._wide, dtype=np.int64).reshape(-1, 5).T.copy()
        return narrow, np.frombuffer(self._calls, dtype=np.int16), wide

    def table(self) -> Any:
        """The segments as an Arrow table of the contract's schema."""
        import pyarrow as pa

        from leadline.tracing.tables import segments_schema

        if len(self._calls):
            self._chunks.append(self._batch())
            self._clear()
        schema = segments_schema()
        batches = [self._arrow(chunk, schema) for chunk in self._chunks]
        self._chunks = []
        return pa.Table.from_batches(batches, schema=schema).sort_by("start_ns")

    def _arrow(self, chunk: Any, schema: Any) -> Any:
        import numpy as np
        import pyarrow as pa

        (process, thread, file), calls, (offset, length, result, start, duration) = chunk
        names = pa.array(list(self._names), type=pa.string())
        columns = [
            pa.array(np.full(len(calls), self._copy, dtype=np.int32)),
            pa.array(process),
            pa.array(thread),
            pa.array(file, mask=file < 0),
            pa.DictionaryArray.from_arrays(pa.array(calls), names),
            pa.array(offset, mask=offset == ABSENT),
            pa.array(length, mask=length == ABSENT),
            pa.array(result),
            pa.array(start),
            pa.array(duration),
        ]
        return pa.RecordBatch.from_arrays(columns, schema=schema)


@dataclass(frozen=True, slots=True)
class CallKind:
    """One entry of `calls.yaml`, where the words are explained."""

    name: str
    does: str
    kind: str | None = None
    descriptor: int | None = None
    directory: int | None = None
    path: int | None = None
    to_directory: int | None = None
    to_path: int | None = None
    flags: int | None = None
    length: int | None = None
    offset: int | None = None
    vector: int | None = None
    source: int = 0
    source_offset: int | None = None
    target: int = 0
    target_offset: int | None = None
    asked: int = 0
    counter: str | None = None
    when: dict[str, str] = field(default_factory=dict)


@cache
def call_kinds() -> dict[str, CallKind]:
    """Every known call by its name."""
    found = entries(text_of("leadline.tracing.sources", "calls.yaml"), "calls.yaml", CallKind)
    return {one.name: one for one in found}


@dataclass(slots=True)
class Other:
    """Calls on pipes, sockets, terminals and devices, and on descriptors of unknown origin: kept apart."""

    calls: dict[str, int] = field(default_factory=dict)
    bytes: dict[str, int] = field(default_factory=lambda: {"READ": 0, "WRITE": 0})
    unknown_descriptors: int = 0


class World:
    """What is known after the calls so far, in the order of their ends."""

    def __init__(self) -> None:
        self.family = Family()
        self.rows: list[tuple[Process, FileCounters]] = []
        self.segments = SegmentColumns()
        self.other = Other()
        self.seen: dict[str, int] = {}  # every call of the log, whatever it is
        self.streams: set[str] = set()  # paths of FIFOs and sockets, where calls told it
        self.untimed = False  # a call without -T's duration was met
        self._sizes: dict[str, int] = {}  # of files, as far as known
        self._moved: dict[str, str] = {}  # new path -> the path under which it was opened

    def row(self, process: Process, path: str) -> FileCounters:
        """The counters of a file in a process."""
        found = process.rows.get(path)
        if found is None:
            found = process.rows[path] = FileCounters(len(self.rows), path)
            self.rows.append((process, found))
        return found

    def described(self, process: Process, number: int, annotated: str | None) -> Description | None:
        """What a descriptor stands for: by what -y says, else by the calls before. None when unknown."""
        known = process.descriptors.get(number)
        if annotated is None:
            return known
        path = self.family.file_path(annotated)
        if known is not None and (known.path == path or self._moved.get(path or "") == known.path):
            return known
        found = process.descriptors[number] = Description(path, None)
        return found

    def size(self, path: str) -> int | None:
        """A file's size, where calls told it."""
        return self._sizes.get(path)

    def resized(self, path: str, size: int) -> None:
        """A call told a file's size."""
        self._sizes[path] = size

    def moved(self, old: str, new: str) -> None:
        """A rename succeeded: -y shows what is open under its new path from now on."""
        self._moved[new] = self._moved.pop(old, old)
        if old in self._sizes:
            self._sizes[new] = self._sizes.pop(old)
