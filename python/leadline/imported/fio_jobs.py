"""From fio's files to cells and trials: a cell a job, its clones and hosts added up; a block a file.

What cannot be made of what fio kept is None with its reason: percentiles of several jobs without bins.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from leadline import _core
from leadline.imported.fio import FioDirection, FioLatency, FioReport, FioRow
from leadline.imported.job import ImportedJob
from leadline.imported.made import ForeignCell, ForeignTrial, Histogram

_UNEQUAL = 0.05  # of their times, from where on clones did not run together
_FROM_DISK = 0.5  # share of random reads that reach devices, below which caches are named
_SIZE = re.compile(r"(\d{1,15})([kmgtp]?)(i?b)?", re.IGNORECASE)
_POWERS = {letter: 1 << 10 * power for power, letter in enumerate(("", "k", "m", "g", "t", "p"))}
_FALSE = frozenset({"0", "false", "no"})
_PACES = ("rate", "rate_iops", "rate_min", "rate_process")
_DATA = ("read", "write")
_CLOCKS = ("total", "completion")  # the first that was kept stands for the latency


@dataclass(frozen=True)
class _Job:
    """The rows of one job in one file: clones, and hosts."""

    name: str
    group: int
    rows: tuple[FioRow, ...]


def fio_cells(reports: Sequence[FioReport]) -> tuple[ForeignCell, ...]:
    """The cells of several files of one study, in their order."""
    by_name: dict[str, list[tuple[int, FioReport, _Job]]] = {}
    for block, report in enumerate(reports, start=1):
        for job in _jobs(report):
            by_name.setdefault(job.name, []).append((block, report, job))
    cells = []
    for name, found in by_name.items():
        block, report, first = found[0]
        grouped = {one.name for one in _jobs(report) if one.group == first.group}
        trials = tuple(_trial(block, report, job) for block, report, job in found)
        group = f"group_{first.group}" if len(grouped) > 1 else None
        cells.append(ForeignCell(name, _job(report, first), trials, group))
    return tuple(cells)


def _jobs(report: FioReport) -> tuple[_Job, ...]:
    """Rows of the same name in the same group are clones; the same name in a later group is another job."""
    places: dict[tuple[str | None, str], list[int]] = {}
    found: dict[tuple[str, int], list[FioRow]] = {}
    for row in report.rows:
        groups = places.setdefault((row.host, row.name), [])
        if row.group not in groups:
            groups.append(row.group)
        found.setdefault((row.name, groups.index(row.group)), []).append(row)
    taken: set[str] = set()
    jobs = []
    for (name, _), rows in found.items():
        work = _work_name(name, taken)
        taken.add(work)
        jobs.append(_Job(work, rows[0].group, tuple(rows)))
    return tuple(jobs)


def _work_name(name: str, taken: set[str]) -> str:
    """The job's name as a work's, which no other has."""
    plain = re.sub(r"[^A-Za-z0-9_-]+", "_", name).strip("_-")[:56] or "job"
    chosen, count = plain, 1
    while chosen in taken:
        count += 1
        chosen = f"{plain}_{count}"
    return chosen


def _job(report: FioReport, found: _Job) -> ImportedJob:
    first = found.rows[0]
    options = first.options
    used = {one.name for row in found.rows for one in row.directions}
    each = int(options["numjobs"]) if options.get("numjobs", "").isdecimal() else 1
    hosts = len({row.host for row in found.rows})
    depth = options.get("iodepth", "1")
    return ImportedJob(
        program=report.version,
        rw=options.get("rw", options.get("readwrite", "read")),
        bs=_block(found.rows),
        size=_size(options.get("size", ""), options),
        iodepth=max(int(depth), 1) if depth.isdecimal() and len(depth) < 7 else 1,
        numjobs=max(len(found.rows), min(each, 1 << 20) * hosts, 1),
        engine=options.get("ioengine", "psync"),
        direct=options.get("direct", "0").lower() not in _FALSE,
        reads="read" in used,
        writes="write" in used,
        paced=any(name in options for name in _PACES),
        ramp_time_ns=_ramp_ns(options),
        runtime_ns=max(row.runtime_ns for row in found.rows),
        options=dict(options),
    )


def _block(rows: Sequence[FioRow]) -> int | None:
    """The size of every operation, where all were of one: what moved says it, whatever was asked for."""
    amounts = [one for row in rows for one in row.directions if one.name in _DATA and one.operations]
    sizes = {one.bytes // one.operations if one.bytes % one.operations == 0 else None for one in amounts}
    return sizes.pop() or None if len(sizes) == 1 else None


def _size(text: str, options: Mapping[str, str]) -> int | None:
    """A size as fio reads it where nothing was set otherwise: k is 1024."""
    match = _SIZE.fullmatch(text.strip())
    if match is None or options.get("kb_base", "1024") != "1024":
        return None
    size_bytes = int(match[1]) * _POWERS[match[2].lower()]
    return size_bytes if size_bytes < 1 << 63 else None


def _ramp_ns(options: Mapping[str, str]) -> int:
    """fio leaves what happened in it out of its figures; bare numbers are seconds."""
    match = re.fullmatch(r"(\d{1,9})(ms|s|m)?", options.get("ramp_time", "0"))
    return int(match[1]) * {"ms": 10**6, "s": 10**9, "m": 60 * 10**9, None: 10**9}[match[2]] if match else 0


def _trial(block: int, report: FioReport, found: _Job) -> ForeignTrial:
    rows = found.rows
    ramp_ns, measured_ns = _ramp_ns(rows[0].options), max(row.runtime_ns for row in rows)
    starts = [row.started_unix_ns for row in rows if row.started_unix_ns is not None]
    believed = len(starts) == len(rows) and all(start <= report.ended_unix_ns for start in starts)
    started_ns = min(starts) if believed else max(report.ended_unix_ns - measured_ns - ramp_ns, 0)
    failed = [row for row in rows if row.error]
    directions = {
        name: parts
        for name in _DATA
        if (parts := [one for row in rows for one in row.directions if one.name == name])
    }
    histograms = [made for name, parts in directions.items() for made in _histograms(name, parts)]
    syncs = [row.sync_latency for row in rows if row.sync_latency is not None]
    histograms += _histogram("sync", "total", syncs)
    return ForeignTrial(
        block=block,
        started_unix_ns=started_ns,
        ramp_ns=ramp_ns,
        measured_ns=measured_ns,
        first_done_ns=ramp_ns + min(row.runtime_ns for row in rows),
        error=_error(failed) if failed else None,
        amounts={name: _amounts(parts) for name, parts in directions.items()},
        syncs=sum(row.syncs for row in rows),
        cpu_user_ns=round(sum(row.user_share * row.threads_ns for row in rows)),
        cpu_system_ns=round(sum(row.system_share * row.threads_ns for row in rows)),
        start_skew_ns=max(starts) - min(starts) if believed and len(starts) > 1 else None,
        histograms=tuple(histograms),
        said={
            "program": report.version,
            "directions": {name: _said(parts) for name, parts in directions.items()},
            "sync": _said_latency(syncs) | {"operations": len(syncs)} if syncs else None,
            "rows": [_row_said(row) for row in rows],
            "notes": list(dict.fromkeys(_notes(report, rows, believed=believed or not starts))),
        },
    )


def _error(failed: Sequence[FioRow]) -> str:
    first = failed[0]
    where = f" on {first.host}" if first.host else ""
    return f"fio ended {first.name}{where} with error {first.error}, of {len(failed)} in all"


def _amounts(parts: Sequence[FioDirection]) -> tuple[int, int]:
    return sum(one.bytes for one in parts), sum(one.operations for one in parts)


def _said(parts: Sequence[FioDirection]) -> dict[str, Any]:
    moved, operations = _amounts(parts)
    runtime_ns = max(one.runtime_ns for one in parts)
    own = {"bytes": moved, "operations": operations, "runtime_ns": runtime_ns}
    for clock in _CLOCKS:
        latencies = [one.latencies[clock] for one in parts if clock in one.latencies]
        if len(latencies) == len(parts) and any(one.percentiles for one in latencies):
            return own | _said_latency(latencies)
    plain = [one.latencies[clock] for clock in _CLOCKS for one in parts if clock in one.latencies]
    return own | _said_latency(plain[: len(parts)])


def _said_latency(latencies: Sequence[FioLatency]) -> dict[str, Any]:
    """What can be said without bins: of several rows no percentile, as these cannot be added up."""
    operations = sum(one.operations for one in latencies)
    if not operations:
        return {"latency": None, "latency_reason": "fio kept no latency (disable_lat, gtod_reduce)"}
    alone = len(latencies) == 1
    reason = (
        "fio kept no percentiles, as its options ask"
        if alone
        else f"the percentiles of {len(latencies)} jobs cannot be added up without their bins:"
        " run fio with --output-format=json+"
    )
    return {
        "latency": {
            "operations": operations,
            "mean_ns": sum(one.mean_ns * one.operations for one in latencies) / operations,
            "max_ns": max(one.max_ns for one in latencies),
            "percentiles": {str(p): ns for p, ns in latencies[0].percentiles.items()} if alone else {},
            "reason": reason if not alone or not latencies[0].percentiles else "",
        },
        "latency_reason": reason,
    }


def _histograms(direction: str, parts: Sequence[FioDirection]) -> Iterator[Histogram]:
    for clock in ("submission", *_CLOCKS):
        kept = [one.latencies[clock] for one in parts if clock in one.latencies]
        moved = [one for one in parts if one.operations]
        if len(kept) == len(moved):
            yield from _histogram(direction, clock, kept)


def _histogram(direction: str, clock: str, kept: Sequence[FioLatency]) -> list[Histogram]:
    """All bins added up, where every row has its own; fio's exact mean, least and largest beside them."""
    if not kept or not all(one.bins for one in kept):
        return []
    operations = sum(one.operations for one in kept)
    blob = _core.histogram_of_counts([pair for one in kept for pair in one.bins])
    return [
        Histogram(
            direction=direction,
            clock=clock,
            min_ns=min(one.min_ns for one in kept),
            mean_ns=sum(one.mean_ns * one.operations for one in kept) / operations,
            max_ns=max(one.max_ns for one in kept),
            blob=blob,
        )
    ]


