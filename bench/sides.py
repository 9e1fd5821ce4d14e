"""What `make bench` compares, each one process on one pinned CPU: leadline's trial, fio and the bare loops.

And the tables in which they stand: rows with a goal, a verdict, and what was measured where it is not met.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any

from harness import ROOT, Spread, in_turns, spread

BARE = ROOT / "target" / "bench"
TRIAL = ROOT / "target" / "release" / "examples" / "trial"
SECOND_NS = 1_000_000_000
MIB = 1 << 20
DIRECT_BYTES, CACHED_BYTES = 512 * MIB, MIB
LIMIT_S = 120.0
METADATA = ("create", "stat", "unlink")
# fio's own switches for less work: no latencies but the sum, no map of blocks that were read.
TUNED = {"gtod_reduce": 1, "norandommap": 1}
_IO_CALLS = ("io_uring_enter", "pread64", "pwrite64", "read", "write", "io_submit", "io_getevents", "fsync")
_COUNTING: list[str] = []  # words before a command that is counted and not timed


@dataclass(frozen=True)
class Places:
    """Where files are made, the CPU that everything runs on, and how much is repeated."""

    disk: Path
    memory: Path
    cpu: int
    quick: bool

    def rounds(self, full: int) -> int:
        return 2 if self.quick else full


@dataclass(frozen=True)
class Sample:
    """One process: its work, and what it used (its children and the kernel's workers for it included).

    `switches` of context are those in which it waited, and those in which it was made to.
    """

    cpu_ns: int = 0
    kernel_ns: int = 0
    switches: int = 0
    operations: int = 0
    bytes: int = 0
    elapsed_ns: int = 0
    p50_ns: float = 0.0
    p99_ns: float = 0.0

    def beyond(self, short: Sample) -> Sample:
        """What this run has more than a short one; latencies are its own."""
        names = ("cpu_ns", "kernel_ns", "switches", "operations", "bytes", "elapsed_ns")
        return replace(self, **{name: getattr(self, name) - getattr(short, name) for name in names})


@dataclass(frozen=True)
class Side:
    """One of the things compared; `command` is what results.md prints, `counted` does little of the same."""

    name: str
    run: Callable[[], Sample] = field(repr=False)
    command: str
    counted: Side | None = field(default=None, repr=False)


def pinned(command: Sequence[str | Path], cpu: int) -> tuple[Sample, str]:
    """Runs to the end; returns what it used and standard output. Raises RuntimeError when it fails."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as errors:
        words = ["timeout", str(LIMIT_S), "taskset", "--cpu-list", str(cpu), *_COUNTING, *command]
        process = subprocess.Popen(words, stdout=out, stderr=errors, cwd=tempfile.gettempdir())
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        errors.seek(0)
        if process.returncode != 0:
            raise RuntimeError(f"{' '.join(map(str, command))}: {errors.read()[-500:]}")
        kernel_ns = int(usage.ru_stime * 1e9)
        switches = usage.ru_nvcsw + usage.ru_nivcsw
        return Sample(int(usage.ru_utime * 1e9) + kernel_ns, kernel_ns, switches), out.read()


def timed(cpu: int, directory: Path, lengths_s: tuple[float, float], **changes: Any) -> Side:
    """leadline, a long run less a short one."""
    runs = ({"time_based": True, "runtime_ns": int(seconds * SECOND_NS)} for seconds in lengths_s)
    return without_start(*(leadline(cpu, directory, **changes, **one) for one in runs))


def calls_each(side: Side) -> float | None:
    """System calls of I/O for each operation, of one run under strace; None where that does not work here.

    strace slows what it watches, so that rates and latencies of this run are no figures.
    """
    if shutil.which("strace") is None:
        return None
    with tempfile.NamedTemporaryFile("r") as table:
        _COUNTING[:] = ["strace", "-f", "-c", "-e", f"trace={','.join(_IO_CALLS)}", "-o", table.name]
        try:
            operations = (side.counted or side).run().operations
        except RuntimeError:
            return None
        finally:
            _COUNTING.clear()
        rows = [line.split() for line in table.read().splitlines()]
    counted = sum(int(row[3]) for row in rows if row and row[-1] in _IO_CALLS)
    return counted / operations if operations else None


def without_start(long: Side, short: Side, counted: Side | None = None) -> Side:
    """What a long run has more than a short one: start and end, which are in both, are out of it."""

    def run() -> Sample:
        less, more = short.run(), long.run()
        return more.beyond(less)

    return Side(long.name, run, long.command, counted or short)


def bare(name: str, cpu: int, *arguments: object, operations: int, block_bytes: int) -> Side:
    """A bare loop of `bench/floors`."""
    words = [str(argument) for argument in arguments]

    def run() -> Sample:
        used, _ = pinned([BARE / name, *words], cpu)
        return replace(used, operations=operations, bytes=operations * block_bytes)

    shown = [Path(word).name if word.startswith("/") else word for word in words]
    return Side("bare", run, " ".join([name, *shown]))


def job(directory: Path, **changes: Any) -> dict[str, Any]:
    """A job of the engine; `changes` in its own words. Batches are what a study's job has by default."""
    plain: dict[str, Any] = {
        "format": "leadline.job/1", "trial": "t0001", "directory": str(directory), "prefix": "data",
        "rw": "randread", "rwmixread": 50, "bs": 4096, "size": 1 << 28, "nrfiles": 1, "numjobs": 1,
        "iodepth": 1, "engine": "psync", "direct": False, "overwrite": False, "fsync": 0,
        "end_fsync": False, "time_based": False, "runtime_ns": 0, "ramp_time_ns": 0,
        "rate_bytes_per_s": None, "rate_iops": None, "arrival": "constant", "verify": False,
        "incompressible": True, "sqthread_poll": False, "seed": 7, "generation": 1,
        "interval_ns": SECOND_NS, "deadline_ns": 100 * SECOND_NS, "parent_pid": None,
        "iodepth_batch": max(1, changes.get("iodepth", 1) // 4),
    }  # fmt: skip
    return {**plain, **changes}


def lay_out(directory: Path, **changes: Any) -> Path:
    """Writes a job's file in full, as leadline does before a trial; returns it."""
    write_job(directory, job(directory, **changes))
    words = [str(TRIAL), "layout", str(directory / "job.json"), "none"]
    subprocess.run(words, check=True, timeout=LIMIT_S, stdout=subprocess.DEVNULL)
    return directory / "data.0.0"


def write_job(directory: Path, value: dict[str, Any]) -> None:
    (directory / "job.json").write_text(json.dumps(value))


def run_job(cpu: int, job_file: Path, record: Path) -> Sample:
    """What a trial of the engine, without Python, used and did; syncs are no operations."""
    used, out = pinned([TRIAL, "run", job_file, record], cpu)
    summary = json.loads(out.strip().splitlines()[-1])
    if summary["state"] != "complete":
        raise RuntimeError(f"the trial failed: {summary['error']}")
    total = summary.get("total") or summary["directions"]
    rows = [row for name, row in total.items() if name != "sync"]
    return replace(
        used,
        operations=sum(row["operations"] for row in rows),
        bytes=sum(row.get("bytes", 0) for row in rows),
        elapsed_ns=summary.get("last_done_ns", 0),
    )


def leadline(cpu: int, directory: Path, latencies: bool = False, **changes: Any) -> Side:
    """A trial of the engine; with `latencies` its record is read as well."""

    def run() -> Sample:
        write_job(directory, job(directory, **changes))
        record = directory / "trial.llrec"
        found = run_job(cpu, directory / "job.json", record)
        if not latencies:
            return found
        p50_ns, p99_ns = read_latencies(record)
        return replace(found, p50_ns=p50_ns, p99_ns=p99_ns)

    said = " ".join(f"{name}={value}" for name, value in changes.items())
    return Side("leadline", run, f"trial {said}")


def metadata_job(directory: Path, files: int, **changes: Any) -> dict[str, Any]:
    """A job on so many empty files in one directory, `files.0`; `changes` in its own words."""
    plain: dict[str, Any] = {
        "format": "leadline.metadata/1", "trial": "t0001", "directory": str(directory), "prefix": "files",
        "operations": METADATA, "files": files, "branch": 1, "depth": 0, "private": True,
        "file_size": 0, "bs": 4096, "numjobs": 1, "time_based": False, "runtime_ns": 0, "seed": 1,
        "generation": 1, "interval_ns": SECOND_NS, "deadline_ns": 100 * SECOND_NS, "parent_pid": None,
    }  # fmt: skip
    return {**plain, **changes}


def metadata_trial(cpu: int, directory: Path, files: int) -> Side:
    """leadline: so many empty files made, looked at and removed once, in one directory."""

    def run() -> Sample:
        write_job(directory, metadata_job(directory, files))
        found = run_job(cpu, directory / "job.json", directory / "trial.llrec")
        (directory / "files.0").rmdir()
        return found

    return Side("leadline", run, f"trial metadata files={files}")


def read_latencies(record: Path) -> tuple[float, float]:
    """Median and p99 of the total latency over a whole record, in ns."""
    from leadline import _core

    intervals = _core.read_record(record)["intervals"]
    blobs = [one["histograms"]["total"] for one in intervals if one["direction"] != "sync"]
    p50_ns, p99_ns = _core.histogram_percentiles(_core.histogram_merge(blobs), [50.0, 99.0])
    return float(p50_ns), float(p99_ns)


def fio(cpu: int, name: str = "fio", **options: Any) -> Side:
    """fio with its own options, JSON out, percentiles of the total latency."""
    words = [f"--{key}={value}" for key, value in options.items()]
    fixed = ["--name=bench", "--output-format=json", "--lat_percentiles=1", "--clat_percentiles=0"]

    def run() -> Sample:
        used, out = pinned(["fio", *fixed, *words], cpu)
        (found,) = json.loads(out[out.index("{") :])["jobs"]
        if found["error"]:
            raise RuntimeError(f"fio failed with error {found['error']}")
        (main,) = [row for row in (found["read"], found["write"]) if row["total_ios"]]
        at = main.get("lat_ns", {}).get("percentile", {})
        return replace(
            used,
            operations=main["total_ios"],
            bytes=main["io_bytes"],
            elapsed_ns=int(main["runtime"] * 1e6),
            p50_ns=at.get("50.000000", 0.0),
            p99_ns=at.get("99.000000", 0.0),
        )

    named = {
        **options,
        **({"filename": Path(str(options["filename"])).name} if "filename" in options else {}),
    }
    return Side(name, run, " ".join(["fio", *(f"--{key}={value}" for key, value in named.items())]))


# -- rounds, and tables of them ------------------------------------------------------------------------

Rounds = Sequence[tuple[Sample, ...]]
Figure = Callable[[Sample], float]


def cpu_per_operation_ns(sample: Sample) -> float:
    return sample.cpu_ns / sample.operations


def cpu_per_gib_ms(sample: Sample) -> float:
    return sample.cpu_ns / 1e6 / (sample.bytes / 2**30)


def bandwidth(sample: Sample) -> float:
    return sample.bytes / sample.elapsed_ns


def interleaved(sides: Sequence[Side], rounds: int, clean: Path | None = None) -> list[tuple[Sample, ...]]:
    """Each round all sides, each time another one first.

    Before each the file `clean` is put on storage and dropped from the page cache: no side meets what the one
    before it left.
    """

    def cleanly(side: Side) -> Callable[[], Sample]:
        def run() -> Sample:
            if clean is not None:
                forget(clean)
            return side.run()

        return run

    return in_turns([cleanly(side) for side in sides], rounds)


def forget(path: Path) -> None:
    """Syncs a file and drops its pages from the cache."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def ratio(rounds: Rounds, of: int, to: int, value: Figure) -> Spread:
    """Of the values of two sides, round by round."""
    return spread(value(samples[of]) / value(samples[to]) for samples in rounds)


@dataclass(frozen=True)
class Goal:
    """The value of side `of`, over that of side `to` (None: itself), is to be at most `limit`.

    Ratios are made round by round. Why it is missed is measured in the same run: see `reason`.
    """

    words: str
    of: int
    to: int | None
    limit: float
    difference: bool = False


@dataclass(frozen=True)
class Row:
    """One comparison: what it is, its sides, the value compared, and its goals."""

    what: str
    sides: Sequence[Side]
    value: Figure
    goals: Sequence[Goal]
    rounds: int
    clean: Path | None = None


def measured(row: Row, digits: int = 0) -> tuple[list[str], Rounds]:
    """The rows of a table (what, side, value, compared, goal, verdict), and the rounds they were made of."""
    rounds = interleaved(row.sides, row.rounds, row.clean)
    lines = []
    for index, side in enumerate(row.sides):
        own = spread([row.value(samples[index]) for samples in rounds])
        lines.append(f"| {row.what if index == 0 else ''} | {side.name} | {own.words(digits)} | | | |")
    for goal in row.goals:
        compared = spread([_compare(row, goal, samples) for samples in rounds])
        said = compared.judged(goal.limit)
        if goal.to is not None and said != "met":
            said += f": {reason(row, goal, rounds)}"
        lines.append(f"| | {goal.words} | | {compared.words()} | {goal.limit:g} | {said} |")
    return lines, rounds


def shares(rounds: Rounds, of: int, to: int) -> str:
    """What own code, libraries included, and the kernel took of an operation; of two sides, medians."""
    words = []
    for name, what in (
        ("its own code", lambda one: one.cpu_ns - one.kernel_ns),
        ("the kernel", lambda one: one.kernel_ns),
    ):
        own, other = (median(what(one[side]) / one[side].operations for one in rounds) for side in (of, to))
        words.append(f"{name} {own:.0f} ns against {other:.0f}")
    return ", ".join(words)


def reason(row: Row, goal: Goal, rounds: Rounds) -> str:
    """Where the difference of two sides lies: per operation, by medians; calls are of one run more."""
    assert goal.to is not None
    words = [shares(rounds, goal.of, goal.to)]
    switched = [
        median([1000 * one[side].switches / one[side].operations for one in rounds])
        for side in (goal.of, goal.to)
    ]
    words.append(f"context switches for 1,000 {switched[0]:.0f} against {switched[1]:.0f}")
    calls = [calls_each(row.sides[side]) for side in (goal.of, goal.to)]
    if None not in calls:
        words.append(f"system calls {calls[0]:.2f} against {calls[1]:.2f}")
    return ", ".join(words)


def _compare(row: Row, goal: Goal, samples: tuple[Sample, ...]) -> float:
    own = row.value(samples[goal.of])
    if goal.to is None:
        return own
    other = row.value(samples[goal.to])
    return own - other if goal.difference else own / other


def section(title: str, unit: str, rows: Sequence[Row], before: str = "", after: str = "") -> Iterator[str]:
    """A section of results.md with its table, and what was run, once each."""
    yield from [f"## {title}", "", *before.splitlines(), *([""] if before else [])]
    yield from [f"| work | side | {unit} | compared | at most | goal |", "|---|---|---|---|---|---|"]
    for row in rows:
        yield from measured(row)[0]
    yield from ["", *([after, ""] if after else []), *commands(rows)]


def commands(rows: Sequence[Row]) -> list[str]:
    """What was run, once each."""
    told = dict.fromkeys(side.command for row in rows for side in row.sides)
    return ["Commands:", "", *(f"    {one}" for one in told), ""]
