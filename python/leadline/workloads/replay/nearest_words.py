"""The job nearest to a trace as a job file of fio and as a study, each with a statement of how near it is."""

from __future__ import annotations

import re
from dataclasses import replace

from leadline.study.study import STUDY_FORMAT
from leadline.units import exact_duration, exact_size, format_duration, format_size, printable
from leadline.workloads.replay.nearest import NearestJob, Split

_SHORTEST_NS = 1_000_000_000


def nearness(job: NearestJob, title: str) -> list[str]:
    """What the job stands for and what it leaves out, in lines for a comment."""
    ways = ((job.read_split, "reads"), (job.write_split, "writes"))
    lines = [
        f"The synthetic job nearest to the trace of {printable(title)}.",
        f"It stands for {job.calls_share:.1%} of the trace's calls and {job.bytes_share:.1%} of its bytes:"
        f" {job.reads:,} reads and {job.writes:,} writes.",
        *(_size_words(split, way) for split, way in ways if split is not None),
        f"Order: {job.random_share:.1%} of the operations did not begin where the one before ended.",
        f"Pauses: {_time(job.thinktime_ns)} on average; half were at most {_time(job.thinktime_p50_ns)},"
        f" nine in ten at most {_time(job.thinktime_p90_ns)}. The job pauses evenly.",
        f"Left out: {job.metadata_calls:,} calls that move no data (open, stat, seek and so on), which"
        " files are hot, and any order between threads.",
    ]
    if job.numjobs > 1:
        lines.append(
            f"Threads: {job.numjobs}, all alike; in the trace the busiest did"
            f" {job.busiest_thread_share:.0%} of the operations."
        )
    lines.append("Only a replay does all of it: leadline replay TRACE --target NAME=PATH.")
    return lines


def _size_words(split: Split, way: str) -> str:
    return (
        f"Sizes of {way}: {split.exact_share:.1%} are in the split, the others count for the nearest;"
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
    lines += [f"format: {STUDY_FORMAT}", f"name: nearest-{name}", "works:", "  nearest:"]
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
