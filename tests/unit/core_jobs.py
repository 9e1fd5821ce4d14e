"""Jobs for the tests of the load engine: small, explicit, on real files."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from leadline import _core

MIB = 1 << 20
SECOND_NS = 1_000_000_000

RUN_IN_PROCESS = """
import json, resource, sys
from leadline import _core
limit = int(sys.argv[3])
if limit:
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
print(json.dumps({"event": "summary", **_core.run_trial(sys.argv[1], sys.argv[2])}), flush=True)
"""


def job(directory: Path, **changes: Any) -> str:
    """A job's JSON: random reads of 4 KiB over one MiB, unless `changes` say otherwise."""
    value: dict[str, Any] = {
        "format": "leadline.job/1",
        "trial": "t0001",
        "directory": str(directory),
        "prefix": "data",
        "rw": "randread",
        "rwmixread": 50,
        "bs": 4096,
        "size": MIB,
        "nrfiles": 1,
        "numjobs": 1,
        "iodepth": 1,
        "engine": "psync",
        "direct": False,
        "overwrite": False,
        "fsync": 0,
        "end_fsync": False,
        "time_based": False,
        "runtime_ns": 0,
        "ramp_time_ns": 0,
        "rate_bytes_per_s": None,
        "rate_iops": None,
        "arrival": "constant",
        "verify": False,
        "incompressible": True,
        "sqthread_poll": False,
        "seed": 7,
        "generation": 1,
        "interval_ns": SECOND_NS // 10,
        "deadline_ns": 60 * SECOND_NS,
        "parent_pid": None,
    }
    value.update(changes)
    return json.dumps(value)


def metadata_job(directory: Path) -> str:
    """The same of metadata: 500 empty files in each of two threads, made, looked at and removed."""
    value = {
        "format": "leadline.metadata/1", "trial": "t1", "directory": str(directory), "prefix": "m",
        "operations": ["create", "stat", "unlink"], "files": 500, "branch": 2, "depth": 2, "private": True,
        "file_size": 0, "bs": 4096, "numjobs": 2, "time_based": False, "runtime_ns": 0, "seed": 1,
        "generation": 1, "interval_ns": SECOND_NS, "deadline_ns": 60 * SECOND_NS, "parent_pid": None,
    }  # fmt: skip
    return json.dumps(value)


def run(directory: Path, **changes: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Runs one trial; returns its summary and its record."""
    record = directory / "trial.llrec"
    summary = _core.run_trial(job(directory, **changes), record)
    return summary, _core.read_record(record)


def start(directory: Path, file_size_limit: int = 0, **changes: Any) -> subprocess.Popen[str]:
    """Starts one trial in a process of its own; its record is `trial.llrec`."""
    record = str(directory / "trial.llrec")
    command = [sys.executable, "-c", RUN_IN_PROCESS, job(directory, **changes), record, str(file_size_limit)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def merged(record: dict[str, Any], direction: str, clock: str) -> bytes:
    """One histogram of all measured intervals."""
    return _core.histogram_merge(
        [
            interval["histograms"][clock]
            for interval in record["intervals"]
            if interval["direction"] == direction and interval["measured"]
        ]
    )
