"""From what a log of strace said to the tables of a trace, with what it did not say as nulls and warnings."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from leadline.tracing.counted.overhead import costs_of_processes
from leadline.tracing.counted.paths import renamed
from leadline.tracing.counters import FileCounters, column, time_column
from leadline.tracing.sources.lives.last_seen import with_last_seen
from leadline.tracing.sources.strace_processes import BIRTHS, EXECS, KINDS, Process
from leadline.tracing.sources.strace_world import World, call_kinds
from leadline.tracing.tables import (
    COUNTERS,
    OWN_COUNTERS,
    TIMES,
    ProcessRow,
    TraceLatencyRow,
    TraceTables,
    files_schema,
    seconds_json,
)

NS = 1e9
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
        files=_files(world, unknown),
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


def _files(world: World, unknown: set[str]) -> Any:
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
