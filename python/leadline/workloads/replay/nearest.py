"""The synthetic job that comes nearest to a trace, as a study or a job file of fio, and how near it is."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from leadline.errors import ResultError
from leadline.study.study import STUDY_FORMAT
from leadline.units import exact_duration, exact_size, format_duration, format_size, printable
from leadline.workloads.replay.script import KINDS, NOT_LAID_OUT, ReplayScript

_SHORTEST_NS = 1_000_000_000


def nearness(job: NearestJob, title: str) -> list[str]:
    """What the job stands for and what it leaves out, in lines for a comment."""
    ways = ((job.read_split, "reads"), (job.write_split, "writes"))
    lines = [
        f"The synthetic job nearest to the trace of {printable(title)}.",
        f"It stands for {100 * job.calls_share:.1f} % of the trace's calls and"
        f" {100 * job.bytes_share:.1f} % of its bytes: {job.reads:,} reads and {job.writes:,} writes.",
        *(_size_words(split, way) for split, way in ways if split is not None),
        f"Order: {100 * job.random_share:.1f} % of the operations did not begin where the one before ended.",
        f"Pauses: {_time(job.thinktime_ns)} on average; half were at most {_time(job.thinktime_p50_ns)},"
        f" nine in ten at most {_time(job.thinktime_p90_ns)}. The job pauses evenly.",
        f"Left out: {job.metadata_calls:,} calls that move no data (open, stat, seek and so on), which"
        " files are hot, and any order between threads.",
    ]
    if job.numjobs > 1:
        lines.append(
            f"Threads: {job.numjobs}, all alike; in the trace the busiest did"
            f" {100 * job.busiest_thread_share:.0f} % of the operations."
        )
    lines.append("Only a replay does all of it: leadline replay TRACE --target NAME=PATH.")
    return lines


def _size_words(split: Split, way: str) -> str:
    return (
        f"Sizes of {way}: {100 * split.exact_share:.1f} % are in the split, the others count for the nearest;"
        f" {format_size(split.mean_of_parts)} on average, {format_size(split.mean_bytes)} in the trace."
    )


def to_fio_job(job: NearestJob, title: str) -> str:
    """A job file for fio."""
    lines = [f"; {line}" for line in nearness(job, title)]
    lines += ["[global]", "ioengine=psync", "direct=0", "refill_buffers=1", "randrepeat=1", "", "[nearest]"]
    lines.append(f"rw={job.rw}")
    if job.reads and job.writes:
        lines.append(f"rwmixread={job.read_percent}")
    if job.is_random:
        lines.append(f"percentage_random={round(100 * job.random_share)}")
    lines += [
        f"bssplit={_bssplit(job)}",
        f"numjobs={job.numjobs}",
        "iodepth=1",
        f"nrfiles={job.nrfiles}",
        f"size={job.size}",
        f"io_size={job.io_bytes}",
    ]
    if job.thinktime_ns >= 1000:
        lines += [f"thinktime={job.thinktime_ns // 1000}us", "thinktime_blocks=1"]
    if job.fsync:
        lines.append(f"fsync={job.fsync}")
    return "\n".join(lines) + "\n"


def to_study(job: NearestJob, title: str) -> str:
    """A study of one work; it runs as long as the trace took, with sizes that are powers of two."""
    job = replace(
        job,
        read_split=job.read_split and job.read_split.rounded(),
        write_split=job.write_split and job.write_split.rounded(),
    )
    lines = [f"# {line}" for line in nearness(job, title)]
    name = re.sub(r"[^a-z0-9_-]+", "-", title.lower())[:30].strip("-_") or "trace"
    lines += [f"format: {STUDY_FORMAT}", f"name: nearest-{name}", "workloads:", "  nearest:"]
    step = _largest(job) * job.nrfiles
    size = max(1, round(job.size / step)) * step
    options = {"rw": job.rw}
    if job.reads and job.writes:
        options["rwmixread"] = str(job.read_percent)
    options |= {
        "bssplit": f'"{_bssplit(job)}"',
        "size": exact_size(size),
        "nrfiles": str(job.nrfiles),
        "numjobs": str(job.numjobs),
        "iodepth": "1",
        "engine": "psync",
        "direct": "false",
        "time_based": "true",
        "runtime": exact_duration(max(job.runtime_ns, _SHORTEST_NS)),
    }
    if job.thinktime_ns >= 1000:
        options["thinktime"] = exact_duration(job.thinktime_ns // 1000 * 1000)
    if job.fsync:
        options["fsync"] = str(job.fsync)
    lines += [f"    {key}: {value}" for key, value in options.items()]
    return "\n".join(lines) + "\n"


def _time(time_ns: int) -> str:
    return format_duration(time_ns / 1e9) if time_ns else "0 s"


def _largest(job: NearestJob) -> int:
    return max(size for split in (job.read_split, job.write_split) if split for size, _ in split.parts)


def _bssplit(job: NearestJob) -> str:
    """One notation for both directions where only one is used."""
    splits = [split for split in (job.read_split, job.write_split) if split is not None]
    return ",".join(dict.fromkeys(_parts(split) for split in splits))


def _parts(split: Split) -> str:
    return ":".join(f"{exact_size(size)}/{percent}" for size, percent in split.parts)


SIZES_MAX = 8  # sizes in a split: more makes it no nearer that a reader could check
_SYNCS = ("fsync", "fdatasync")
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Split:
    """(bytes, percent) of the operations of one direction, and what share of the trace's have such a size."""

    parts: tuple[tuple[int, int], ...]
    exact_share: float
    mean_bytes: float

    def rounded(self) -> Split:
        """Every size as the nearest power of two from 512 bytes to 1 GiB."""
        found: dict[int, int] = {}
        for size, percent in self.parts:
            power = min(30, max(9, round(math.log2(size))))
            found[1 << power] = found.get(1 << power, 0) + percent
        same = all(size in found for size, _ in self.parts)
        return Split(tuple(sorted(found.items())), self.exact_share if same else 0.0, self.mean_bytes)

    @property
    def mean_of_parts(self) -> float:
        """The mean size that the split itself gives."""
        return sum(size * percent for size, percent in self.parts) / 100


