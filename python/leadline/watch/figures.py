"""From what was seen of a mount to rates, sizes and shares: pure functions, no judgement.

A figure that could not be seen is None, and `not_seen` says why.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from leadline.observe.mounts.mountinfo import place_on
from leadline.tracing.tables import ProcessRow
from leadline.watch.store import Seen, SeenProcess

# Calls of the table `files` that neither read nor write.
_METADATA = (
    *("OPENS", "STATS", "RENAME_SOURCES", "unlinks", "mkdirs", "rmdirs", "readdirs", "links"),
    *("truncates", "allocates", "closes"),
)
_SYNCS = ("FSYNCS", "FDSYNCS")


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

    def add(self, other: MountWork) -> None:
        """The sum of both."""
        for item in fields(self):
            setattr(self, item.name, getattr(self, item.name) + getattr(other, item.name))


@dataclass(frozen=True)
class ProcessWork:
    """One process: its work below the path, and on the rest of the file system (None where not known).

    `everywhere` is true where `work` is of all its calls, wherever they went.
    """

    seen: SeenProcess
    work: MountWork | None
    rest: MountWork | None
    everywhere: bool


@dataclass(frozen=True)
class FileWork:
    """One file below the path, with the processes that used it.

    `work` is None where calls were not seen. `highest_byte` is the end of the highest byte read or written:
    the file is at least as large. `advanced_bytes` is by how much positions in it went forward, where only
    /proc told.
    """

    path: str
    pids: tuple[int, ...]
    work: MountWork | None
    highest_byte: int | None = None
    mapped_bytes: int = 0
    advanced_bytes: int | None = None


@dataclass(frozen=True)
class WatchFacts:
    """What rules and reports look at: `values` by name (docs/watch.md), processes, files, what was not seen.

    `about` is what the figures are of in words: what lies below the path, or the whole mount. `rest` is the
    work on the rest of the file system, None where that was not seen apart.
    """

    values: Mapping[str, float | str | None]
    processes: tuple[ProcessWork, ...]
    files: tuple[FileWork, ...]
    rest: MountWork | None
    about: str
    source: str
    not_seen: Mapping[str, str] = field(default_factory=dict)


def watch_facts(seen: Seen) -> WatchFacts:
    """All figures of a watch."""
    not_seen: dict[str, str] = {}
    found = _traced(seen, not_seen) if seen.calls is not None else _untraced(seen, not_seen)
    values: dict[str, float | str | None] = {
        "elapsed_s": seen.elapsed_s,
        "users": float(
            sum(row.seen.is_below or bool(row.work and row.work.calls) for row in found.processes)
        ),
        "traced": float(seen.calls is not None),
    }
    values |= _rates(found.work, seen.elapsed_s)
    values |= _rest_rates(found.rest, seen.elapsed_s)
    values |= _client(seen, not_seen)
    values |= _wire(seen, not_seen)
    values |= _cluster(seen, not_seen)
    values |= _host(seen)
    if seen.unseen:
        not_seen["processes"] = "; ".join(seen.unseen)
    return WatchFacts(values, found.processes, found.files, found.rest, found.about, found.source, not_seen)


@dataclass(frozen=True)
class _Found:
    """What one source tells."""

    processes: tuple[ProcessWork, ...]
    files: tuple[FileWork, ...]
    work: MountWork | None
    rest: MountWork | None
    about: str
    source: str


def _traced(seen: Seen, not_seen: dict[str, str]) -> _Found:
    """From the tracer's table `files`: what lies below the path, and the rest of its file system."""
    assert seen.calls is not None  # noqa: S101 - for the type checker
    below: dict[int, MountWork] = {}
    rest: dict[int, MountWork] = {}
    files: dict[str, FileWork] = {}
    for pid, place, row in _rows(seen):
        one = _work_of(row)
        path = seen.below(place)
        if path is None:
            rest.setdefault(pid, MountWork()).add(one)
            continue
        below.setdefault(pid, MountWork()).add(one)
        files[path] = _with(files.get(path) or FileWork(path, (), MountWork()), pid, one, row)
    for process in seen.processes:  # what is open and was not called, too
        for opened in process.files:
            before = files.get(opened.path) or FileWork(opened.path, (), MountWork())
            files[opened.path] = replace(before, pids=tuple(dict.fromkeys((*before.pids, process.pid))))
    if seen.calls.warnings:
        not_seen["lost"] = "; ".join(seen.calls.warnings)
    mapped = sum(file.mapped_bytes > 0 for file in files.values())
    if mapped:
        not_seen["mapped"] = f"what went through mappings of {mapped} files below the path: that is no call"
    known = {process.pid: process for process in seen.processes}
    rows = [
        ProcessWork(_named(pid, known, seen), below.get(pid, MountWork()), rest.get(pid, MountWork()), False)
        for pid in dict.fromkeys((*known, *below, *rest))
    ]
    source = "calls, by the tracer in the kernel"
    return _Found(
        _busiest_first(rows),
        tuple(sorted(files.values(), key=_weight_of_file, reverse=True)),
        _sum_of(below.values()),
        _sum_of(rest.values()),
        f"below {seen.path}",
        source,
    )


