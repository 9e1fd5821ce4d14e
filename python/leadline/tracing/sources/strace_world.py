"""The state of a log while its calls are read: processes, open files, counters. `calls.yaml` names calls."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache

from leadline.knowledge.tables import entries, text_of
from leadline.tracing.counters import FileCounters
from leadline.tracing.segment_columns import SegmentColumns
from leadline.tracing.sources.strace_processes import Description, Family, Process


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
