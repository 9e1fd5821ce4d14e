"""From what was seen of a path and its file system to work: by process, by file, in all. Pure functions.

Two sources tell: the tracer in the kernel, call by call with its file; else /proc and the client daemon.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from leadline.observe.mounts.mountinfo import place_on
from leadline.tracing.sources.strace_world import call_kinds
from leadline.tracing.tables import METADATA_COUNTERS, ProcessRow
from leadline.watch.store import Seen, SeenProcess, SeenWait

_SYNCS = ("FSYNCS", "FDSYNCS")
_TIMES = {"read": "read_s", "write": "write_s"}  # by kind of call; of all others it is metadata's


@dataclass
class MountWork:
    """Calls on the mount: counts, bytes and seconds in them, all as sums."""

    reads: float = 0
    writes: float = 0
    bytes_read: float = 0
    bytes_written: float = 0
    consecutive_reads: float = 0
    consecutive_writes: float = 0
    metadata: float = 0
    syncs: float = 0
    read_s: float = 0
    write_s: float = 0
    metadata_s: float = 0

    @property
    def moved_bytes(self) -> float:
        """Read and written."""
        return self.bytes_read + self.bytes_written

    @property
    def calls(self) -> float:
        """How many in all."""
        return self.reads + self.writes + self.metadata + self.syncs

    @property
    def spent_s(self) -> float:
        """Seconds in calls of all kinds."""
        return self.read_s + self.write_s + self.metadata_s

    def add(self, other: MountWork, factor: float = 1.0) -> None:
        """The sum of this and of the other times `factor`."""
        for item in fields(self):
            setattr(self, item.name, getattr(self, item.name) + factor * getattr(other, item.name))


@dataclass
class Tally:
    """Work as it was counted, and `per_s`, a second: processes are followed for unlike times."""

    work: MountWork = field(default_factory=MountWork)
    per_s: MountWork = field(default_factory=MountWork)

    def add(self, work: MountWork, followed_s: float) -> None:
        """More of it, counted for so long."""
        self.work.add(work)
        self.per_s.add(work, 1 / followed_s)

    def join(self, other: Tally) -> None:
        """The sum of both."""
        self.work.add(other.work)
        self.per_s.add(other.per_s)


@dataclass(frozen=True)
class ProcessWork:
    """One process: its work below the path, and on the rest of the file system (None where not known).

    `everywhere` is true where `below` is of all its calls, wherever they went.
    """

    seen: SeenProcess
    below: Tally | None
    rest: Tally | None
    everywhere: bool


@dataclass(frozen=True)
class FileWork:
    """One file below the path, with the processes that used it.

    `tally` is None where calls were not seen. `highest_byte` is the end of the highest byte read or written:
    the file is at least as large. `advanced_bytes` is by how much positions in it went forward, where only
    /proc told.
    """

    path: str
    pids: tuple[int, ...]
    tally: Tally | None
    highest_byte: int | None = None
    mapped_bytes: int = 0
    advanced_bytes: int | None = None


@dataclass(frozen=True)
class FoundWork:
    """What the best source tells that there is; `per_s` is the work that figures are of, a second."""

    processes: tuple[ProcessWork, ...]
    files: tuple[FileWork, ...]
    per_s: MountWork | None
    rest: Tally | None
    about: str
    source: str


def work_of(seen: Seen, not_seen: dict[str, str]) -> FoundWork:
    """The work, from the tracer where there was one; what that does not see is added to `not_seen`."""
    return _traced(seen, not_seen) if seen.calls is not None else _untraced(seen, not_seen)


def _traced(seen: Seen, not_seen: dict[str, str]) -> FoundWork:
    """From the tracer's table `files`: what lies below the path, and the rest of its file system."""
    assert seen.calls is not None  # noqa: S101 - for the type checker
    known = {process.pid: process for process in seen.processes}
    below: dict[int, Tally] = {}
    rest: dict[int, Tally] = {}
    files: dict[str, FileWork] = {}
    for pid, place, row in _rows(seen):
        one, path = _work_of(row), seen.below(place)
        followed_s = known[pid].followed_s if pid in known else seen.calls_s
        (rest if path is None else below).setdefault(pid, Tally()).add(one, followed_s)
        if path is not None:
            files[path] = _with(files.get(path) or FileWork(path, (), Tally()), pid, one, followed_s, row)
    for wait in seen.waits:  # calls that began before, or did not end: the tracer has their time nowhere
        one = _work_of_wait(wait)
        followed_s = known[wait.pid].followed_s if wait.pid in known else seen.calls_s
        below.setdefault(wait.pid, Tally()).add(one, followed_s)
        of_file = files.setdefault(wait.path, FileWork(wait.path, (wait.pid,), Tally())).tally
        assert of_file is not None  # noqa: S101 - for the type checker
        of_file.add(one, followed_s)
    for process in seen.processes:  # what is open and was not called, too
        for opened in process.files:
            before = files.get(opened.path) or FileWork(opened.path, (), Tally())
            files[opened.path] = replace(before, pids=tuple(dict.fromkeys((*before.pids, process.pid))))
    if seen.calls.warnings:
        not_seen["lost"] = "; ".join(seen.calls.warnings)
    mapped = sum(file.mapped_bytes > 0 for file in files.values())
    if mapped:
        not_seen["mapped"] = f"what went through mappings of {mapped} files below the path: that is no call"
    rows = [
        ProcessWork(_named(pid, known, seen), below.get(pid, Tally()), rest.get(pid, Tally()), False)
        for pid in dict.fromkeys((*known, *below, *rest))
    ]
    source = "calls, by the tracer in the kernel"
    return FoundWork(
        _busiest_first(rows),
        tuple(sorted(files.values(), key=_weight_of_file, reverse=True)),
        _sum_of(below.values()).per_s,
        _sum_of(rest.values()),
        f"below {seen.path}",
        source,
    )


