"""Where a traced program's time went, how fast its bytes moved, and which bytes went past the tracer.

Definitions: docs/trace.md. Two of a share exist, and each figure says which it follows. Darshan's divides the
seconds of its files by run time times processes. Ours, where the source gives seconds by process, divides by
process time: a process counts while it lives and has no living child (it waits for that then), but never for
less than it spent in I/O. For one process both have the same denominator. What is left over, the rest, is
computing as far as a CPU ran meanwhile, and else waiting (`slowest.py`). The kernel counts every byte that a
process's calls read and write (/proc/PID/io): what is in its count only went past the tracer.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from leadline import units
from leadline.tracing.paths import STREAM
from leadline.tracing.slowest import Rest, rest_of, rests_together
from leadline.tracing.tables import KINDS, ProcessRow, TraceTables, by_life

_NAMED = 3


@dataclass(frozen=True)
class Unseen:
    """Of one process: bytes in the kernel's count beyond what was recorded; below 0 for fewer."""

    process: int
    pid: int
    executable: str
    read: int
    written: int


def unseen(processes: Sequence[ProcessRow], thresholds: Mapping[str, float]) -> tuple[Unseen, ...]:
    """The processes whose counts differ by more than `thresholds` bear, the worst first.

    `thresholds` are `read_bytes` and `written_bytes`. A process of which the kernel was not asked, as it was
    killed, is not among them.
    """
    found = [
        Unseen(row.process, row.pid, row.executable, row.unseen_read or 0, row.unseen_written or 0)
        for row in processes
        if abs(row.unseen_read or 0) > thresholds["read_bytes"]
        or abs(row.unseen_written or 0) > thresholds["written_bytes"]
    ]
    return tuple(sorted(found, key=lambda item: (-abs(item.read) - abs(item.written), item.process)))


def unseen_words(found: Sequence[Unseen]) -> str:
    """How much, and whose."""
    said = [_one(item) for item in found[:_NAMED]]
    if len(found) > _NAMED:
        more = len(found) - _NAMED
        said.append(f"and {more:,} more {'process' if more == 1 else 'processes'}")
    return "; ".join(said)


def _one(item: Unseen) -> str:
    parts = [
        f"{units.format_size(abs(value))} {'more' if value > 0 else 'less'} {what}"
        for value, what in ((item.read, "read"), (item.written, "written"))
        if value
    ]
    return f"{item.executable} (pid {item.pid}): {' and '.join(parts)} than was recorded"


RESTS = ("compute", "wait", "rest")
OVERLAPPED = "I/O overlapped: what was computed meanwhile is not known"
NO_CPU_TIME = "CPU time was not recorded: what was no call on a file may be computing or waiting"
UNDATED = "the log has no times: strace ran without -ttt"
UNSEEN = "the trace lacks some requests: see its notes"
# Notes of processes whose requests were under way while they did something else.
_BESIDE = ("asynchronous I/O", "io_uring", "io_submit")
MPI_IO = "MPI-IO"
Basis = Literal["process time", "run time x processes"]


@dataclass(frozen=True)
class Share:
    """Of one copy, or of all (`copy` is None): seconds in I/O, the time they are a share of, the shares.

    `sync` is None where the source counts syncs among writes. `rest` is what is left over, and None where
    it is not known: I/O went on beside other I/O or beside computing (`overlapped`: threads were in I/O for
    longer than their process lived, or it was asynchronous), the tracer slowed the program down by an
    unknown time (`slowed`), or the time of reads, writes or metadata is not known. `compute` is what of the
    rest ran on a CPU, at most, and `wait` what did not; both are None where nobody recorded CPU time.
    `waits` has the seconds of waiting by cause.
    """

    copy: int | None
    basis: Basis
    base_s: float
    seconds: Mapping[str, float | None]
    read: float | None
    write: float | None
    meta: float | None
    sync: float | None
    compute: float | None
    overlapped: bool = False
    slowed: bool = False
    rest: float | None = None
    wait: float | None = None
    waits: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Shares:
    """Each copy, in order, and all together."""

    copies: tuple[Share, ...]
    whole: Share


@dataclass(frozen=True)
class Speeds:
    """Bytes per second by two measures that must never be mixed.

    `agg_perf_by_slowest` is Darshan's: the bytes of the POSIX layer over the I/O time of the process that had
    the longest. `wall_throughput` is all bytes over the run time. None with a reason where it is not known.
    """

    bytes_read: int
    bytes_written: int
    wall_s: float | None
    posix_bytes: int | None
    slowest_io_s: float | None
    agg_perf_by_slowest: float | None
    wall_throughput: float | None
    reasons: Mapping[str, str]