def _untraced(seen: Seen, not_seen: dict[str, str]) -> _Found:
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
        not_seen["ended"] = (
            f"what {ended} processes that ended did after the last look at them, up to a second"
        )
    client = _client_work(seen)
    about = f"below {seen.path}"
    if client is not None and not seen.is_whole:
        about = f"on all of {seen.mount.mount_point}"
        not_seen["apart"] = (
            "what lies below the path apart from the rest: the client daemon counts its whole mount"
        )
    return _Found(
        _busiest_first(rows),
        tuple(sorted(files.values(), key=_weight_of_file, reverse=True)),
        client,
        None,
        about,
        "the client daemon's own counters" if client is not None else "",
    )


def _sum_of(works: Iterable[MountWork]) -> MountWork:
    total = MountWork()
    for work in works:
        total.add(work)
    return total


def _busiest_first(rows: Iterable[ProcessWork]) -> tuple[ProcessWork, ...]:
    """Those below the path first."""

    def weight(row: ProcessWork) -> tuple[float, ...]:
        work, rest = row.work or MountWork(), row.rest or MountWork()
        below = 0.0 if row.everywhere else work.moved_bytes
        return (float(row.seen.is_below), below, work.metadata, work.moved_bytes, rest.moved_bytes)

    return tuple(sorted(rows, key=weight, reverse=True))


def _weight_of_file(file: FileWork) -> tuple[float, float]:
    work = file.work or MountWork()
    return (work.moved_bytes + (file.advanced_bytes or 0), work.metadata)


def _named(pid: int, known: Mapping[int, SeenProcess], seen: Seen) -> SeenProcess:
    """A process that was seen, or one that a seen process started."""
    if pid in known:
        return known[pid]
    assert seen.calls is not None  # noqa: S101 - for the type checker
    names = [row.executable for row in seen.calls.processes if row.pid == pid and row.executable]
    return SeenProcess(pid, names[-1].rpartition("/")[2] if names else "?", "", (), (), None)


_WANTED = (
    *("READS", "WRITES", "BYTES_READ", "BYTES_WRITTEN", "CONSEC_READS", "CONSEC_WRITES"),
    *("MAX_BYTE_READ", "MAX_BYTE_WRITTEN", "mapped_bytes"),
    *_METADATA,
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
        metadata=sum(row[name] for name in _METADATA),
        syncs=sum(row[name] for name in _SYNCS),
        read_s=row["F_READ_TIME"],
        write_s=row["F_WRITE_TIME"],
        metadata_s=row["F_META_TIME"],
    )


