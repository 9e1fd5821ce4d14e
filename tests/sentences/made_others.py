"""Traces, notes of a media platform and published figures made by chance, as results."""

from __future__ import annotations

import random
import re
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from builders import clock
from trace_tables import SECOND, file_row, files_table, process

from leadline.errors import SpecError
from leadline.published.document import read_published, write_published
from leadline.tracing.store import create_trace_result
from leadline.tracing.tables import ProcessRow, TraceTables
from leadline.workflows.reading import Operation, Workflow, write_workflows

START_NS = 1_767_225_600 * SECOND
DATA = Path(__file__).parents[2] / "python" / "leadline" / "published" / "documents"
MIB = 1 << 20


def random_trace(chance: random.Random, path: Path, *, gaps: bool = False) -> Path:
    """One to three copies of a program of one to four processes, with files of many kinds."""
    copies = chance.choice([1, 1, 2, 3])
    run_s = chance.uniform(0.2, 500)
    # How much of its life it may be in files, and how much of that in moving bytes.
    busy, moving = chance.choice([(1.0, 1.0), (1.0, 1.0), (0.05, 1.0), (1.0, 0.02)])
    processes: list[ProcessRow] = []
    files: list[dict[str, Any]] = []
    accounts = []
    for copy in range(copies):
        wall_s = run_s * chance.uniform(0.4, 1.0)
        end = chance.choice([("exit", 0), ("exit", 0), ("exit", 1), ("signal", 9)])
        accounts.append({"copy": copy, "wall_s": wall_s, "end": end[0], "status": end[1]})
        accounts[-1] |= _looked(random.Random(wall_s), wall_s)  # noqa: S311 - so that what the rest draws stays
        for _ in range(chance.choice([1, 1, 2, 4])):
            number = len(processes)
            count = chance.choice([1, 3])
            own = [_file(chance, copy, number, (wall_s * busy, moving), place) for place in range(count)]
            files += own
            processes.append(_process(chance, copy, number, wall_s, own))
            if chance.random() < 0.3:
                files += _not_the_users(copy, number)
                processes[-1] = replace(processes[-1], bytes_read=processes[-1].bytes_read + 832)
            if chance.random() < 0.3:
                processes += _executed(processes.pop(), number)
    warnings = ("the record of one process could not be read",) if chance.random() < 0.2 else ()
    if chance.random() < 0.1:
        processes, files, warnings = [], [], ("no process wrote a log",)
    if gaps:
        accounts, processes, files = _with_gaps(chance, accounts, processes, files)
    extra: dict[str, Any] = {"wall_s": max(one["wall_s"] for one in accounts), "copies": accounts}
    strace = chance.random() < 0.25
    if strace:
        extra["call_cost_s"] = chance.choice([None, 4.1e-5])
    tables = TraceTables(
        "import" if strace else "preload",
        tuple(processes),
        files_table(files),
        source="strace, 9 lines" if strace else "",
        warnings=warnings,
        extra=extra,
    )
    create_trace_result(path, {"t0001": tables}, title="prog", details={"program": ["prog"]}, now_ns=clock())
    return path


def _with_gaps(
    chance: random.Random,
    accounts: list[dict[str, Any]],
    processes: list[ProcessRow],
    files: list[dict[str, Any]],
) -> tuple[list[dict[str, Any]], list[ProcessRow], list[dict[str, Any]]]:
    """Some processes of which no end is known, and some files that were mapped."""
    ended = [
        replace(row, end="last seen", status=None) if row.end != "exec" and chance.random() < 0.3 else row
        for row in processes
    ]
    mapped = [{**row, **_mapping(chance)} if chance.random() < 0.5 else row for row in files]
    if chance.random() < 0.7:
        accounts = [{**one, "faults_major": chance.choice([0, 5000])} for one in accounts]
    return accounts, ended, mapped


def _mapping(chance: random.Random) -> dict[str, Any]:
    return {
        "MMAPS": chance.choice([0, 1, 30]),
        "mapped_bytes": chance.choice([None, 0, 4096, 32 * MIB, 2**40]),
        "write_mmaps": chance.choice([None, 0, 1]),
    }