def wall_seconds(tables: TraceTables) -> float | None:
    """The trial's run time: as it was measured, or from the first start to the last end of a process."""
    known = tables.extra.get("wall_s")
    if known is not None:
        return float(known)
    ends = [row.ended_ns for row in tables.processes if row.ended_ns is not None]
    starts = [row.started_ns for row in tables.processes]
    return (max(ends) - min(starts)) / 1e9 if ends else None


def copy_seconds(tables: TraceTables) -> dict[int, float]:
    """The run time of each copy where it is known."""
    known = {int(c["copy"]): c.get("wall_s") for c in tables.extra.get("copies", ())}
    found = {copy: float(wall) for copy, wall in known.items() if wall is not None}
    for copy in sorted({row.copy for row in tables.processes} - set(known)):
        rows = [row for row in tables.processes if row.copy == copy]
        ends = [row.ended_ns for row in rows if row.ended_ns is not None]
        if ends:
            found[copy] = (max(ends) - min(row.started_ns for row in rows)) / 1e9
    return dict(sorted(found.items()))


def shares(tables: TraceTables, wall_s: float | None) -> Shares:
    """How the time of each copy, and of all, divides into reading, writing, metadata, syncs and computing."""
    wall = copy_seconds(tables)
    copies = sorted({row.copy for row in tables.processes})
    given = {int(item["copy"]): item for item in tables.extra.get("copies", ())}
    by_files = _file_seconds(tables)
    slowed, known = under_strace(tables), times_known(tables)
    found = []
    for copy in copies:
        rows = [row for row in tables.processes if row.copy == copy]
        run_s = wall.get(copy, wall_s)
        own = _process_seconds(rows, known=known)
        if own is not None:
            dated = run_s is not None or any(row.ended_ns is not None for row in rows)
            base, overlapped = _process_time(rows, run_s) if dated else (0.0, False)
            part = _share(copy, "process time", own, base, overlapped, slowed)
        else:
            told = given.get(copy, {})
            base = told.get("process_s")
            base = (run_s or 0.0) * max(1, len(by_life(rows))) if base is None else float(base)
            nothing = dict.fromkeys(("read", "write", "meta"), 0.0) if told.get("idle") else {}
            part = _share(copy, "run time x processes", by_files.get(copy, nothing), base)
        found.append(_divided(part, rest_of(tables, copy, _rest_s(part), _spent_s(part))))
    return Shares(tuple(found), _together(found))


def _together(parts: Sequence[Share]) -> Share:
    """All copies as one; each weighs by its time."""
    seconds: dict[str, float | None] = {}
    for kind in KINDS:
        known = [part.seconds.get(kind) for part in parts]
        seconds[kind] = None if None in known or not known else sum(value or 0.0 for value in known)
    basis: Basis = parts[0].basis if parts else "process time"
    base_s, overlapped = sum(part.base_s for part in parts), any(part.overlapped for part in parts)
    whole = _share(None, basis, seconds, base_s, overlapped, any(part.slowed for part in parts))
    rests = [
        Rest(part.compute * part.base_s, part.waits)
        for part in parts
        if part.compute is not None and part.rest is not None
    ]
    return _divided(whole, rests_together(rests) if len(rests) == len(parts) else None)


def _rest_s(part: Share) -> float | None:
    return None if part.rest is None else part.rest * part.base_s


def _spent_s(part: Share) -> float:
    return sum(value for value in part.seconds.values() if value is not None)


def _divided(part: Share, rest: Rest | None) -> Share:
    """With what its rest was, where that is known."""
    if rest is None or part.rest is None or part.base_s <= 0:
        return part
    compute = min(part.rest, rest.compute_s / part.base_s)
    return replace(part, compute=compute, wait=part.rest - compute, waits=rest.waits)


def _share(
    copy: int | None,
    basis: Basis,
    seconds: Mapping[str, float | None],
    base_s: float,
    overlapped: bool = False,
    slowed: bool = False,
) -> Share:
    whole = {kind: seconds.get(kind) for kind in KINDS}
    partly = any(whole[kind] is None for kind in ("read", "write", "meta"))  # syncs may be among the writes
    spent = sum(value for value in whole.values() if value is not None)
    if base_s <= 0 or all(value is None for value in whole.values()):
        return Share(copy, basis, base_s, whole, None, None, None, None, None, slowed=slowed)
    overlapped = overlapped or spent > base_s
    base = max(base_s, spent)
    read, write, meta, sync = (None if value is None else value / base for value in whole.values())
    rest = None if overlapped or slowed or partly else max(0.0, 1 - spent / base)
    return Share(copy, basis, base, whole, read, write, meta, sync, None, overlapped, slowed, rest)


