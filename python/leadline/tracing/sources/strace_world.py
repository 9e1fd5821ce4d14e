"""The state of a log while its calls are read: processes, open files, counters. `calls.yaml` names calls.

Segments in columns while they are collected: about 50 bytes each, no object per call.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from leadline.knowledge.tables import entries, text_of
from leadline.tracing.counters import FileCounters
from leadline.tracing.sources.strace_processes import Description, Family, Process

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