def _not_the_users(copy: int, number: int) -> list[dict[str, Any]]:
    """A library that was read, and a miss on the search path."""
    place: dict[str, Any] = {"copy": copy, "process": number, "STATS": 0}
    place |= dict.fromkeys(("F_READ_TIME", "F_WRITE_TIME", "F_META_TIME"), 0.0)
    library = {"OPENS": 1, "READS": 1, "BYTES_READ": 832}
    return [
        file_row(number * 10 + 8, path="/usr/lib/libx.so.1", **library, **place),
        file_row(number * 10 + 9, path="/opt/none/bin/tool", OPENS=0, failed=3, **place),
    ]


def _executed(row: ProcessRow, number: int) -> list[ProcessRow]:
    """The same process as two images, all that it did being the first one's."""
    assert row.ended_ns is not None
    times = {"started_ns": row.ended_ns, "ended_ns": row.ended_ns}
    nothing = dict.fromkeys(("read", "write", "meta", "sync"), 0.0)
    after = process(number + 1, copy=row.copy, pid=row.pid, seconds=nothing, bytes_read=0, **times)
    return [replace(row, end="exec", status=None), after]


def _file(
    chance: random.Random, copy: int, number: int, times: tuple[float, float], place: int
) -> dict[str, Any]:
    reads, writes = chance.choice([0, 30, 5000]), chance.choice([0, 0, 30, 5000])
    each = chance.choice([100, 4096, MIB])
    part = times[0] / 4
    opens = chance.choice([1, 1, 900])
    return file_row(
        number * 10 + place,
        copy=copy,
        process=number,
        path=f"/data/{number}-{place}",
        OPENS=opens,
        STATS=chance.choice([0, 1, 1500]),
        FSYNCS=0,
        READS=reads,
        WRITES=writes,
        BYTES_READ=reads * each,
        BYTES_WRITTEN=writes * each,
        MAX_BYTE_READ=reads * each * chance.choice([1, 4]) // (8 if (number + place) % 3 == 2 else 1),
        MAX_BYTE_WRITTEN=writes * each // chance.choice([1, 4]),
        FILE_ALIGNMENT=4096,
        FILE_NOT_ALIGNED=round((reads + writes) * chance.choice([0, 0.9])),
        CONSEC_READS=round(reads * chance.choice([0.1, 0.9])),
        CONSEC_WRITES=round(writes * chance.choice([0.1, 0.9])),
        SEQ_READS=round(reads * chance.choice([0.3, 0.95])),
        SEQ_WRITES=round(writes * chance.choice([0.3, 0.95])),
        F_READ_TIME=chance.uniform(0, part) * times[1] if reads else 0.0,
        F_WRITE_TIME=chance.uniform(0, part) * times[1] if writes else 0.0,
        F_META_TIME=chance.uniform(0, part) * (opens > 1 or times[1] < 1) * chance.choice([1, 0.3]),
        rewritten_bytes=writes * each // chance.choice([1, 1000]),
        failed=chance.choice([0, 0, 0, opens]),
    )


def _process(
    chance: random.Random, copy: int, number: int, wall_s: float, files: list[dict[str, Any]]
) -> ProcessRow:
    seconds = {
        "read": sum(one["F_READ_TIME"] for one in files),
        "write": sum(one["F_WRITE_TIME"] for one in files),
        "meta": sum(one["F_META_TIME"] for one in files),
        "sync": chance.choice([0.0, 0.0, wall_s / 3]),
    }
    if len(files) > 1:  # of several files the sum may pass the run
        seconds = {kind: value / len(files) for kind, value in seconds.items()}
        for one in files:
            for name in ("F_READ_TIME", "F_WRITE_TIME", "F_META_TIME"):
                one[name] /= len(files)
    notes = chance.choice([[], [], [], ["io_uring"], ["asynchronous I/O"], ["static child /bin/busybox"]])
    beside = random.Random(wall_s)  # noqa: S311 - so that what the rest draws stays as it is
    return process(
        number,
        copy=copy,
        pid=100 + number,
        ended_ns=round(wall_s * SECOND),
        threads=chance.choice([1, 4]),
        bytes_read=sum(one["BYTES_READ"] for one in files),
        bytes_written=sum(one["BYTES_WRITTEN"] for one in files),
        seconds=seconds,
        lost={"segments": 5} if chance.random() < 0.1 else {},
        notes=notes,
        unseen_read=beside.choice([None, 0, 0, 0, 0, 832, 40 * MIB]),
        unseen_written=beside.choice([None, 0, 0, 0, 0, 4096, -MIB, 5000]),
        tracer_ns=beside.choice([None, 0, round(wall_s * SECOND / 20)]),
        status=0,
    )