@dataclass(frozen=True)
class NearestJob:
    """A job in fio's vocabulary. `size` and `io_bytes` are of one numjob; times in ns.

    `random_share` is that of the operations that did not begin where the one before ended; `thinktime_ns` the
    mean pause of a thread between two operations, `thinktime_p50_ns` and `thinktime_p90_ns` what it was.
    """

    reads: int
    writes: int
    read_split: Split | None
    write_split: Split | None
    random_share: float
    numjobs: int
    nrfiles: int
    size: int
    io_bytes: int
    fsync: int
    thinktime_ns: int
    thinktime_p50_ns: int
    thinktime_p90_ns: int
    runtime_ns: int
    calls_share: float
    bytes_share: float
    metadata_calls: int
    busiest_thread_share: float

    @property
    def read_percent(self) -> int:
        """Share of reads in percent; 1 to 99 where there are both."""
        whole = self.reads + self.writes
        if not self.reads or not self.writes:
            return 100 if self.reads else 0
        return min(99, max(1, round(100 * self.reads / whole)))

    @property
    def is_random(self) -> bool:
        """True where most operations are."""
        return self.random_share > 0.5

    @property
    def rw(self) -> str:
        """fio's word for the pattern."""
        kind = "rw" if self.reads and self.writes else "read" if self.reads else "write"
        return f"rand{kind}" if self.is_random else kind


