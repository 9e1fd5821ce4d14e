"""What is compared: leadline's trial, fio and the bare loops, each one process on one pinned CPU."""

from __future__ import annotations

import json
import os
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


@dataclass(frozen=True)
class Sample:
    """One process: its CPU time (its children and the kernel's workers for it included) and its work."""

    cpu_ns: int
    operations: int
    bytes: int
    elapsed_ns: int
    p50_ns: float = 0.0
    p99_ns: float = 0.0


@dataclass(frozen=True)
class Side:
    """One of the things compared; `command` is what results.md prints."""

    name: str
    run: Callable[[], Sample] = field(repr=False)
    command: str


def pinned(command: list[str], cpu: int) -> tuple[int, str]:
    """Runs to the end; returns CPU time in ns and standard output. Raises RuntimeError when it fails."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as errors:
        words = ["timeout", str(LIMIT_S), "taskset", "--cpu-list", str(cpu), *command]
        process = subprocess.Popen(words, stdout=out, stderr=errors, cwd=tempfile.gettempdir())
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        errors.seek(0)
        if process.returncode != 0:
            raise RuntimeError(f"{' '.join(command)}: {errors.read()[-500:]}")
        return int((usage.ru_utime + usage.ru_stime) * 1e9), out.read()


def bare(name: str, cpu: int, *arguments: object, operations: int, block_bytes: int) -> Side:
    """A bare loop of `bench/floors`."""
    words = [str(argument) for argument in arguments]

    def run() -> Sample:
        cpu_ns, _ = pinned([str(BARE / name), *words], cpu)
        return Sample(cpu_ns, operations, operations * block_bytes, 0)

    shown = [Path(word).name if word.startswith("/") else word for word in words]
    return Side("bare", run, " ".join([name, *shown]))


def job(directory: Path, **changes: Any) -> dict[str, Any]:
    """A job of the engine; `changes` in its own words."""
    plain: dict[str, Any] = {
        "format": "leadline.job/1", "trial": "t0001", "directory": str(directory), "prefix": "data",
        "rw": "randread", "rwmixread": 50, "bs": 4096, "size": 1 << 28, "nrfiles": 1, "numjobs": 1,
        "iodepth": 1, "engine": "psync", "direct": False, "overwrite": False, "fsync": 0,
        "end_fsync": False, "time_based": False, "runtime_ns": 0, "ramp_time_ns": 0,
        "rate_bytes_per_s": None, "rate_iops": None, "arrival": "constant", "verify": False,
        "incompressible": True, "sqthread_poll": False, "seed": 7, "generation": 1,
        "interval_ns": SECOND_NS, "deadline_ns": 100 * SECOND_NS, "parent_pid": None,
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


def leadline(cpu: int, directory: Path, latencies: bool = False, **changes: Any) -> Side:
    """A trial of the engine, without Python; with `latencies` its record is read as well."""

    def run() -> Sample:
        write_job(directory, job(directory, **changes))
        record = directory / "trial.llrec"
        cpu_ns, out = pinned([str(TRIAL), "run", str(directory / "job.json"), str(record)], cpu)
        summary = json.loads(out.strip().splitlines()[-1])
        if summary["state"] != "complete":
            raise RuntimeError(f"the trial failed: {summary['error']}")
        rows = [row for name, row in summary["total"].items() if name != "sync"]
        operations = sum(row["operations"] for row in rows)
        moved_bytes = sum(row["bytes"] for row in rows)
        p50_ns, p99_ns = read_latencies(record) if latencies else (0.0, 0.0)
        return Sample(cpu_ns, operations, moved_bytes, summary["last_done_ns"], p50_ns, p99_ns)

    said = " ".join(f"{name}={value}" for name, value in changes.items())
    return Side("leadline", run, f"trial {said}")


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
        cpu_ns, out = pinned(["fio", *fixed, *words], cpu)
        (found,) = json.loads(out[out.index("{") :])["jobs"]
        if found["error"]:
            raise RuntimeError(f"fio failed with error {found['error']}")
        rows = [row for row in (found["read"], found["write"]) if row["total_ios"]]
        (main,) = rows
        at = main["lat_ns"].get("percentile", {})
        p50_ns, p99_ns = at.get("50.000000", 0.0), at.get("99.000000", 0.0)
        elapsed_ns = int(main["runtime"] * 1e6)
        return Sample(cpu_ns, main["total_ios"], main["io_bytes"], elapsed_ns, p50_ns, p99_ns)

    shown = [
        f"--{key}={Path(str(value)).name if key == 'filename' else value}" for key, value in options.items()
    ]
    return Side(name, run, " ".join(["fio", *shown]))
