"""Small values for unit tests, each field overridable."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from leadline.plan.model import PlannedCell
from leadline.store.tables import LatencyRow, TrialRow
from leadline.study.kind.interface import Layout
from leadline.study.target import TargetFacts
from leadline.workloads.io.job import Job

MIB = 1 << 20


def clock() -> Callable[[], int]:
    """A clock that ticks by one at each look."""
    return itertools.count(1).__next__


def manifest(**changes: Any) -> dict[str, Any]:
    return {"kind": "study", "id": "0badcafe", "plan": {"targets": [], "trials": []}, **changes}


def job(**changes: Any) -> Job:
    values: dict[str, Any] = {
        "rw": "randread",
        "rwmixread": 100,
        "bs": 4096,
        "size": 64 * MIB,
        "nrfiles": 1,
        "numjobs": 1,
        "iodepth": 1,
        "engine": "psync",
        "direct": True,
        "overwrite": False,
        "fsync": 0,
        "end_fsync": False,
        "time_based": True,
        "runtime_ns": 2_000_000_000,
        "ramp_time_ns": 0,
        "rate_bytes_per_s": None,
        "rate_iops": None,
        "arrival": "constant",
        "verify": False,
        "incompressible": True,
        "sqthread_poll": False,
    }
    return Job(**{**values, **changes})


def cell(name: str = "a.randread_4k", **job_changes: Any) -> PlannedCell:
    target, work = name.split(".", 1)
    return PlannedCell(
        id=name,
        target=target,
        work=work,
        factors={},
        job=job(**job_changes),
        layout=Layout("k", 1, 1, 64 * MIB),
        seconds=2.0,
    )


def facts(**changes: Any) -> TargetFacts:
    found = TargetFacts(access="local", file_system="ext4", words="ext4 on vda", mount_point="/x")
    return replace(found, **changes)


def trial_row(**changes: Any) -> TrialRow:
    row = TrialRow(
        trial="t0001",
        cell="a.randread_4k",
        target="a",
        work="randread_4k",
        block=1,
        order=1,
        seed=7,
        state="complete",
        error=None,
        started_unix_ns=10,
        ramp_ns=0,
        measured_ns=2_000_000_000,
        first_done_ns=1,
        last_done_ns=2,
        read_bytes=100 * MIB,
        read_operations=25_600,
        write_bytes=0,
        write_operations=0,
        sync_operations=0,
        total_read_bytes=100 * MIB,
        total_write_bytes=0,
        cpu_user_ns=100,
        cpu_system_ns=200,
        busy_share_max=0.3,
        late_ns_max=None,
        late_ns_mean=None,
        unwritten_blocks=0,
        verified_blocks=0,
        wire_sent_bytes=None,
        wire_received_bytes=None,
        device_read_bytes=100 * MIB,
        device_written_bytes=0,
        process_read_bytes=None,
        process_written_bytes=None,
        osd_read_bytes=None,
        osd_written_bytes=None,
        osd_subop_received_bytes=None,
        store_read_bytes=None,
        store_written_bytes=None,
        cpu_busy_share=0.2,
        cpu_steal_share=0.0,
        cgroup_throttled=0,
        client_cpu_ns=None,
        observer_cpu_ns=5,
        caches_dropped=False,
        job=json.dumps(job().as_json()),
        factors="{}",
        threads="[]",
        summary="{}",
        reasons=json.dumps({"wire_received_bytes": "no network in between"}),
        sources="{}",
        start_state="null",
        end_state="null",
    )
    return replace(row, **changes)


def latency_row(**changes: Any) -> LatencyRow:
    row = LatencyRow(
        trial="t0001",
        direction="read",
        clock="total",
        interval=-1,
        start_ns=0,
        end_ns=2_000_000_000,
        measured=True,
        operations=25_600,
        min_ns=1_000,
        mean_ns=2_000.5,
        max_ns=9_000,
        p50_ns=2_000,
        p99_ns=5_000,
        histogram=b"blob",
    )
    return replace(row, **changes)


def cluster_state(**changes: Any) -> str:
    state = {
        "health": "HEALTH_OK",
        "checks": {},
        "pgs": {"active+clean": 32},
        "flags": [],
        "slow_ops": 0,
        "degraded_objects": 0,
        "misplaced_objects": 0,
        "recovering": False,
        "scrubbing": 0,
        "osds": 4,
        "osds_up": 4,
        "osds_in": 4,
        "used_share": 0.1,
        "nearfull_share": 0.85,
        "full_share": 0.95,
    }
    return json.dumps({**state, **changes})