def _untraced(seen: Seen, not_seen: dict[str, str]) -> FoundWork:
    """From /proc and the client daemon, which know nothing of paths but what is open."""
    not_seen["calls"] = f"each call below the path: {seen.calls_reason}"
    rows = [ProcessWork(process, _of_process(process), None, everywhere=True) for process in seen.processes]
    files: dict[str, FileWork] = {}
    for process in seen.processes:
        for file in process.files:
            before = files.get(file.path) or FileWork(file.path, (), None, advanced_bytes=0)
            moved = (before.advanced_bytes or 0) + file.advanced_bytes
            files[file.path] = replace(before, pids=(*before.pids, process.pid), advanced_bytes=moved)
    ended = sum(process.ended for process in seen.processes)
    if ended:
        who = "1 process" if ended == 1 else f"{ended:,} processes"
        not_seen["ended"] = f"what {who} that ended did after the last look, up to a second each"
    client = _client_work(seen)
    about = f"below {seen.path}"
    if client is not None and not seen.is_whole:
        about = f"on all of {seen.mount.mount_point}"
        not_seen["apart"] = (
            "what lies below the path apart from the rest: the client daemon counts its whole mount"
        )
    per_s = None
    if client is not None and seen.elapsed_s > 0:
        per_s = MountWork()
        per_s.add(client, 1 / seen.elapsed_s)
    return FoundWork(
        _busiest_first(rows),
        tuple(sorted(files.values(), key=_weight_of_file, reverse=True)),
        per_s,
        None,
        about,
        "the client daemon's own counters" if client is not None else "",
    )


def _sum_of(tallies: Iterable[Tally]) -> Tally:
    total = Tally()
    for one in tallies:
        total.join(one)
    return total


def _busiest_first(rows: Iterable[ProcessWork]) -> tuple[ProcessWork, ...]:
    """Those below the path first."""

    def weight(row: ProcessWork) -> tuple[float, ...]:
        work, rest = (one.work if one else MountWork() for one in (row.below, row.rest))
        below = 0.0 if row.everywhere else work.moved_bytes
        return (float(row.seen.is_below), below, work.metadata, work.moved_bytes, rest.moved_bytes)

    return tuple(sorted(rows, key=weight, reverse=True))


def _weight_of_file(file: FileWork) -> tuple[float, float]:
    work = file.tally.work if file.tally else MountWork()
    return (work.moved_bytes + (file.advanced_bytes or 0), work.metadata)


def _named(pid: int, known: Mapping[int, SeenProcess], seen: Seen) -> SeenProcess:
    """A process that was seen, or one that a seen process started."""
    if pid in known:
        return known[pid]
    assert seen.calls is not None  # noqa: S101 - for the type checker
    names = [row.executable for row in seen.calls.processes if row.pid == pid and row.executable]
    name = names[-1].rpartition("/")[2] if names else "?"
    return SeenProcess(pid, name, "", (), (), None, seen.calls_s)


