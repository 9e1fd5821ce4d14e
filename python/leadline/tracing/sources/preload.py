"""The LD_PRELOAD tracer from Python: its library, which programs load it, and its logs as tables of a trace.

The library records in the traced process (`crates/tracer`), one log a process; `_core` decodes the logs.
"""

from __future__ import annotations

import json
import os
import platform
import stat
import struct
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import leadline
from leadline.errors import UsageError
from leadline.observe.reading import offset_ns
from leadline.tracing.sources.lives import SeenEnd, kernel_start, with_last_seen
from leadline.tracing.tables import (
    ProcessRow,
    TraceLatencyRow,
    TraceTables,
    files_schema,
    seconds_json,
    segments_schema,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    import pyarrow as pa

    from leadline.tracing.sources.lives import SeenEnd
    from leadline.tracing.tables import TraceTables


MODULES = ("POSIX", "STDIO")
NULL = -(2**63)
EXITED, EXECUTED = 1, 2


def tables(
    paths: Sequence[str], *, started_unix_ns: int, copy: int, ends: Mapping[str, SeenEnd] | None = None
) -> TraceTables:
    """The logs at `paths` as one trial's tables, the processes in the order in which they began.

    `ends` is what was seen of the ends of processes from outside, by the names of their logs.
    """
    from leadline import _core

    decoded = _core.read_trace_logs(list(paths), started_unix_ns)
    entries = decoded["processes"]
    order = sorted(range(len(entries)), key=lambda place: entries[place]["started_unix_ns"])
    number = {place: process for process, place in enumerate(order)}
    in_order = [entries[place] for place in order]
    families = _families(in_order)
    rows = tuple(
        _process(entry, family, _seen(entry, ends or {}), started_unix_ns=started_unix_ns, copy=copy)
        for entry, family in zip(in_order, families, strict=True)
    )
    found = TraceTables(
        mode="preload",
        processes=rows,
        files=_files(decoded["files"], number, copy),
        latency=_latencies(in_order, copy),
        segments=_segments(decoded["segments"], number, copy),
        source="leadline's LD_PRELOAD tracer",
        warnings=_warnings(decoded["unreadable"], in_order),
    )
    return with_last_seen(found)


@dataclass(frozen=True)
class _Family:
    """A process image among the others of its trial; `continued` is when the next began in its pid."""

    process: int
    parent: int | None
    continued: int | None
    started: int  # unix ns: of its exec or fork, where the tracer's own begin was later


def _families(entries: list[dict[str, Any]]) -> list[_Family]:
    """A parent is the image that ran before in this pid (it called exec), else the parent's image of then."""
    latest: dict[int, int] = {}
    parents: list[int | None] = []
    started: list[int] = []
    continued: list[int | None] = [None] * len(entries)
    booted_ns = offset_ns(time.CLOCK_BOOTTIME)
    for process, entry in enumerate(entries):
        before = latest.get(entry["pid"])
        if before is not None and entries[before]["kernel_start"] == entry["kernel_start"]:
            started.append(_executed(entries[before], entry))
            continued[before] = started[-1]
            parents.append(before)
        else:
            parent = latest.get(entry["parent_pid"])
            parents.append(parent)
            started.append(_forked(entry, booted_ns, 0 if parent is None else started[parent]))
        latest[entry["pid"]] = process
    return [
        _Family(process, parent, continued[process], started[process])
        for process, parent in enumerate(parents)
    ]


def _executed(before: dict[str, Any], entry: dict[str, Any]) -> int:
    """When an image began: at the exec, for its libraries are loaded before its log begins."""
    ended = before["ended_unix_ns"] if before["end_kind"] == EXECUTED else None
    begun = int(entry["started_unix_ns"])
    return begun if ended is None else min(int(ended), begun)


def _forked(entry: dict[str, Any], booted_ns: int, parent_ns: int) -> int:
    """When a process began, by the end of the kernel's tick of then; never before its parent did."""
    begun = int(entry["started_unix_ns"])
    if not entry["kernel_start"]:
        return begun
    ticks_ns = (int(entry["kernel_start"]) + 1) * 1_000_000_000 // int(os.sysconf("SC_CLK_TCK"))
    return min(begun, max(booted_ns + ticks_ns, parent_ns))


def _seen(entry: dict[str, Any], ends: Mapping[str, SeenEnd]) -> SeenEnd | None:
    """What was seen of the end of this process, and of no other of its number (one in another namespace)."""
    seen = ends.get(f"{entry['pid']}-{entry['started_unix_ns']}")
    if seen is None or seen.kernel_start not in (None, entry["kernel_start"]):
        return None
    return seen


def _process(
    entry: dict[str, Any], family: _Family, seen: SeenEnd | None, *, started_unix_ns: int, copy: int
) -> ProcessRow:
    end, status, ended = _end(entry, family, seen)
    unseen_read, unseen_written = entry["unseen"] or (None, None)
    return ProcessRow(
        copy=copy,
        process=family.process,
        parent=family.parent,
        pid=entry["pid"],
        executable=entry["executable"],
        command=json.dumps(entry["arguments"]),
        mode="preload",
        # One that waited to become the command began with the trial.
        started_ns=max(family.started, min(started_unix_ns, entry["started_unix_ns"])) - started_unix_ns,
        ended_ns=None if ended is None else ended - started_unix_ns,
        end=end,
        status=status,
        threads=entry["threads"],
        bytes_read=entry["bytes_read"],
        bytes_written=entry["bytes_written"],
        calls=json.dumps(entry["calls"]),
        seconds=seconds_json(entry["seconds"], unseen="io_uring" in entry["notes"]),
        lost=json.dumps(entry["lost"]),
        notes=json.dumps(entry["notes"]),
        unseen_read=unseen_read,
        unseen_written=unseen_written,
        tracer_ns=entry["own_ns"],
    )


def _end(entry: dict[str, Any], family: _Family, seen: SeenEnd | None) -> tuple[str, int | None, int | None]:
    """How and when it ended: by its own word, by the next image of its pid, or as others saw it."""
    kind, ended = entry["end_kind"], entry["ended_unix_ns"]
    if kind == EXITED:
        return "exit", entry["end_status"], ended
    if kind == EXECUTED or family.continued is not None:
        return "exec", None, ended if ended is not None else family.continued
    if seen is not None:
        return *seen.end, max(seen.ended_unix_ns, entry["started_unix_ns"])
    if entry["kernel_start"] and entry["kernel_start"] == kernel_start(entry["pid"]):
        return "running", None, None
    return "unknown", None, None


def _warnings(unreadable: list[tuple[str, str]], entries: list[dict[str, Any]]) -> tuple[str, ...]:
    warnings = [f"{path}: {reason}; nothing of this process is counted" for path, reason in unreadable]
    if not entries and not unreadable:
        warnings.append("no process wrote a log: nothing is known, which is not the same as no I/O")
    cut = sum("record truncated" in entry["notes"] for entry in entries)
    if cut:
        warnings.append(f"the records of {cut} processes are incomplete: counts are lower bounds")
    return tuple(warnings)


def _latencies(entries: list[dict[str, Any]], copy: int) -> tuple[TraceLatencyRow, ...]:
    return tuple(
        TraceLatencyRow(copy, process, kind, operations, histogram)
        for process, entry in enumerate(entries)
        for kind, (operations, histogram) in entry["latencies"].items()
    )


def _files(decoded: dict[str, Any], number: dict[int, int], copy: int) -> pa.Table:
    import numpy as np
    import pyarrow as pa

    files = np.frombuffer(decoded["file"], "<i4")
    paths = pa.array(decoded["paths"], pa.string())
    modules = pa.array(MODULES, pa.string()).take(pa.array(np.frombuffer(decoded["module"], "u1")))
    columns: dict[str, Any] = {
        "copy": np.full(decoded["rows"], copy, np.int32),
        "process": _renumbered(decoded["process"], number),
        "file": files,
        "module": modules,
        "path": paths.take(pa.array(files)),
    }
    schema = files_schema()
    for field in schema:
        if field.name not in columns:
            columns[field.name] = _column(decoded[field.name], field)
    return pa.table(columns, schema=schema)


def _segments(decoded: dict[str, Any], number: dict[int, int], copy: int) -> pa.Table | None:
    if not decoded["rows"]:
        return None
    import numpy as np
    import pyarrow as pa

    from leadline import _core

    calls = pa.DictionaryArray.from_arrays(
        pa.array(np.frombuffer(decoded["call"], "<i2")), pa.array(_core.traced_calls(), pa.string())
    )
    files = np.frombuffer(decoded["file"], "<i4")
    schema = segments_schema()
    columns: dict[str, Any] = {
        "copy": np.full(decoded["rows"], copy, np.int32),
        "process": _renumbered(decoded["process"], number),
        "thread": np.frombuffer(decoded["thread"], "<i4"),
        "file": pa.array(files, mask=files < 0),
        "call": calls,
    }
    for field in schema:
        if field.name not in columns:
            columns[field.name] = _column(decoded[field.name], field)
    return pa.table(columns, schema=schema)


def _renumbered(places: bytes, number: dict[int, int]) -> np.ndarray[Any, Any]:
    import numpy as np

    by_place = np.array([number[place] for place in range(len(number))], np.int32)
    return np.take(by_place, np.frombuffer(places, "<i4"))


def _column(values: bytes, field: pa.Field) -> pa.Array:
    """One column without copying its values; the marks of nothing become null."""
    import numpy as np
    import pyarrow as pa

    if pa.types.is_floating(field.type):
        numbers = np.frombuffer(values, "<f8")
        return pa.array(numbers, mask=np.isnan(numbers))
    integers = np.frombuffer(values, "<i8")
    return pa.array(integers, mask=integers == NULL) if field.nullable else pa.array(integers)


ELF_MAGIC = b"\x7fELF"
PROGRAM_INTERPRETER = 3  # PT_INTERP
MACHINES = {0x3E: "x86_64", 0xB7: "aarch64", 0x03: "i386", 0x28: "arm", 0xF3: "riscv64"}
SCRIPTS_DEEP = 4  # the kernel follows as many interpreters


def reason_not_to_preload(executable: Path, *, depth: int = 0) -> str | None:
    """Why LD_PRELOAD has no effect on `executable`, in words; None where it has."""
    try:
        status = executable.stat()
        with executable.open("rb") as file:
            head = file.read(4096)
    except OSError as error:
        return f"{executable} cannot be read: {error.strerror}"
    if head.startswith(b"#!"):
        words = head[2:].split(b"\n", 1)[0].split()
        if not words or depth >= SCRIPTS_DEEP:
            return f"{executable} names no interpreter"
        return reason_not_to_preload(Path(os.fsdecode(words[0])), depth=depth + 1)
    return _privileges(executable, status) or _format(executable, head)


def _privileges(executable: Path, status: os.stat_result) -> str | None:
    """What makes the loader ignore LD_PRELOAD, or most of it: the program gains rights."""
    if status.st_mode & stat.S_ISUID and status.st_uid != os.geteuid():
        return f"{executable} is setuid: the loader ignores LD_PRELOAD"
    if status.st_mode & stat.S_ISGID and status.st_mode & stat.S_IXGRP and status.st_gid != os.getegid():
        return f"{executable} is setgid: the loader ignores LD_PRELOAD"
    try:
        capable = bool(os.getxattr(executable, "security.capability"))
    except OSError:
        capable = False
    if capable and os.geteuid() != 0:
        return f"{executable} has file capabilities: the loader ignores LD_PRELOAD"
    return None


def _format(executable: Path, head: bytes) -> str | None:
    if not head.startswith(ELF_MAGIC):
        return None if not head or _is_text(head) else f"{executable} is no ELF program"
    if len(head) < 64 or head[4] != 2 or head[5] != 1:
        return f"{executable} is no 64-bit little-endian program"
    machine = struct.unpack_from("<H", head, 18)[0]
    words = MACHINES.get(machine, f"machine {machine}")
    if words != platform.machine():
        return f"{executable} is for {words}: the tracer's library is for {platform.machine()}"
    interpreter = _interpreter(executable, head)
    if interpreter is None:
        return f"{executable} is statically linked: no loader, so no LD_PRELOAD"
    if "musl" in Path(interpreter).name:
        return f"{executable} uses musl ({interpreter}): the tracer's library is for glibc"
    return None


def _is_text(head: bytes) -> bool:
    """A script without `#!`, which shells run themselves."""
    return b"\0" not in head[:256]


def _interpreter(executable: Path, head: bytes) -> str | None:
    """The loader that an ELF file names; None in a static one."""
    table, entry_bytes, entries = (
        struct.unpack_from("<Q", head, 32)[0],
        *struct.unpack_from("<HH", head, 54),
    )
    with executable.open("rb") as file:
        file.seek(table)
        headers = file.read(entry_bytes * entries)
        for number in range(len(headers) // max(entry_bytes, 56)):
            kind, _, offset, _, _, length = struct.unpack_from("<IIQQQQ", headers, number * entry_bytes)
            if kind == PROGRAM_INTERPRETER:
                file.seek(offset)
                return os.fsdecode(file.read(min(length, 4096)).rstrip(b"\0"))
    return None


LIBRARY = Path(leadline.__file__).resolve().parent / "lib" / "libleadline_tracer.so"
LOG_SUFFIX = ".lltrace"


def library() -> Path:
    """The tracer's shared library, as packaged."""
    if not LIBRARY.is_file():
        raise UsageError(
            f"the tracer's library is missing: {LIBRARY}",
            "install leadline from a wheel for x86-64 Linux, or run `make setup` in its source tree",
        )
    return LIBRARY


def environment(
    directory: Path, *, segments_bytes: int | None, memory_bytes: int, inherited: Mapping[str, str]
) -> dict[str, str]:
    """`inherited` with what makes a program load the tracer and write its logs into `directory`.

    A library that the program preloads already stays first.
    """
    from leadline import _core

    before = inherited.get("LD_PRELOAD", "")
    return {
        **inherited,
        "LD_PRELOAD": f"{before}:{library()}" if before else str(library()),
        "LEADLINE_TRACE_DIR": str(directory.resolve()),
        "LEADLINE_TRACE_MEMORY": str(memory_bytes),
        "LEADLINE_TRACE_SEGMENTS": str(segments_bytes or 0),
        "LEADLINE_TRACE_TICKS": str(_core.counter_ticks_per_second()),
    }


def cannot_follow(executable: Path) -> str | None:
    """Why the tracer cannot be loaded into `executable`, in words; None where it can."""
    from leadline.observe.hang_guard import in_fork
    from leadline.tracing.sources.preload import reason_not_to_preload

    return in_fork(lambda _: reason_not_to_preload(executable), str(executable))


def read_logs(
    directory: Path, *, started_unix_ns: int, copy: int = 0, ends: Mapping[str, SeenEnd] | None = None
) -> TraceTables:
    """All logs of one trial, as tables. A log that cannot be read is a warning, never a silent gap.

    `ends` is what was seen of the ends of processes from outside, by the names of their logs.
    """
    from leadline.tracing.sources.preload import tables

    paths = sorted(str(path) for path in directory.iterdir() if path.suffix == LOG_SUFFIX)
    return tables(paths, started_unix_ns=started_unix_ns, copy=copy, ends=ends)