def _row_said(row: FioRow) -> dict[str, Any]:
    def mean_ns(one: FioDirection) -> float | None:
        return next((one.latencies[clock].mean_ns for clock in _CLOCKS if clock in one.latencies), None)

    return {
        "name": row.name,
        "host": row.host,
        "error": row.error,
        "directions": {
            one.name: {
                "bytes": one.bytes,
                "operations": one.operations,
                "runtime_ns": one.runtime_ns,
                "mean_ns": mean_ns(one),
            }
            for one in row.directions
        },
    }


def _notes(report: FioReport, rows: Sequence[FioRow], *, believed: bool) -> Iterator[str]:
    """What a reader of the figures must know, and fio's own screen does not say."""
    yield from report.notes
    for row in rows:
        yield from row.notes
    times = [row.runtime_ns for row in rows if row.runtime_ns]
    if times and max(times) > (1 + _UNEQUAL) * min(times):
        first, last = min(times) / 1e9, max(times) / 1e9
        yield (
            f"its first job was done after {first:.3g} s and its last after {last:.3g} s,"
            " so that not all ran all the time"
        )
    if not believed:
        yield "its job_start lies after its end and is not used"
    if any(one.name == "trim" for row in rows for one in row.directions):
        yield "trims are left out"
    if rows[0].syncs == 0 and rows[0].host and {"fsync", "fdatasync"} & rows[0].options.keys():
        yield "fio loses the latency of syncs between client and server"
    yield from _cached(report)


def _cached(report: FioReport) -> Iterator[str]:
    """Random reads that never reached a device, where all reads of a file are such."""
    reading = [row for row in report.rows if any(one.name == "read" for one in row.directions)]
    random = [
        row for row in reading if row.options.get("rw", row.options.get("readwrite", "")).startswith("rand")
    ]
    reads = sum(one.operations for row in reading for one in row.directions if one.name == "read")
    seen = report.disk_reads
    if seen is not None and len(random) == len(reading) and seen < _FROM_DISK * reads:
        yield (
            f"fio saw {seen:,} reads reach its block devices for {reads:,} random ones:"
            " caches answered the others"
        )
