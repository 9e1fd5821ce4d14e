"""What `show` and `report` of a large trace cost: 100,000 files, 10 million segments, a million files.

`python bench/trace_report.py [--quick]` makes the tables, runs both in processes of their own, and says what
they took beside the bounds that are promised, 3 s and 500 MiB, 20 s and 1 GiB, and how `show` grows.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from growth import exponent
from leadline.tracing.store import create_trace_result
from leadline.tracing.tables import ProcessRow, TraceTables, files_schema, segments_schema

_CALLS = ("pread64", "pwrite64", "openat", "close", "newfstatat")
_SECONDS = 60


@dataclass(frozen=True)
class Case:
    """A size of trace with what its report may cost; None where that is only to be told."""

    name: str
    files: int
    segments: int
    seconds_max: float | None
    mib_max: int | None


CASES = (
    Case("100,000 files", 100_000, 0, 3.0, 500),
    Case("10 million segments", 1_000, 10_000_000, 20.0, 1024),
    Case("1 million files", 1_000_000, 0, None, None),
)
_FILES_GROWN = (10_000, 100_000, 1_000_000)
GROWN = f"{_FILES_GROWN[0]:,} to {_FILES_GROWN[-1]:,} files"
Cost = Callable[[list[str]], tuple[float, float, float]]  # of a command: seconds, CPU seconds, MiB


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
    """Store the trace of a case; the same at every run.

    A process of its own does it: the kernel counts the memory of whoever starts a command as the command's.
    """
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as other:
        return other.submit(_made, case, directory).result()


def _made(case: Case, directory: Path) -> Path:
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


def cost_of(arguments: list[str]) -> tuple[float, float, float]:
    """Seconds, CPU seconds and the most MiB of one `leadline` process."""
    began = time.monotonic()
    command = [sys.executable, "-m", "leadline", *arguments]
    silent = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
    pid = os.posix_spawn(sys.executable, command, os.environ, file_actions=silent)
    _, status, usage = os.wait4(pid, 0)
    if status != 0:
        raise SystemExit(f"leadline {' '.join(arguments)} failed: {os.waitstatus_to_exitcode(status)}")
    return time.monotonic() - began, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def growth(directory: Path, cost: Cost = cost_of) -> list[str]:
    """By which power of the files the seconds, CPU seconds and MiB of `show` grow, from 10,000 to a million.

    What a trace of one file costs is taken off: it is the program's start, which does not grow. Each cost is
    the least of three, as others' work only adds to it.
    """
    costs = []
    for files in (1, *_FILES_GROWN):
        with tempfile.TemporaryDirectory(dir=directory) as scratch:
            path = make(Case(f"{files} files", files, 0, None, None), Path(scratch))
            costs.append(
                [min(column) for column in zip(*(cost(["show", str(path)]) for _ in range(3)), strict=True)]
            )
    start, *grown = costs
    return [_power([one[place] - start[place] for one in grown]) for place in range(len(start))]


def _power(costs: list[float]) -> str:
    """In words; on a busy host a small trace may seem to cost no more than the start."""
    return f"files^{exponent(_FILES_GROWN, costs):.2f}" if min(costs) > 0 else "not told from the start"


def _median(runs: list[tuple[float, float, float]]) -> list[float]:
    return [sorted(column)[len(runs) // 2] for column in zip(*runs, strict=True)]


def table(*, quick: bool = False) -> str:
    """The costs as a Markdown table."""
    lines = [
        "| trace | command | seconds | CPU seconds | MiB | bound |",
        "| --- | --- | ---: | ---: | ---: | --- |",
    ]
    with tempfile.TemporaryDirectory(prefix="leadline-bench-") as scratch:
        page = Path(scratch) / "report.html"
        for case in CASES[: 1 if quick else None]:
            path = make(case, Path(scratch))
            bound = "" if case.seconds_max is None else f"{case.seconds_max:g} s, {case.mib_max} MiB"
            for command, *more in (("show",), ("report", "-o", str(page))):
                words = [command, str(path), *more]
                cost_of(words)  # the first reads programs from the disk
                wall, cpu, mib = _median([cost_of(words) for _ in range(3)])
                lines.append(f"| {case.name} | {command} | {wall:.2f} | {cpu:.2f} | {mib:.0f} | {bound} |")
            lines.append(f"| {case.name} | the page: {page.stat().st_size / 1e6:.1f} MB | | | | |")
        if not quick:
            powers = " | ".join(growth(Path(scratch)))
            lines.append(f"| {GROWN} | show, beyond its start | {powers} | |")
    return "\n".join(lines)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="What show and report of a large trace cost.")
    parser.add_argument("--quick", action="store_true", help="only the smaller trace")
    sys.stdout.write(f"{table(quick=parser.parse_args().quick)}\n")


if __name__ == "__main__":
    main()