def nearest_job(script: ReplayScript) -> NearestJob:
    """The job of a trace's reads and writes. Raises ResultError where it has none."""
    calls = script.calls
    thread = np.repeat(np.arange(len(script.threads)), [count for _, count in script.threads])
    kind = calls["kind"]
    read, write = kind == KINDS.index("read"), kind == KINDS.index("write")
    data = (read | write) & (calls["expected"] > 0)
    if not data.any():
        raise ResultError(
            "the trace has no read and no write that a job could stand for",
            "replay it instead: leadline replay TRACE --target NAME=PATH",
        )
    sizes = calls["expected"].astype(np.int64)
    reads, writes = sizes[read & data], sizes[write & data]
    pauses = _pauses(calls["pause_ns"].astype(np.int64), data, thread)
    counts = np.bincount(thread[data])
    jobs = int((counts > 0).sum())
    files = len(np.unique(calls["file"][data]))
    sync = np.isin(kind, [KINDS.index(name) for name in _SYNCS])
    syncs = int(sync.sum())
    coverage = script.coverage
    return NearestJob(
        reads=len(reads),
        writes=len(writes),
        read_split=_split(reads),
        write_split=_split(writes),
        random_share=_random_share(calls, data, thread, write),
        numjobs=jobs,
        nrfiles=max(1, round(files / jobs)),
        size=max(int(sizes[data].max()), _extent(script, data) // jobs),
        io_bytes=max(1, int(sizes[data].sum()) // jobs),
        fsync=max(1, round(len(writes) / syncs)) if syncs and len(writes) else 0,
        thinktime_ns=int(pauses.mean()) if len(pauses) else 0,
        thinktime_p50_ns=int(np.percentile(pauses, 50)) if len(pauses) else 0,
        thinktime_p90_ns=int(np.percentile(pauses, 90)) if len(pauses) else 0,
        runtime_ns=script.duration_ns,
        calls_share=int(data.sum()) / max(1, coverage.calls),
        bytes_share=int(sizes[data].sum()) / max(1, coverage.bytes),
        metadata_calls=int((~(read | write | sync)).sum()),
        busiest_thread_share=float(counts.max() / counts.sum()),
    )


def _pauses(pause: Ints, data: npt.NDArray[np.bool_], thread: Ints) -> Ints:
    """Pauses before each data call but its thread's first, those before calls in between added."""
    total = np.cumsum(pause)
    at, own = total[data], thread[data]
    found: Ints = np.diff(at)[own[1:] == own[:-1]]
    return found


def _split(sizes: Ints) -> Split | None:
    """The commonest sizes with their shares; what is of another size counts for the nearest of them."""
    if not len(sizes):
        return None
    values, counts = np.unique(sizes, return_counts=True)
    kept = np.sort(np.argsort(-counts, kind="stable")[:SIZES_MAX])
    chosen = values[kept]
    nearest = np.abs(np.log(values[:, None] / chosen[None, :])).argmin(axis=1)
    weights = np.bincount(nearest, weights=counts, minlength=len(chosen))
    parts = _percents(chosen.tolist(), (weights / weights.sum()).tolist())
    exact = np.isin(values, [size for size, _ in parts])
    return Split(parts, float(counts[exact].sum() / counts.sum()), float(sizes.mean()))


def _percents(sizes: Sequence[int], shares: Sequence[float]) -> tuple[tuple[int, int], ...]:
    """Whole percents that add up to 100; a size that rounds to nothing is left out."""
    percents = [int(share * 100) for share in shares]
    order = sorted(range(len(shares)), key=lambda place: percents[place] - shares[place] * 100)
    for place in order[: 100 - sum(percents)]:
        percents[place] += 1
    return tuple((size, percent) for size, percent in zip(sizes, percents, strict=True) if percent)


def _random_share(
    calls: npt.NDArray[np.void], data: npt.NDArray[np.bool_], thread: Ints, write: npt.NDArray[np.bool_]
) -> float:
    rows = calls[data]
    order = np.lexsort((np.arange(len(rows)), write[data], rows["file"], thread[data]))
    rows, own, way = rows[order], thread[data][order], write[data][order]
    same = (own[1:] == own[:-1]) & (rows["file"][1:] == rows["file"][:-1]) & (way[1:] == way[:-1])
    follows = rows["offset"][1:] == rows["offset"][:-1] + rows["expected"][:-1]
    return float((same & ~follows).sum() / max(1, int(same.sum())))


def _extent(script: ReplayScript, data: npt.NDArray[np.bool_]) -> int:
    """Bytes of all files that are read or written, as far as they are touched."""
    rows = script.calls[data]
    ends = np.zeros(len(script.sizes), dtype=np.int64)
    np.maximum.at(ends, rows["file"], (rows["offset"] + rows["expected"]).astype(np.int64))
    laid_out = np.where(script.sizes == NOT_LAID_OUT, 0, script.sizes).astype(np.int64)
    return int(np.where(ends > 0, np.maximum(ends, laid_out), 0).sum())