def under_strace(tables: TraceTables) -> bool:
    """Whether times are those of strace: a call takes a thousand of what the kernel takes for it."""
    return tables.mode == "import" and tables.source.startswith("strace")


def times_known(tables: TraceTables) -> bool:
    """False where the times of calls cannot be told from what strace cost them."""
    return not under_strace(tables) or tables.extra.get("call_cost_s") is not None


def _process_seconds(rows: Sequence[ProcessRow], *, known: bool) -> dict[str, float | None] | None:
    """Seconds by kind summed over processes; None where any process does not give them."""
    totals: dict[str, float | None] = dict.fromkeys(KINDS, 0.0)
    if not known:
        return dict.fromkeys(KINDS)
    for row in rows:
        seconds = json.loads(row.seconds or "null") or {}
        if not seconds:  # the source has them by file only
            return None
        for kind in KINDS:
            part, total = seconds.get(kind), totals[kind]
            totals[kind] = None if part is None or total is None else total + part
    return totals if rows else None


def _process_time(rows: Sequence[ProcessRow], run_s: float | None) -> tuple[float, bool]:
    """Seconds in which processes lived and had no living child, less the tracer's own; at least their I/O.

    The second value is True where a process was in I/O for longer than it lived, as its threads overlapped,
    or where it had requests under way beside what it did.
    """
    last = max((row.ended_ns or 0 for row in rows), default=0)
    if run_s is not None:
        last = max(last, min(row.started_ns for row in rows) + int(run_s * 1e9))
    spans = {row.process: (row.started_ns, row.ended_ns or last) for row in rows}
    lives = by_life(rows)
    life = {row.process: images[0].process for images in lives for row in images}
    # A child lives on through its execs, and its parent, whatever that executed, waits for all of it.
    children: dict[int, list[tuple[int, int]]] = {}
    for images in lives:
        parent = life.get(-1 if images[0].parent is None else images[0].parent)
        if parent is not None:
            whole = spans[images[0].process][0], max(spans[row.process][1] for row in images)
            children.setdefault(parent, []).append(whole)
    total, overlapped = 0.0, False
    for row in rows:
        start, end = spans[row.process]
        seconds = json.loads(row.seconds or "null") or {}
        spent = sum(seconds.get(kind) or 0.0 for kind in KINDS)
        lived_ns = _outside((start, end), children.get(life.get(row.process, row.process), []))
        # At least this of its life, as threads may have recorded at once.
        recording_ns = (row.tracer_ns or 0) / max(1, row.threads or 1)
        total += max((lived_ns - recording_ns) / 1e9, spent)
        beside = any(note.startswith(_BESIDE) for note in json.loads(row.notes or "[]"))
        overlapped = overlapped or beside or spent * 1e9 > end - start
    return total, overlapped


def _outside(span: tuple[int, int], others: Sequence[tuple[int, int]]) -> int:
    """How much of `span` lies in none of `others`."""
    left, place = 0, span[0]
    for start, end in sorted(others):
        if start > place:
            left += min(start, span[1]) - place
        place = max(place, min(end, span[1]))
        if place >= span[1]:
            return left
    return left + max(0, span[1] - place)


