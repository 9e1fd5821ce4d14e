"""Runs a subject of asynchronous I/O under a tracer: what it says of its requests, and what the tracer."""

from __future__ import annotations

import os
import subprocess
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import bpf_support
import pytest

from built import PROGRAM, built
from leadline.tracing.sources import preload
from leadline.tracing.tables import TraceTables
from leadline.tracing.times import direction
from trace_truth import PROGRAMS, Counts, compiled_c, printed, under_strace

_DEADLINE_S = 60
_SEGMENTS_BYTES = 64 << 20
PARTS = 8
FILE_BYTES = PARTS * 3 * 4096

WITH_HEADERS = pytest.mark.skipif(
    not Path("/usr/include/libaio.h").exists() or not Path("/usr/include/liburing.h").exists(),
    reason="no headers of libaio and liburing (Debian: libaio-dev, liburing-dev)",
)

# Of read or written, at an offset, so many bytes.
Request = tuple[str, int, int]


@dataclass(frozen=True)
class Said:
    """A subject's own account, and what the kernel counted meanwhile as read from and written to storage."""

    counts: Counts
    requests: Counter[Request]
    kernel_read: int
    kernel_wrote: int


def subject(interface: str, *words: str) -> list[str]:
    """The command of the subject; its interface `own_libaio` is libaio by another library of that name."""
    library = str(_own_libaio()) if interface == "own_libaio" else "-laio"
    program = compiled_c("-Wl,--no-as-needed", library, "-luring", subject="requests")
    return [str(program), interface.removeprefix("own_"), *words]


def _own_libaio() -> Path:
    source = PROGRAMS / "own_libaio.c"
    command = ["gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", PROGRAM, str(source)]
    return built("own_libaio", [source], command)


def said(text: str) -> Said:
    """The account that the subject prints."""
    lines = [line.split() for line in text.splitlines()[:-1]]
    counted = {words[0]: int(words[1]) for words in lines if words[0].startswith("kernel")}
    moved = Counter((words[0], int(words[1]), int(words[2])) for words in lines if len(words) == 3)
    return Said(printed(text), moved, counted["kernel_read"], counted["kernel_wrote"])


def traced(via: str, command: Sequence[str], directory: Path) -> tuple[str, TraceTables]:
    """Standard output of a command in `directory`, and the tables of a tracer that followed it."""
    if via == "strace":
        return under_strace(command, directory)
    logs = directory.with_name(f"{directory.name}.{via}")
    logs.mkdir()
    started_unix_ns = time.time_ns()
    if via == "bpf":
        with (logs / "said").open("w+") as text:
            found = bpf_support.trace(command, segments_bytes=_SEGMENTS_BYTES, cwd=directory, stdout=text)
        return (logs / "said").read_text(), found
    environment = preload.environment(
        logs, segments_bytes=_SEGMENTS_BYTES, memory_bytes=64 << 20, inherited=os.environ
    )
    done = subprocess.run(
        list(command), cwd=directory, env=environment, capture_output=True, text=True, timeout=_DEADLINE_S,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout, preload.read_logs(logs, started_unix_ns=started_unix_ns)


def requests_of(tables: TraceTables, path: Path) -> Counter[Request]:
    """What the list of calls says was moved of a file."""
    found: Counter[Request] = Counter()
    for row in segments_of(tables, path):
        way = direction(str(row["call"]))
        if way is not None:
            found[way, int(str(row["offset"])), int(str(row["result"]))] += 1
    return found


def segments_of(tables: TraceTables, path: Path) -> list[dict[str, object]]:
    """The list of calls on one file."""
    (file,) = {row["file"] for row in tables.files.to_pylist() if row["path"] == str(path)}
    assert tables.segments is not None
    return [row for row in tables.segments.to_pylist() if row["file"] == file]
