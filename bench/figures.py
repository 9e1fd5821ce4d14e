"""Figures of whole processes: how soon a trial starts inside a study, its memory, its instructions."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from cost import CACHED_BYTES, Places
from ratios import Spread, spread
from sides import BARE, LIMIT_S, SECOND_NS, TRIAL, job, lay_out, write_job
from tables import judge

STUDY = """format: leadline.study/1
limits: {reserve: 1M}
defaults: {size: 4M, runtime: 200ms, time_based: true, rw: randread}
works:
  psync: {engine: psync, direct: false}
  ring: {engine: io_uring, direct: true, iodepth: 32}
blocks: BLOCKS
"""
START_LIMIT_MS = 50.0
MEMORY_LIMIT_MIB = 50.0


def start(places: Places) -> list[str]:
    """From the journal's `trial_started` to the engine's first operation, in a study on a disk."""
    found = _starts_ms(places)
    return [
        "## Start of a trial inside a study",
        "",
        "From the journal's `trial_started` to the start that the engine noted, psync and io_uring.",
        "",
        f"{found.words(1)} ms, at most {START_LIMIT_MS:g}: {judge(found, START_LIMIT_MS)}.",
        "",
        "Command:",
        "",
        "    leadline run study.yaml --target disk=DIRECTORY",
        "",
    ]


def _starts_ms(places: Places) -> Spread:
    from leadline.store.reader import open_result

    with tempfile.TemporaryDirectory() as scratch:
        study, out = Path(scratch) / "study.yaml", Path(scratch) / "result"
        study.write_text(STUDY.replace("BLOCKS", "5" if places.quick else "10"))
        words = ("run", str(study), "--target", f"disk={places.disk}", "--out", str(out), "--quiet")
        subprocess.run(
            [sys.executable, "-m", "leadline", *words],
            timeout=LIMIT_S,
            check=False,  # 3 says that a cell is doubtful, which is no matter here
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        result = open_result(out)
        asked = {e.details["trial"]: e.t_ns for e in result.events if e.event == "trial_started"}
        return spread([(trial.started_unix_ns - asked[trial.trial]) / 1e6 for trial in result.trials()])


def memory(places: Places) -> list[str]:
    """The peak of a worker process, Python included, beyond the buffers, for a short and a long trial."""
    seconds = (1, 3) if places.quick else (1, 20)
    lines = [
        "## Memory",
        "",
        "Peak resident memory of a worker process (VmHWM, Python included), less the buffers.",
        "",
        "| trial | run time | MiB | at most | goal |",
        "|---|---|---|---|---|",
    ]
    lay_out(places.memory, size=CACHED_BYTES)
    works: dict[str, dict[str, Any]] = {
        "null, iodepth 32": {"engine": "null", "iodepth": 32},
        "psync, tmpfs": {},
        "psync, 4 numjobs, open loop": {"numjobs": 4, "rate_iops": 2000.0},
    }
    for name, changes in works.items():
        lay_out(places.memory, **{"size": CACHED_BYTES, **changes})
        for runtime_s in seconds:
            peak = _peak_mib(places, runtime_s, changes)
            verdict = "met" if peak <= MEMORY_LIMIT_MIB else "**missed**"
            lines.append(f"| {name} | {runtime_s} s | {peak:.1f} | {MEMORY_LIMIT_MIB:g} | {verdict} |")
    return [*lines, ""]


def _peak_mib(places: Places, runtime_s: int, changes: dict[str, Any]) -> float:
    from leadline.run.child import Worker

    timed = {"size": CACHED_BYTES, "time_based": True, "runtime_ns": runtime_s * SECOND_NS}
    value = job(places.memory, **timed, **changes)
    with Worker() as worker:
        record = str(places.memory / "trial.llrec")
        answer = worker.call("trial", LIMIT_S, job=value, record=record)
        if answer.outcome != "done":
            raise RuntimeError(answer.message)
        status = Path(f"/proc/{worker.pid}/status").read_text()
    peak_kib = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:"))
    buffers_bytes = value["bs"] * value["iodepth"] * value["numjobs"]
    return peak_kib / 1024 - buffers_bytes / 2**20


def instructions(places: Places) -> list[str]:
    """User-mode instructions per operation: the slope between a short and a long run under callgrind."""
    lines = ["## Instructions per operation", ""]
    if shutil.which("valgrind") is None:
        return [*lines, "Not counted: valgrind is missing (Debian: valgrind).", ""]
    lines += [
        "User mode, counted by `valgrind --tool=callgrind`, from the difference of a short and a long run:",
        "the same from run to run, whatever the machine is doing.",
        "",
        "| side | instructions |",
        "|---|---|",
    ]
    for name, changes in (("null, iodepth 32", {"engine": "null", "iodepth": 32}), ("psync, tmpfs", {})):
        found = of_one(20_000, 120_000, partial(_trial_instructions, places, changes))
        lines.append(f"| leadline, {name} | {found:.0f} |")
    loop = [str(BARE / "pread_loop"), str(lay_out(places.memory, size=CACHED_BYTES)), "4096"]
    found = of_one(20_000, 120_000, lambda count: counted([*loop, str(count)]))
    lines.append(f"| bare pread loop, tmpfs | {found:.0f} |")
    return [*lines, ""]


def of_one(few: int, many: int, cost: Callable[[int], int]) -> float:
    """What one more operation costs, by a short and a long run: start and end are the same in both."""
    return (cost(many) - cost(few)) / (many - few)


def _trial_instructions(places: Places, changes: dict[str, Any], blocks: int) -> int:
    lay_out(places.memory, size=blocks * 4096)
    write_job(places.memory, job(places.memory, size=blocks * 4096, **changes))
    words = ["run", str(places.memory / "job.json"), str(places.memory / "trial.llrec")]
    return counted([str(TRIAL), *words])


def counted(command: list[str], environment: dict[str, str] | None = None) -> int:
    """User-mode instructions of a command, by callgrind; with another environment than this one's."""
    words = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", *command]
    done = subprocess.run(words, check=True, capture_output=True, text=True, timeout=LIMIT_S, env=environment)
    (line,) = [line for line in done.stderr.splitlines() if "Collected :" in line]
    return int(line.split(":")[1])


def machine(places: Places) -> list[str]:
    """What it was measured on."""
    model = next(
        (
            line.split(":")[1].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if "model name" in line
        ),
        "unknown processor",
    )
    kernel = Path("/proc/sys/kernel/osrelease").read_text().strip()
    version = subprocess.run(["fio", "--version"], check=True, capture_output=True, text=True).stdout.strip()
    disk = _file_system(places.disk)
    threads = json.loads(
        subprocess.run(["lscpu", "--json"], check=True, capture_output=True, text=True).stdout
    )
    count = next(one["data"] for one in threads["lscpu"] if one["field"] == "CPU(s):")
    load = Path("/proc/loadavg").read_text().split()[0]
    return [
        f"Machine: {model}, {count} CPUs, Linux {kernel}; files on {disk} and tmpfs; {version}, Debian's.",
        f"Everything ran on CPU {places.cpu} (`taskset`). Load average when it began: {load}.",
    ]


def _file_system(path: Path) -> str:
    words = ["findmnt", "--noheadings", "--output", "FSTYPE,SOURCE", "--target", str(path)]
    return " on ".join(subprocess.run(words, check=True, capture_output=True, text=True).stdout.split()[:2])