def _file_seconds(tables: TraceTables) -> dict[int, dict[str, float | None]]:
    """Each copy's F_*_TIME of the POSIX and STDIO layers, which never describe the same call.

    Where calls of MPI-IO took longer than those that they made below, the program waited for all of that.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    layers = pa.array(["POSIX", "STDIO"])
    names = {"read": "F_READ_TIME", "write": "F_WRITE_TIME", "meta": "F_META_TIME"}
    # Of all columns the rows that are left would be as large as the table.
    columns = tables.files.select(["copy", *names.values()])
    files = columns.filter(pc.is_in(tables.files["module"], layers))
    if not files.num_rows:
        return {}
    sums = (
        files.group_by("copy", use_threads=False)
        .aggregate([(name, "sum") for name in names.values()])
        .to_pylist()
    )
    above = _above_posix(tables, tuple(names.values()))
    return {
        row["copy"]: {
            **{
                kind: _plus(row[f"{name}_sum"], above.get((row["copy"], name)))
                for kind, name in names.items()
            },
            "sync": None,
        }
        for row in sums
    }


def _plus(seconds: float | None, more: float | None) -> float | None:
    return seconds if seconds is None or more is None else seconds + more


def _above_posix(tables: TraceTables, names: Sequence[str]) -> dict[tuple[int, str], float]:
    """By copy and time: what calls of MPI-IO took beyond the POSIX calls on the same files."""
    import pyarrow.compute as pc

    columns = tables.files.select(["copy", "module", "path", *names])
    mpi = columns.filter(pc.equal(columns["module"], MPI_IO))
    if not mpi.num_rows:
        return {}
    known = columns.filter(pc.is_in(columns["path"], pc.unique(mpi["path"].combine_chunks())))
    sums = known.group_by(["copy", "path", "module"], use_threads=False).aggregate(
        [(name, "sum") for name in names]
    )
    layers: dict[tuple[int, str], dict[str, dict[str, float]]] = {}
    for row in sums.to_pylist():
        times = {name: row[f"{name}_sum"] or 0.0 for name in names}
        layers.setdefault((row["copy"], row["path"]), {})[row["module"]] = times
    found: dict[tuple[int, str], float] = {}
    for (copy, _), by_module in layers.items():
        above, below = by_module.get(MPI_IO, {}), by_module.get("POSIX", {})
        for name in names:
            more = max(0.0, above.get(name, 0.0) - below.get(name, 0.0))
            found[copy, name] = found.get((copy, name), 0.0) + more
    return found


def speeds(tables: TraceTables, wall_s: float | None) -> Speeds:
    """Bytes, and bytes per second over I/O time and over the run time."""
    read = sum(row.bytes_read for row in tables.processes)
    written = sum(row.bytes_written for row in tables.processes)
    reasons: dict[str, str] = {}
    posix, slowest = _posix_layer(tables)
    waited = _has_streams(tables)
    slowest = None if under_strace(tables) or waited else slowest
    given = tables.extra.get("agg_perf_by_slowest")  # bytes per second, as Darshan's own sums give it
    by_slowest = float(given) if given is not None and not waited else None
    if by_slowest is None and posix and slowest:
        by_slowest = posix / slowest
    if by_slowest is None:
        reasons["agg_perf_by_slowest"] = (
            "no byte was moved at the POSIX layer"
            if posix == 0
            else "the times are those of a program under strace"
            if under_strace(tables)
            else "FIFOs were waited for within it"
            if waited
            else "the trace does not say how long I/O took"
        )
    if not wall_s:
        reasons["wall_throughput"] = "the run time is not known"
    if wall_s is None and under_strace(tables):
        reasons |= dict.fromkeys(("run_time", "run_time_slowest"), UNDATED)
    return Speeds(
        bytes_read=read,
        bytes_written=written,
        wall_s=wall_s,
        posix_bytes=posix,
        slowest_io_s=slowest,
        agg_perf_by_slowest=by_slowest,
        wall_throughput=(read + written) / wall_s if wall_s else None,
        reasons=reasons,
    )


def _has_streams(tables: TraceTables) -> bool:
    import pyarrow.compute as pc

    return bool(pc.any(pc.equal(tables.files["module"], STREAM)).as_py())


def _posix_layer(tables: TraceTables) -> tuple[int | None, float | None]:
    """Bytes of the POSIX layer, and the I/O time of the process that had the longest."""
    import pyarrow.compute as pc

    names = ("BYTES_READ", "BYTES_WRITTEN", "F_READ_TIME", "F_WRITE_TIME", "F_META_TIME")
    columns = tables.files.select(["copy", "process", *names])
    files = columns.filter(pc.equal(tables.files["module"], "POSIX"))
    if not files.num_rows:
        return 0, None
    rows = (
        files.group_by(["copy", "process"], use_threads=False)
        .aggregate([(name, "sum") for name in names])
        .to_pylist()
    )
    parts = [row[f"{name}_sum"] for row in rows for name in names[:2]]
    times = [[row[f"{name}_sum"] for name in names[2:]] for row in rows]
    if all(value is None for value in parts):
        return None, None
    known = [sum(value or 0.0 for value in row) for row in times if any(value is not None for value in row)]
    return sum(value or 0 for value in parts), max(known, default=None)