CAUSES = ("page", "file", "asleep", "lock", "peer", "queue", "none")


def _looked(chance: random.Random, wall_s: float, cause: str = "") -> dict[str, Any]:
    """CPU time of a copy, where it is known, and what it was seen to wait for; "none" keeps its CPUs busy."""
    cause = cause or chance.choice((*CAUSES, "unknown"))
    if cause == "unknown":
        return {}
    busy = 4.0 if cause == "none" else chance.choice([0.0, 0.05])
    kinds = {} if cause in ("none", "queue") else {cause: wall_s}
    waits = {
        "looks": 400,
        "watched_s": wall_s,
        "seconds": kinds or {"other": wall_s / 100},
        "cpu_s": 0.0,
        "queued_s": wall_s if cause == "queue" else 0.0,
    }
    cpu_ns = round(busy * wall_s * SECOND)
    return {"cpu_user_ns": cpu_ns, "cpu_system_ns": 0, "faults_major": 12, "waits": waits}


def random_waits(chance: random.Random, path: Path) -> Path:
    """A process that computes or waits for one thing: for reads, or hardly in calls on files."""
    wall_s = chance.uniform(2, 500)
    cause = chance.choice((*CAUSES, "reads", "ends"))
    reads, ends, share = {"reads": (40, 0, 0.8), "ends": (160, 60, 0.8)}.get(cause, (3, 0, 0.02))
    seconds = {"read": wall_s * share, "write": 0.0, "meta": 0.0, "sync": 0.0}
    row = file_row(OPENS=max(1, ends), STATS=0, READS=reads, BYTES_READ=3 * MIB, F_READ_TIME=seconds["read"])
    row |= {"SIZE_READ_0_100": ends, "empty_reads": ends, "MAX_BYTE_READ": 3 * MIB - 1}
    row |= {"BYTES_WRITTEN": 0, "WRITES": 0, "F_WRITE_TIME": 0.0, "F_META_TIME": 0.0}
    only = process(0, ended_ns=round(wall_s * SECOND), seconds=seconds, bytes_read=3 * MIB)
    account = {"copy": 0, "wall_s": wall_s, "end": "exit", "status": 0}
    account |= _looked(chance, wall_s, cause if cause in CAUSES else "other")
    extra = {"wall_s": wall_s, "copies": [account]}
    tables = TraceTables("preload", (only,), files_table([row]), extra=extra)
    create_trace_result(path, {"t0001": tables}, title="prog", details={"program": ["prog"]}, now_ns=clock())
    return path


