"""Metadata rates beside a bare loop of the same calls: empty files on tmpfs, created, looked at and removed.

`rows` gives the table's rows for `bench/results.md`; run by itself, this file prints them.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from cost import Places
from ratios import spread
from sides import METADATA, metadata_job

FLOOR = Path(__file__).parent / "floors" / "metadata.c"
FILES = 10_000
PASSES = 5
RUNTIME_NS = 500_000_000  # about as many passes of ours
GOAL = 0.95
MEMORY = Path("/dev/shm")

_ONE_TRIAL = """
import json, sys
from leadline import _core
summary = _core.run_trial(sys.argv[1], sys.argv[2])
assert summary["state"] == "complete", summary["error"]
print(json.dumps(summary["directions"]))
"""


@dataclass(frozen=True)
class Phase:
    """All passes of one operation."""

    operations: int
    elapsed_ns: int
    cpu_ns: int

    @property
    def per_s(self) -> float:
        """Operations per second."""
        return self.operations * 1e9 / self.elapsed_ns

    @property
    def per_cpu_s(self) -> float:
        """Operations per second of processor time."""
        return self.operations * 1e9 / self.cpu_ns


Phases = dict[str, Phase]


@dataclass(frozen=True)
class MetadataRow:
    """One operation: median rates in 1/s, and medians of the ratio leadline/floor over interleaved pairs.

    `ratio` is of operations per second of processor time, which other load on the machine changes less than
    `elapsed_ratio`; `low` and `high` are its interval.
    """

    operation: str
    leadline_per_s: float
    floor_per_s: float
    ratio: float
    low: float
    high: float
    elapsed_ratio: float
    goal: float = GOAL


def rows(runs: int = 21, files: int = FILES, cpu: int | None = None) -> list[MetadataRow]:
    """Interleaved runs of some passes each, on one pinned CPU (the last that this process may use)."""
    chosen = max(os.sched_getaffinity(0)) if cpu is None else cpu
    with _workspace() as place:
        floor = place / "floor"
        subprocess.run(["cc", "-O2", "-o", str(floor), str(FLOOR)], check=True, timeout=60)
        pairs = []
        for run in range(runs):
            both = [_leadline, _floor] if run % 2 == 0 else [_floor, _leadline]
            found = {measure: measure(place, floor, files, chosen) for measure in both}
            pairs.append((found[_leadline], found[_floor]))
    return [_row(name, pairs) for name in METADATA]


def _row(name: str, pairs: list[tuple[Phases, Phases]]) -> MetadataRow:
    ratios = [ours[name].per_cpu_s / floor[name].per_cpu_s for ours, floor in pairs]
    found = spread(ratios)
    elapsed = statistics.median(ours[name].per_s / floor[name].per_s for ours, floor in pairs)
    ours, floor = (statistics.median(pair[side][name].per_s for pair in pairs) for side in (0, 1))
    return MetadataRow(name, ours, floor, found.median, found.low, found.high, elapsed)


@contextmanager
def _workspace() -> Iterator[Path]:
    place = Path(tempfile.mkdtemp(prefix="leadline-bench-", dir=MEMORY))
    try:
        yield place
    finally:
        shutil.rmtree(place)


def _leadline(place: Path, _floor: Path, files: int, cpu: int) -> Phases:
    job = metadata_job(place, files, time_based=True, runtime_ns=RUNTIME_NS)
    command = [sys.executable, "-c", _ONE_TRIAL, json.dumps(job), str(place / "record")]
    lines = _run(command, cpu).splitlines()
    (place / "files.0").rmdir()
    found = json.loads(lines[-1])
    return {name: Phase(p["operations"], p["elapsed_ns"], p["cpu_ns"]) for name, p in found.items()}


def _floor(place: Path, floor: Path, files: int, cpu: int) -> Phases:
    directory = place / "bare"
    directory.mkdir()
    printed = _run([str(floor), str(directory), str(files), str(PASSES)], cpu)
    directory.rmdir()
    lines = [line.split() for line in printed.splitlines()]
    return {name: Phase(files * PASSES, int(elapsed), int(on_cpu)) for name, elapsed, on_cpu in lines}


def _run(command: list[str], cpu: int) -> str:
    pinned = ["taskset", "--cpu-list", str(cpu), *command]
    return subprocess.run(pinned, check=True, capture_output=True, text=True, timeout=120).stdout


def metadata(places: Places) -> list[str]:
    """The section of results.md."""
    return [
        "",
        "## Metadata",
        "",
        f"{FILES:,} empty files on tmpfs: leadline over a bare loop of the same calls in C, by CPU time.",
        "",
        as_markdown(rows(places.rounds(41))),
        "",
    ]


def as_markdown(found: list[MetadataRow]) -> str:
    """The table, with the verdict against its goal."""
    lines = [
        "| operation | leadline 1/s | bare loop 1/s | CPU ratio | interval | elapsed | goal | met |",
        "| --- | ---: | ---: | ---: | --- | ---: | ---: | --- |",
    ]
    for row in found:
        met = "met" if row.low >= row.goal else "**missed**" if row.high < row.goal else "undecided"
        lines.append(
            f"| {row.operation} | {row.leadline_per_s:,.0f} | {row.floor_per_s:,.0f} | {row.ratio:.3f} "
            f"| {row.low:.3f} to {row.high:.3f} | {row.elapsed_ratio:.3f} | {row.goal} | {met} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    sys.stdout.write(as_markdown(rows()) + "\n")