_WANTED = (
    *("READS", "WRITES", "BYTES_READ", "BYTES_WRITTEN", "CONSEC_READS", "CONSEC_WRITES"),
    *("MAX_BYTE_READ", "MAX_BYTE_WRITTEN", "mapped_bytes"),
    *METADATA_COUNTERS,
    *_SYNCS,
    *("F_READ_TIME", "F_WRITE_TIME", "F_META_TIME"),
)


def _rows(seen: Seen) -> Iterator[tuple[int, str, Mapping[str, Any]]]:
    """Every row of a file on the file system: the process, where the file lies, its counters.

    A process that was not met has the mount table of whoever started it.
    """
    assert seen.calls is not None  # noqa: S101 - for the type checker
    images = {(row.copy, row.process): row for row in seen.calls.processes}
    for row in seen.calls.files.select(["copy", "process", "path", *_WANTED]).to_pylist():
        image = images.get((row["copy"], row["process"]))
        if image is None or not row["path"]:
            continue
        starter: ProcessRow | None = image
        while starter is not None and starter.pid not in seen.foreign and starter.parent is not None:
            starter = images.get((starter.copy, starter.parent))
        mounts = seen.foreign.get(starter.pid, seen.mounts) if starter is not None else seen.mounts
        place = place_on(row["path"], mounts, seen.mount)
        if place is not None:
            yield image.pid, place, {name: row[name] or 0 for name in _WANTED}


def _work_of(row: Mapping[str, Any]) -> MountWork:
    return MountWork(
        reads=row["READS"],
        writes=row["WRITES"],
        bytes_read=row["BYTES_READ"],
        bytes_written=row["BYTES_WRITTEN"],
        consecutive_reads=row["CONSEC_READS"],
        consecutive_writes=row["CONSEC_WRITES"],
        metadata=sum(row[name] for name in METADATA_COUNTERS),
        syncs=sum(row[name] for name in _SYNCS),
        read_s=row["F_READ_TIME"],
        write_s=row["F_WRITE_TIME"],
        metadata_s=row["F_META_TIME"],
    )


def _work_of_wait(wait: SeenWait) -> MountWork:
    """The time that nobody counted, and no call: that has not ended."""
    return MountWork(**{_TIMES.get(call_kinds()[wait.call].kind or "", "metadata_s"): wait.uncounted_s})


def _with(file: FileWork, pid: int, one: MountWork, followed_s: float, row: Mapping[str, Any]) -> FileWork:
    """A file with the work of one more process; Darshan's highest offsets count from 0."""
    assert file.tally is not None  # noqa: S101 - for the type checker
    file.tally.add(one, followed_s)
    ends = [
        row[name] + 1
        for name, moved in (("MAX_BYTE_READ", one.bytes_read), ("MAX_BYTE_WRITTEN", one.bytes_written))
        if moved
    ]
    known = [end for end in (file.highest_byte, *ends) if end is not None]
    return replace(
        file,
        pids=tuple(dict.fromkeys((*file.pids, pid))),
        highest_byte=max(known, default=None),
        mapped_bytes=file.mapped_bytes + row["mapped_bytes"],
    )


def _of_process(process: SeenProcess) -> Tally | None:
    """What /proc/PID/io says, of all its calls."""
    if process.moved is None:
        return None
    moved, found = process.moved, Tally()
    work = MountWork(
        reads=moved.get("syscr", 0),
        writes=moved.get("syscw", 0),
        bytes_read=moved.get("rchar", 0),
        bytes_written=moved.get("wchar", 0),
    )
    found.add(work, process.followed_s)
    return found


def _client_work(seen: Seen) -> MountWork | None:
    """What ceph-fuse says that it was asked for; requests of its own cache are not metadata to it."""
    if seen.client is None:
        return None

    def average(name: str) -> tuple[float, float]:
        first, last = (_get(dump, "client", name) for dump in seen.client or ())
        if not isinstance(first, Mapping) or not isinstance(last, Mapping):
            return 0.0, 0.0
        return last["avgcount"] - first["avgcount"], last["sum"] - first["sum"]

    reads, read_s = average("rdlat")
    writes, write_s = average("wrlat")
    metadata, metadata_s = average("lat")
    syncs, sync_s = average("fsync")
    change = seen.change
    return MountWork(
        reads=reads,
        writes=writes,
        bytes_read=change.get("client_read_bytes") or 0,
        bytes_written=change.get("client_written_bytes") or 0,
        metadata=metadata,
        syncs=syncs,
        read_s=read_s,
        write_s=write_s,
        metadata_s=metadata_s + sync_s,
    )


def _get(dump: Mapping[str, Any], section: str, name: str) -> Any:
    return (dump.get(section) or {}).get(name)