def _with(file: FileWork, pid: int, one: MountWork, row: Mapping[str, Any]) -> FileWork:
    """A file with the work of one more process; Darshan's highest offsets count from 0."""
    assert file.work is not None  # noqa: S101 - for the type checker
    file.work.add(one)
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


def _rest_rates(rest: MountWork | None, elapsed_s: float) -> dict[str, float | str | None]:
    names = {
        "rest_read_bytes_per_s": "bytes_read",
        "rest_written_bytes_per_s": "bytes_written",
        "rest_metadata_per_s": "metadata",
    }
    if rest is None or elapsed_s <= 0:
        return dict.fromkeys(names)
    return {name: getattr(rest, of) / elapsed_s for name, of in names.items()}


def _of_process(process: SeenProcess) -> MountWork | None:
    """What /proc/PID/io says, of all its calls."""
    if process.moved is None:
        return None
    moved = process.moved
    return MountWork(
        reads=moved.get("syscr", 0),
        writes=moved.get("syscw", 0),
        bytes_read=moved.get("rchar", 0),
        bytes_written=moved.get("wchar", 0),
    )


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


def _rates(work: MountWork | None, elapsed_s: float) -> dict[str, float | str | None]:
    names = (
        *("reads_per_s", "writes_per_s", "metadata_per_s", "syncs_per_s", "read_bytes_per_s"),
        *("written_bytes_per_s", "mean_read_bytes", "mean_write_bytes", "consecutive_read_share"),
        *("consecutive_write_share", "read_share", "write_share", "metadata_share", "in_calls"),
        *("mean_read_s", "mean_write_s", "mean_metadata_s"),
    )
    if work is None or elapsed_s <= 0:
        return dict.fromkeys(names)
    total_s = work.read_s + work.write_s + work.metadata_s
    return {
        "reads_per_s": work.reads / elapsed_s,
        "writes_per_s": work.writes / elapsed_s,
        "metadata_per_s": work.metadata / elapsed_s,
        "syncs_per_s": work.syncs / elapsed_s,
        "read_bytes_per_s": work.bytes_read / elapsed_s,
        "written_bytes_per_s": work.bytes_written / elapsed_s,
        "mean_read_bytes": _over(work.bytes_read, work.reads),
        "mean_write_bytes": _over(work.bytes_written, work.writes),
        "consecutive_read_share": _over(work.consecutive_reads, work.reads),
        "consecutive_write_share": _over(work.consecutive_writes, work.writes),
        "read_share": _over(work.read_s, total_s),
        "write_share": _over(work.write_s, total_s),
        "metadata_share": _over(work.metadata_s, total_s),
        "in_calls": total_s / elapsed_s,
        "mean_read_s": _over(work.read_s, work.reads),
        "mean_write_s": _over(work.write_s, work.writes),
        "mean_metadata_s": _over(work.metadata_s, work.metadata),
    }


