"""What is compared: leadline's trial, fio and the bare loops, each one process on one pinned CPU."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
BARE = ROOT / "target" / "bench"
TRIAL = ROOT / "target" / "release" / "examples" / "trial"
SECOND_NS = 1_000_000_000
LIMIT_S = 120.0
METADATA = ("create", "stat", "unlink")
_IO_CALLS = ("io_uring_enter", "pread64", "pwrite64", "read", "write", "io_submit", "io_getevents", "fsync")
_COUNTING: list[str] = []  # words before a command that is counted and not timed


@dataclass(frozen=True)
class Usage:
    """What a process used (its children and the kernel's workers for it included).

    `switches` of context are those in which it waited, and those in which it was made to.
    """

    cpu_ns: int = 0
    kernel_ns: int = 0
    switches: int = 0


@dataclass(frozen=True)
class Sample:
    """One process: its CPU time and its work."""

    cpu_ns: int
    operations: int
    bytes: int
    elapsed_ns: int
    p50_ns: float = 0.0
    p99_ns: float = 0.0
    kernel_ns: int = 0
    switches: int = 0


@dataclass(frozen=True)
class Side:
    """One of the things compared; `command` is what results.md prints, `counted` does little of the same."""

    name: str
    run: Callable[[], Sample] = field(repr=False)
    command: str
    counted: Side | None = field(default=None, repr=False)


def pinned(command: list[str], cpu: int) -> tuple[Usage, str]:
    """Runs to the end; returns what it used and standard output. Raises RuntimeError when it fails."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as errors:
        words = ["timeout", str(LIMIT_S), "taskset", "--cpu-list", str(cpu), *_COUNTING, *command]
        process = subprocess.Popen(words, stdout=out, stderr=errors, cwd=tempfile.gettempdir())
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        errors.seek(0)
        if process.returncode != 0:
            raise RuntimeError(f"{' '.join(command)}: {errors.read()[-500:]}")
        kernel_ns = int(usage.ru_stime * 1e9)
        switches = usage.ru_nvcsw + usage.ru_nivcsw
        return Usage(int(usage.ru_utime * 1e9) + kernel_ns, kernel_ns, switches), out.read()


def timed(cpu: int, directory: Path, lengths_s: tuple[float, float], **changes: Any) -> Side:
    """leadline, a long run less a short one."""
    long, short = (
        leadline(cpu, directory, **changes, time_based=True, runtime_ns=int(seconds * SECOND_NS))
        for seconds in lengths_s
    )
    return without_start(long, short)


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
        return Sample(
            more.cpu_ns - less.cpu_ns,
            more.operations - less.operations,
            more.bytes - less.bytes,
            more.elapsed_ns - less.elapsed_ns,
            more.p50_ns,
            more.p99_ns,
            more.kernel_ns - less.kernel_ns,
            more.switches - less.switches,
        )

    return Side(long.name, run, long.command, counted or short)


def bare(name: str, cpu: int, *arguments: object, operations: int, block_bytes: int) -> Side:
    """A bare loop of `bench/floors`."""
    words = [str(argument) for argument in arguments]

    def run() -> Sample:
        used, _ = pinned([str(BARE / name), *words], cpu)
        moved_bytes = operations * block_bytes
        return Sample(used.cpu_ns, operations, moved_bytes, 0, 0.0, 0.0, used.kernel_ns, used.switches)

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


def done_of(out: str) -> tuple[int, int, int]:
    """What a trial says it did: operations and bytes without syncs, and when the last was done, in ns."""
    summary = json.loads(out.strip().splitlines()[-1])
    if summary["state"] != "complete":
        raise RuntimeError(f"the trial failed: {summary['error']}")
    rows = [row for name, row in summary["total"].items() if name != "sync"]
    operations = sum(row["operations"] for row in rows)
    return operations, sum(row["bytes"] for row in rows), summary["last_done_ns"]


def leadline(cpu: int, directory: Path, latencies: bool = False, **changes: Any) -> Side:
    """A trial of the engine, without Python; with `latencies` its record is read as well."""

    def run() -> Sample:
        write_job(directory, job(directory, **changes))
        record = directory / "trial.llrec"
        used, out = pinned([str(TRIAL), "run", str(directory / "job.json"), str(record)], cpu)
        operations, moved_bytes, last_ns = done_of(out)
        p50_ns, p99_ns = read_latencies(record) if latencies else (0.0, 0.0)
        return Sample(
            used.cpu_ns, operations, moved_bytes, last_ns, p50_ns, p99_ns, used.kernel_ns, used.switches
        )

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
    value = metadata_job(directory, files)

    def run() -> Sample:
        write_job(directory, value)
        record = directory / "trial.llrec"
        used, out = pinned([str(TRIAL), "run", str(directory / "job.json"), str(record)], cpu)
        summary = json.loads(out.strip().splitlines()[-1])
        if summary["state"] != "complete":
            raise RuntimeError(f"the trial failed: {summary['error']}")
        (directory / "files.0").rmdir()
        operations = sum(row["operations"] for row in summary["directions"].values())
        return Sample(used.cpu_ns, operations, 0, 0, 0.0, 0.0, used.kernel_ns, used.switches)

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
        rows = [row for row in (found["read"], found["write"]) if row["total_ios"]]
        (main,) = rows
        at = main.get("lat_ns", {}).get("percentile", {})
        p50_ns, p99_ns = at.get("50.000000", 0.0), at.get("99.000000", 0.0)
        elapsed_ns = int(main["runtime"] * 1e6)
        done, moved_bytes = main["total_ios"], main["io_bytes"]
        return Sample(
            used.cpu_ns, done, moved_bytes, elapsed_ns, p50_ns, p99_ns, used.kernel_ns, used.switches
        )

    shown = [
        f"--{key}={Path(str(value)).name if key == 'filename' else value}" for key, value in options.items()
    ]
    return Side(name, run, " ".join(["fio", *shown]))
