"""What `show`, `report` and `trend` cost at scale: hundreds and thousands of trials, large traces, results.

`python bench/run.py --only reports` makes the section alone.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from cost import measured_study, program_environment
from harness import PROGRAM, exponent, spread
from leadline.store.bundles import bundle_trials
from leadline.store.reader import open_result
from leadline.tracing.store import create_trace_result
from leadline.tracing.tables import ProcessRow, TraceTables, files_schema, segments_schema
from many_results import copy_results
from sides import Places

STUDY = """format: leadline.study/1
limits: {reserve: 1M}
defaults: {size: 1M, runtime: 100ms, time_based: true, rw: randread, engine: psync, direct: false}
works:
  small: {bs: 4k}
  middle: {bs: 16k}
  large: {bs: 64k}
blocks: BLOCKS
"""
TARGETS = 11
BLOCKS = 7  # by 11 targets and 3 works: 231 trials
MIDDLE, MANY_TRIALS = 4, 5_000  # so many times as many, and so many at least
PAGE_LIMIT_MB = 5.0
RESULTS = 1_000  # of which `trend` is made
_CALLS = ("pread64", "pwrite64", "openat", "close", "newfstatat")
_SECONDS = 60
Limits = Mapping[str, float | None]
NOTES = """\
Seconds and CPU seconds of the whole process, Python's start included; the results lie in memory.
Goals are of seconds, and of MiB where two stand. More trials are those of the first row, block by
block again, each command once. Beyond its start: less what a trace of one file takes. Powers are
slopes of logarithms.

Commands:

    leadline show RESULT
    leadline report RESULT -o PAGE
    leadline trend '*.iops' RESULTS
