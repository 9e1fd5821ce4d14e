"""Trials of applications for unit tests: made figures, each field overridable."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from builders import cell, trial_row

from leadline.plan.model import PlannedCell
from leadline.store.tables import TrialRow
from leadline.workloads.application.figures import CopyTrace
from leadline.workloads.application.job import ApplicationJob

MIB = 1 << 20


def application(**changes: Any) -> ApplicationJob:
    values: dict[str, Any] = {
        "command": ("analyse", "{input}"),
        "copies": 1,
        "input": "/data/events",
        "input_files": 3,
        "input_bytes": 30 * MIB,
        "cache": "cold",
        "trace": "preload",
        "runtime_ns": 3600 * 10**9,
    }
    return ApplicationJob(**{**values, **changes})


def planned(target: str, copies: int, **changes: Any) -> PlannedCell:
    job = application(copies=copies, **changes)
    factors = {"copies": copies}
    return replace(cell(f"{target}.run_{copies}"), job=job, factors=factors, layout=None)


def account(copy: int, seconds: float, **changes: Any) -> dict[str, Any]:
    found = {
        "copy": copy,
        "pid": 100 + copy,
        "started_ns": 0,
        "wall_ns": round(seconds * 1e9),
        "exit": 0,
        "signal": None,
        "cpu_user_ns": round(seconds * 0.5e9),
        "cpu_system_ns": 0,
        "memory_max_bytes": 100 * MIB,
        "read_bytes": 40 * MIB,
        "write_bytes": 2 * MIB,
    }
    return {**found, **changes}


def trial(cell_id: str, block: int, seconds: Sequence[float], cpus: int = 4, **changes: Any) -> TrialRow:
    """A trial whose copies took these times; CPUs are half busy with them each."""
    copies = [account(copy, each) for copy, each in enumerate(seconds, start=1)]
    target, work = cell_id.split(".")
    row = trial_row(
        trial=f"{target}{work}{block}",
        cell=cell_id,
        target=target,
        work=work,
        block=block,
        measured_ns=round(max(seconds) * 1e9),
        cpu_user_ns=sum(copy["cpu_user_ns"] for copy in copies),
        cpu_system_ns=0,
        cpu_busy_share=min(1.0, 0.5 * len(copies) / cpus),
        summary=json.dumps({"copies": copies, "cpus": cpus}),
    )
    return replace(row, **changes)


def traced(run_time_s: float, read_s: float, write_s: float = 0.0, meta_s: float = 0.0) -> CopyTrace:
    seconds = {"read": read_s, "write": write_s, "sync": 0.0, "meta": meta_s}
    share = {kind: value / run_time_s for kind, value in seconds.items()}
    speed = 30 * MIB / sum(seconds.values()) if any(seconds.values()) else None
    return CopyTrace(seconds, share, 28 * MIB, 2 * MIB, speed)
