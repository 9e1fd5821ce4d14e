"""What a report of a large trace costs: 100,000 files, and 10 million segments, in time and memory.

`python bench/trace_report.py [--quick]` makes the tables, renders the page in a process of its own, and says
what it took beside the bounds that are promised: 3 s and 500 MiB, 20 s and 1 GiB.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from leadline.tracing.store import create_trace_result
from leadline.tracing.tables import ProcessRow, TraceTables, files_schema, segments_schema

_CALLS = ("pread64", "pwrite64", "openat", "close", "newfstatat")
_SECONDS = 60


@dataclass(frozen=True)
class Case:
    """A size of trace with what its report may cost."""

    name: str
    files: int
    segments: int
    seconds_max: float
    mib_max: int


CASES = (
    Case("100,000 files", 100_000, 0, 3.0, 500),
    Case("10 million segments", 1_000, 10_000_000, 20.0, 1024),
)


def files_table(count: int, chance: np.random.Generator) -> pa.Table:
    """Files with plausible counters, some of each kind that a rule looks for."""
    columns: dict[str, Any] = {}
    for field in files_schema():
        if field.name in ("copy", "process"):
            columns[field.name] = np.zeros(count, np.int32)
        elif field.name == "file":
            columns[field.name] = np.arange(count, dtype=np.int32)
        elif field.name == "module":
            columns[field.name] = ["POSIX"] * count
        elif field.name == "path":
            columns[field.name] = [f"/data/run-{n % 97}/part-{n:06d}.root" for n in range(count)]
        elif pa.types.is_floating(field.type):
            columns[field.name] = chance.exponential(1e-3, count)
        else:
            columns[field.name] = chance.integers(0, 1 << 14, count)
    return pa.table(columns, schema=files_schema())


def segments_table(count: int, files: int, chance: np.random.Generator) -> pa.Table | None:
    """Calls spread over a minute and eight processes."""
    if not count:
        return None
    calls = pa.DictionaryArray.from_arrays(
        chance.integers(0, len(_CALLS), count, dtype=np.int16), pa.array(_CALLS, pa.string())
    )
    columns = {
        "copy": np.zeros(count, np.int32),
        "process": chance.integers(0, 8, count, dtype=np.int32),
        "thread": np.full(count, 1000, np.int32),
        "file": chance.integers(0, files, count, dtype=np.int32),
        "call": calls,
        "offset": chance.integers(0, 1 << 30, count),
        "length": np.full(count, 65536),
        "result": np.full(count, 65536),
        "start_ns": np.sort(chance.integers(0, _SECONDS * 10**9, count)),
        "duration_ns": chance.integers(1_000, 1_000_000, count),
    }
    return pa.table(columns, schema=segments_schema())


def processes() -> tuple[ProcessRow, ...]:
    """Eight processes that lived through the minute."""
    return tuple(
        ProcessRow(
            copy=0,
            process=number,
            parent=None,
            pid=1000 + number,
            executable="/usr/bin/analyse",
            command="analyse",
            mode="preload",
            started_ns=0,
            ended_ns=_SECONDS * 10**9,
            end="exit",
            status=0,
            threads=4,
            bytes_read=1 << 33,
            bytes_written=1 << 30,
            calls='{"pread64": 1000000}',
            seconds='{"read": 10.0, "write": 5.0, "meta": 2.0, "sync": 0.5}',
            lost="{}",
            notes="[]",
        )
        for number in range(8)
    )


def make(case: Case, directory: Path) -> Path:
    """Store the trace of a case; the same at every run."""
    chance = np.random.default_rng(7)
    tables = TraceTables(
        mode="preload",
        processes=processes(),
        files=files_table(case.files, chance),
        segments=segments_table(case.segments, case.files, chance),
        extra={"wall_s": float(_SECONDS)},
    )
    path = directory / f"trace-{case.files}-{case.segments}"
    create_trace_result(path, {"t0001": tables}, title=case.name, details={}, now_ns=time.time_ns)
    return path


def cost_of(arguments: list[str]) -> tuple[float, float, int]:
    """Seconds, CPU seconds and the most MiB of one `leadline` process."""
    began = time.monotonic()
    pid = os.posix_spawn(sys.executable, [sys.executable, "-m", "leadline", *arguments], os.environ)
    _, status, usage = os.wait4(pid, 0)
    if status != 0:
        raise SystemExit(f"leadline {' '.join(arguments)} failed: {os.waitstatus_to_exitcode(status)}")
    return time.monotonic() - began, usage.ru_utime + usage.ru_stime, usage.ru_maxrss >> 10


def table(*, quick: bool = False) -> str:
    """The costs as a Markdown table."""
    lines = [
        "| trace | seconds | CPU seconds | MiB | bound |",
        "| --- | ---: | ---: | ---: | --- |",
    ]
    with tempfile.TemporaryDirectory(prefix="leadline-bench-") as directory:
        for case in CASES[: 1 if quick else None]:
            path = make(case, Path(directory))
            page = Path(directory) / "report.html"
            cost_of(["report", str(path), "-o", str(page)])  # the first reads programs from the disk
            runs = [cost_of(["report", str(path), "-o", str(page)]) for _ in range(3)]
            wall, cpu, mib = (sorted(column)[1] for column in zip(*runs, strict=True))
            bound = f"{case.seconds_max:g} s, {case.mib_max} MiB"
            lines.append(f"| {case.name} | {wall:.2f} | {cpu:.2f} | {mib} | {bound} |")
    return "\n".join(lines)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="What a report of a large trace costs.")
    parser.add_argument("--quick", action="store_true", help="only the smaller trace")
    sys.stdout.write(f"{table(quick=parser.parse_args().quick)}\n")


if __name__ == "__main__":
    main()