"""


def reports(places: Places) -> Iterator[str]:
    """Each command in a process of its own, once to warm up and then as often as the rounds say."""
    yield from ["## Reports at scale", ""]
    yield from ["| of | command | s | CPU, s | MiB | at most | goal |", "|---|---|---|---|---|---|---|"]
    with tempfile.TemporaryDirectory(dir=places.memory) as name:
        scratch = Path(name)
        targets = {f"t{number}": scratch / f"target-{number}" for number in range(TARGETS)}
        for directory in targets.values():
            directory.mkdir()
        study = STUDY.replace("BLOCKS", str(1 if places.quick else BLOCKS))
        path = measured_study(study, targets, scratch)
        trials = len(list((path / "trials").iterdir()))
        yield from _rows(places, f"{trials} trials of {TARGETS} targets", path, {"show": 1.0, "report": 2.0})
        for case in CASES[: 1 if places.quick else None]:
            found = make(case, scratch)
            limits = {"show": case.seconds_max, "report": case.seconds_max}
            yield from _rows(places, case.name, found, limits, case.mib_max)
        if not places.quick:
            yield from _many_trials(places, path, scratch, trials)
            yield f"| {GROWN} | show, beyond its start | {' | '.join(growth(scratch))} | | |"
            (scratch / "many").mkdir()
            copy_results(path, scratch / "many", RESULTS, shift_at=RESULTS // 2)
            yield from _rows(places, f"{RESULTS:,} results", scratch / "many", {"trend": None, "list": None})
    yield from ["", *NOTES.splitlines(), ""]


def _many_trials(places: Places, path: Path, scratch: Path, trials: int) -> Iterator[str]:
    """Rows of the result grown, and the power of the number of trials by which CPU time grows."""
    sizes, costs = [trials], [_cost(["show", str(path)])[1]]
    every: dict[int, Limits] = {
        MIDDLE: {"show": None},
        -(-MANY_TRIALS // trials): {"show": 5.0, "report": None},
    }
    for times, limits in every.items():
        grown = grow(path, scratch / f"grown-{times}", times)
        sizes.append(len(list((grown / "trials").iterdir())))
        yield from _rows(places, f"{sizes[-1]} trials of {TARGETS} targets", grown, limits)
        costs.append(_cost(["show", str(grown)])[1])
    start = _cost(["--version"])[1]
    power = exponent(sizes, [cost - start for cost in costs])
    yield f"| {sizes[0]} to {sizes[-1]} trials | show, beyond --version | | trials^{power:.2f} | | | |"


def _rows(
    places: Places, what: str, path: Path, limits: Limits, mib_max: int | None = None, rounds: int = 5
) -> Iterator[str]:
    page = path.parent / "page.html"
    more = {"report": ("-o", str(page)), "trend": ()}
    for command, limit_s in limits.items():
        before = ("*.iops",) if command == "trend" else ()
        words = [command, *before, str(path), *more.get(command, ())]
        _cost(words)  # the first reads programs from the disk
        costs = [_cost(words) for _ in range(places.rounds(rounds))]
        wall, cpu, mib = (spread(column) for column in zip(*costs, strict=True))
        bound = "" if limit_s is None else f"{limit_s:g} s" + (f", {mib_max} MiB" if mib_max else "")
        verdict = ""
        if limit_s is not None:
            met = wall.high <= limit_s and (mib_max is None or mib.high <= mib_max)
            missed = wall.low > limit_s or (mib_max is not None and mib.low > mib_max)
            verdict = "met" if met else f"{'**missed**' if missed else 'undecided'}: {_loading(words)}"
        taken = f"{wall.words(2)} | {cpu.words(2)} | {mib.words(0)}"
        yield f"| {what} | {command} | {taken} | {bound} | {verdict} |"
    if page.exists():
        size_mb = page.stat().st_size / 1e6
        verdict = "met" if size_mb < PAGE_LIMIT_MB else "**missed**"
        yield f"| {what} | the page: {size_mb:.1f} MB | | | | {PAGE_LIMIT_MB:g} MB | {verdict} |"
        page.unlink()


def _cost(words: list[str]) -> tuple[float, float, float]:
    """Seconds, CPU seconds and MiB of one command; 3 says no more than that a cell is doubtful."""
    began = time.monotonic()
    silent = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
    pid = os.posix_spawn(PROGRAM[0], [*PROGRAM, *words], program_environment(), file_actions=silent)
    _, status, usage = os.wait4(pid, 0)
    if os.waitstatus_to_exitcode(status) not in (0, 3):
        raise RuntimeError(f"leadline {' '.join(words)} failed: {os.waitstatus_to_exitcode(status)}")
    return time.monotonic() - began, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def _loading(words: list[str]) -> str:
    """What of a command is loading modules, by one run more."""
    command = [sys.executable, "-X", "importtime", "-m", "leadline", *words]
    done = subprocess.run(
        command,
        check=False,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=program_environment(),
    )
    spent = [line.split(":")[1].split("|")[0] for line in done.stderr.splitlines() if "import time:" in line]
    return f"{sum(int(one) for one in spent if one.strip().isdigit()) / 1e6:.2f} s of it load modules"


def grow(source: Path, into: Path, times: int) -> Path:
    """The result with its blocks so many times one after another: the same rows as further trials."""
    manifest: dict[str, Any] = json.loads((source / "manifest.json").read_text())
    plan, events = manifest["plan"], (source / "events.jsonl").read_text().splitlines()
    planned, blocks = plan["trials"], plan["blocks"]
    finished = {
        event["trial"]: event for event in map(json.loads, events) if event["event"] == "trial_finished"
    }
    into.mkdir()
    for table in ("trials", "latency", "series"):
        (into / table).mkdir()
    trials, lines = [], [line for line in events if json.loads(line)["event"] != "study_finished"]
    for again in range(1, times):
        for one in planned:
            order = one["order"] + again * len(planned)
            trial = f"t{order:05}"
            changes = {"trial": trial, "order": order, "block": one["block"] + again * blocks}
            trials.append({**one, **changes, "id": trial})
            del trials[-1]["trial"]
            for table in ("trials", "latency", "series"):
                rows = pq.read_table(source / table / f"{one['id']}.parquet")
                pq.write_table(_changed(rows, changes), into / table / f"{trial}.parquet")
            lines.append(json.dumps({**finished[one["id"]], "trial": trial}))
    for table in ("trials", "latency", "series"):
        for file in (source / table).iterdir():
            (into / table / file.name).hardlink_to(file)
    plan |= {"trials": planned + trials, "blocks": blocks * times}
    (into / "manifest.json").write_text(json.dumps(manifest))
    (into / "events.jsonl").write_text("\n".join([*lines, events[-1]]) + "\n")
    bundle_trials(into, open_result(into).finished)  # as a run leaves them
    return into


def _changed(rows: pa.Table, changes: dict[str, Any]) -> pa.Table:
    for name, value in changes.items():
        place = rows.schema.get_field_index(name)
        if place >= 0:
            field = rows.schema.field(place)
            rows = rows.set_column(place, field, pa.array([value] * rows.num_rows, field.type))
    return rows


# -- traces --------------------------------------------------------------------------------------------


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


def growth(directory: Path) -> list[str]:
    """By which power of the files the seconds, CPU seconds and MiB of `show` grow, from 10,000 to a million.

    What a trace of one file costs is taken off: it is the program's start, which does not grow. Each cost is
    the least of three, as others' work only adds to it.
    """
    costs = []
    for files in (1, *_FILES_GROWN):
        with tempfile.TemporaryDirectory(dir=directory) as scratch:
            path = make(Case(f"{files} files", files, 0, None, None), Path(scratch))
            runs = [_cost(["show", str(path)]) for _ in range(3)]
            costs.append([min(column) for column in zip(*runs, strict=True)])
    start, *grown = costs
    return [_power([one[place] - start[place] for one in grown]) for place in range(len(start))]


def _power(costs: list[float]) -> str:
    """In words; on a busy host a small trace may seem to cost no more than the start."""
    return f"files^{exponent(_FILES_GROWN, costs):.2f}" if min(costs) > 0 else "not told from the start"