def _over(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def _client(seen: Seen, not_seen: dict[str, str]) -> dict[str, float | str | None]:
    """The client daemon: CPU by thread, cache, what is in flight, latencies of what it waited for."""
    if seen.client is None:
        not_seen["client"] = f"the client's own counters: {seen.client_reason}"
    threads: dict[str, list[float]] = {}
    for _, source, subject, metric, value, _ in seen.samples:
        if source == "client" and metric == "cpu" and "/" in subject:
            threads.setdefault(subject.rpartition("/")[2], []).append(value)
    looks = max((len(values) for values in threads.values()), default=0)
    loads = {name: sum(values) / looks for name, values in threads.items()}
    busiest = max(loads, key=lambda name: loads[name], default=None)
    asked, cached = seen.change.get("client_read_bytes"), seen.change.get("client_cached_bytes")
    cpu_ns = seen.change.get("client_cpu_ns")
    return {
        "client_thread": busiest,
        "client_thread_share": None if busiest is None else loads[busiest],
        "client_cores": None if cpu_ns is None else cpu_ns / 1e9 / seen.elapsed_s,
        "client_cached_share": None if asked is None or cached is None else _over(cached, asked),
        "client_in_flight": _mean(seen, "client", "operations_in_flight"),
        "client_laggy": _peak(seen, "client", "operations_laggy"),
        "client_metadata_ms": _mean(seen, "client", "metadata_latency"),
        "client_operations_per_s": _sum(
            _mean(seen, "client", "operations_read"), _mean(seen, "client", "operations_written")
        ),
    }


def _sum(*values: float | None) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _series(seen: Seen, source: str, metric: str) -> list[float]:
    return [value for _, its, _, name, value, _ in seen.samples if its == source and name == metric]


def _mean(seen: Seen, source: str, metric: str) -> float | None:
    values = _series(seen, source, metric)
    return statistics.fmean(values) if values else None


def _peak(seen: Seen, source: str, metric: str) -> float | None:
    return max(_series(seen, source, metric), default=None)


def _wire(seen: Seen, not_seen: dict[str, str]) -> dict[str, float | str | None]:
    found: dict[str, float | str | None] = {}
    for name in ("sent", "received"):
        amount = seen.change.get(f"wire_{name}_bytes")
        found[f"wire_{name}_bytes_per_s"] = None if amount is None else amount / seen.elapsed_s
    if found["wire_sent_bytes_per_s"] is None:
        not_seen["wire"] = (
            f"bytes on the wire: {seen.change['reasons'].get('wire_sent_bytes', 'not observable')}"
        )
    limit = seen.change.get("wire_limit_bytes_per_s")
    busiest = max((value for value in found.values() if isinstance(value, float)), default=None)
    found["wire_limit_bytes_per_s"] = None if limit is None else float(limit)
    found["wire_used_share"] = None if limit is None or busiest is None else busiest / limit
    return found


def _cluster(seen: Seen, not_seen: dict[str, str]) -> dict[str, float | str | None]:
    state: Mapping[str, Any] | None = seen.change.get("state_end")
    if state is None and seen.access.startswith("ceph"):
        not_seen["cluster"] = f"the cluster: {seen.change['reasons'].get('state', 'not observable')}"
    commits: dict[str, list[float]] = {}
    for _, source, subject, metric, value, _ in seen.samples:
        if source == "ceph" and metric == "commit_latency" and subject.startswith("osd."):
            commits.setdefault(subject, []).append(value)
    means = {name: statistics.fmean(values) for name, values in commits.items()}
    slowest = max(means, key=lambda name: means[name], default=None)
    rounds = [round_ for round_ in zip(*commits.values(), strict=False) if max(round_) > 0]
    names = list(commits)
    led = sum(slowest == names[max(range(len(names)), key=round_.__getitem__)] for round_ in rounds)
    return {
        "health": None if state is None else str(state["health"]),
        "checks": None if state is None else "; ".join(state["checks"].values()),
        "not_clean_groups": _peak(seen, "ceph", "pgs_not_clean"),
        "scrubbing_groups": _peak(seen, "ceph", "pgs_scrubbing"),
        "slow_ops": _peak(seen, "ceph", "slow_ops"),
        "recovering": None if state is None else float(bool(state["recovering"])),
        "used_share": None if state is None else state["used_share"],
        "nearfull_share": None if state is None else state["nearfull_share"],
        "slowest_osd": slowest,
        "slowest_osd_ms": None if slowest is None else means[slowest],
        "median_osd_ms": statistics.median(means.values()) if means else None,
        "osds_seen": float(len(means)),
        "osd_looks": float(len(rounds)),
        "slowest_osd_share": led / len(rounds) if rounds else None,
    }


def _host(seen: Seen) -> dict[str, float | str | None]:
    return {
        "cpu_busy_share": seen.change.get("cpu_busy_share"),
        "cpu_steal_share": seen.change.get("cpu_steal_share"),
    }