def random_environment(chance: random.Random, path: Path) -> Path:
    """A process that loads libraries, reads many small files and two large ones, and writes one."""
    wall_s = chance.uniform(2, 500)
    parts = {
        "/opt/env/lib/python3.12/site-packages/m{}.py": (chance.randrange(60, 90), 3000, 0.15),
        "/data/small/{}": (chance.randrange(60, 200), chance.randrange(100, 60_000), 0.12),
        "/data/large-{}": (2, 64 * MIB, 0.3),
    }
    rows: list[dict[str, Any]] = []
    for form, (count, moved, share) in parts.items():
        for place in range(count):
            times = {"F_READ_TIME": wall_s * share / count, "F_WRITE_TIME": 0.0, "F_META_TIME": 0.0}
            counts = {
                "OPENS": 1,
                "STATS": 0,
                "READS": 2,
                "WRITES": 0,
                "BYTES_READ": moved,
                "BYTES_WRITTEN": 0,
            }
            rows.append(file_row(len(rows), path=form.format(place), **counts, **times))
    times = {"F_READ_TIME": 0.0, "F_WRITE_TIME": wall_s * 0.25, "F_META_TIME": 0.0}
    counts = {"OPENS": 1, "STATS": 0, "READS": 0, "WRITES": 3, "BYTES_READ": 0, "BYTES_WRITTEN": 3 * MIB}
    rows.append(file_row(len(rows), path="/data/out", **counts, **times))
    seconds = {
        "read": sum(row["F_READ_TIME"] for row in rows),
        "write": sum(row["F_WRITE_TIME"] for row in rows),
        "meta": 0.0,
        "sync": 0.0,
    }
    moved_bytes = {
        "bytes_read": sum(row["BYTES_READ"] for row in rows),
        "bytes_written": sum(row["BYTES_WRITTEN"] for row in rows),
    }
    # Its reads may be several at once: those of one thread are said to be one after another.
    only = process(0, ended_ns=round(wall_s * SECOND), seconds=seconds, threads=2, **moved_bytes)
    account = {"copy": 0, "wall_s": wall_s, "end": "exit", "status": 0}
    extra = {"wall_s": wall_s, "copies": [account]}
    tables = TraceTables("preload", (only,), files_table(rows), extra=extra)
    create_trace_result(path, {"t0001": tables}, title="prog", details={"program": ["prog"]}, now_ns=clock())
    return path


OPERATIONS = ("inspect", "encode", "publish")


def random_workflows(chance: random.Random, path: Path) -> Path:
    """What a platform noted of up to twenty films, with or without the date of a change."""
    count = chance.choice([1, 3, 8, 20])
    sized, slower = chance.random() < 0.5, chance.choice([1.0, 1.4, 6.0])
    change_ns = START_NS + count * 1800 * SECOND if chance.random() < 0.6 else None
    workflows = []
    for number in range(count):
        begin_ns = START_NS + number * 3600 * SECOND
        after = change_ns is not None and begin_ns >= change_ns
        state = chance.choice(["succeeded"] * 6 + ["failed", "running"])
        operations = []
        for place, name in enumerate(OPERATIONS):
            took_s = 100.0 * (place + 1) * chance.lognormvariate(0, 0.1) * (slower if after else 1.0)
            last = place == 2
            own = state if last and state != "succeeded" else chance.choice(["succeeded"] * 20 + ["skipped"])
            end_ns = None if own == "running" or chance.random() < 0.03 else begin_ns + round(took_s * SECOND)
            if own == "failed" and end_ns is not None:
                end_ns = begin_ns + 5 * SECOND
            host = chance.choice(["worker-1", "worker-2"])
            queue_ns = chance.choice([None, round(chance.uniform(0, 50) * SECOND)])
            operations.append(Operation(name, own, host, begin_ns, end_ns, queue_ns))
            begin_ns += round((took_s + chance.choice([0, 0, 300])) * SECOND)
        operations = operations if chance.random() > 0.05 else []
        workflows.append(
            Workflow(str(number), "a film", state, tuple(operations), 2 * 10**9 if sized else None)
        )
    details = {"title": "notes", "since_change_ns": change_ns, "created": "2026-01-01T00:00:00+00:00"}
    write_workflows(path, workflows, details, clock())
    return path


def random_document(chance: random.Random, path: Path) -> Path:
    """A document's figures as they were published, or with one of them ten times as large."""
    text = chance.choice(sorted(DATA.glob("*.yaml"))).read_text()
    if chance.random() < 0.7:
        places = list(re.finditer(r"(?<=: )\d+(?:\.\d+)?(?=[,}\n])", text))
        place = chance.choice(places)
        text = f"{text[: place.start()]}{float(place[0]) * 10:g}{text[place.end() :]}"
    try:
        found = read_published(text, "x.yaml")
    except SpecError:  # the figure was one that must have another form
        return random_document(chance, path)
    write_published(path, text, found, {"version": "0", "created": "2026-01-01T00:00:00+00:00"}, clock())
    return path


OTHERS = {
    "trace": random_trace,
    "gaps": partial(random_trace, gaps=True),
    "environment": random_environment,
    "waits": random_waits,
    "workflows": random_workflows,
    "document": random_document,
}
