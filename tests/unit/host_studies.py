"""Results of studies on many hosts, made by the product's own join and store; nothing is measured."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from builders import trial_row

from leadline import _core
from leadline.hosts.join import joined
from leadline.hosts.model import ClockOffset, HostTrial
from leadline.plan.make import Host, make_plan
from leadline.plan.model import Plan, Trial
from leadline.run.rows import latency_row
from leadline.store.by_host import write_by_host
from leadline.store.reader import Result, open_result
from leadline.store.tables import LatencyRow, SeriesRow, TrialRow
from leadline.store.writer import create_result
from leadline.study.study import parse_study
from leadline.study.target import CephAccess, Target, TargetFacts
from leadline.study.yaml_source import read_study

S = 1_000_000_000
START = 1_700_000_000 * S
GOOD_CLOCK = ClockOffset(0, 100_000, START)
SHARED = TargetFacts(
    "ceph-fuse",
    "fuse.ceph-fuse",
    "CephFS by ceph-fuse",
    "/x",
    free_bytes=1 << 40,
    direct_io=True,
    ceph=CephAccess(size=3, protection="replicated"),
)
STUDY = """
format: leadline.study/1
name: made
title: A made study
about: How fast is it?
works:
  seqread_1m: {rw: read, bs: 1M, iodepth: 4, size: 64M, direct: true, time_based: true, runtime: 4s}
  randread_4k: {rw: randread, bs: 4k, iodepth: 4, size: 64M, direct: true, time_based: true, runtime: 4s}
blocks: BLOCKS
"""
# (host, block, cell) -> bytes a second
Rate = Callable[[str, int, str], float]


def names(count: int) -> list[str]:
    return [f"node{number:04}" for number in range(1, count + 1)]


def summary(read: int, bs: int) -> str:
    counts = {"read": {"bytes": read, "operations": read // bs, "short": 0}}
    return json.dumps({"state": "complete", "directions": counts, "total": counts, "engine": "psync"})


def made_host(
    host: str, rate: float, *, seconds: int = 4, bs: int = 1 << 20, clock: ClockOffset = GOOD_CLOCK,
    begins_ns: int = 0, latency_ns: Sequence[int] = (1_000_000, 2_000_000), samples: int = 0, **row: Any,
) -> HostTrial:  # fmt: skip
    """A host that read at one rate for some seconds; `samples` of itself in each second."""
    values = {**_values(rate, seconds, bs, START + begins_ns + clock.offset_ns), **row}
    trial = str(values.get("trial", "t0001"))
    blob = _core.histogram_of(list(latency_ns))
    latency: list[LatencyRow] = [
        latency_row(trial, "read", "total", at, (at * S, (at + 1) * S), True, blob) for at in range(seconds)
    ]
    whole = _core.histogram_merge([blob] * seconds)
    latency.append(latency_row(trial, "read", "total", -1, (0, seconds * S), True, whole))
    series = [
        SeriesRow(trial, (at + 1) * S, "engine", "read", metric, rate / size, unit)
        for at in range(seconds)
        for metric, size, unit in (("bandwidth", 1, "B/s"), ("iops", bs, "1/s"))
    ]
    series += [
        SeriesRow(trial, at * S, "host", f"cpu{one}", "busy", 0.5, "1")
        for at in range(seconds)
        for one in range(samples)
    ]
    return HostTrial(host, trial_row(**values), latency, series, clock)


def _values(rate: float, seconds: int, bs: int, started_unix_ns: int) -> dict[str, Any]:
    read, length_ns = round(rate * seconds), seconds * S
    return {
        "started_unix_ns": started_unix_ns,
        "measured_ns": length_ns,
        "first_done_ns": length_ns,
        "last_done_ns": length_ns,
        "read_bytes": read,
        "read_operations": read // bs,
        "total_read_bytes": read,
        "device_read_bytes": None,
        "summary": summary(read, bs),
        "reasons": "{}",
    }


def planned_row(plan: Plan, trial: Trial) -> dict[str, Any]:
    """What the plan says of a trial's row."""
    cell = plan.cell(trial.cell)
    return {
        "trial": trial.id,
        "cell": trial.cell,
        "target": trial.target,
        "work": cell.work,
        "block": trial.block,
        "order": trial.order,
        "job": json.dumps(cell.job.as_json()),
    }


def row_of_host(plan: Plan, trial: Trial, rate: float, seconds: int, started_unix_ns: int) -> TrialRow:
    """A host's row alone, where its other tables are files."""
    bs = int(plan.cell(trial.cell).job.as_json()["bs"])
    return trial_row(**_values(rate, seconds, bs, started_unix_ns), **planned_row(plan, trial))


def planned(blocks: int) -> Plan:
    study = parse_study(read_study(STUDY.replace("BLOCKS", str(blocks)), "made", {}))
    return make_plan(study, {"shared": Target("shared", "/shared")}, {"shared": SHARED}, Host(16 << 30), 1)


def stored(
    path: Path,
    hosts: Sequence[str],
    rate: Rate,
    *,
    blocks: int = 4,
    facts: Sequence[Mapping[str, Any]] = (),
    events: Sequence[Mapping[str, Any]] = (),
    lost: Mapping[str, Mapping[str, str]] | None = None,
    **host: Any,
) -> Result:
    """A whole study: each trial of each host, joined and stored as a run does. `lost`: trial -> host -> why.

    `host` are arguments of `made_host`; one that is a function is called with the host's name.
    """
    study = parse_study(read_study(STUDY.replace("BLOCKS", str(blocks)), "made", {}))
    plan = planned(blocks)
    manifest = {
        "kind": "study",
        "id": "0badcafe",
        "version": "0.1",
        "created": "2026-01-01T00:00:00+00:00",
        "plan": plan.as_json(),
        "study": study.as_json(),
        "targets": {"shared": SHARED.as_json()},
        "options": {},
        "host": {"kernel": "6.1"},
        "command": ["leadline", "run"],
        "hosts": list(facts),
    }
    now = [START]
    writer = create_result(path, manifest, lambda: now[0])
    writer.journal("run_started")
    for event in events:
        writer.journal("clock_compared", **event)
    for trial in plan.trials:
        writer.journal("trial_started", trial=trial.id)
        now[0] += round(plan.seconds / len(plan.trials) * S)
        cell = plan.cell(trial.cell)
        own = planned_row(plan, trial)
        gone = (lost or {}).get(trial.id, {})
        parts = [
            made_host(
                name,
                rate(name, trial.block, trial.cell),
                bs=int(cell.job.as_json()["bs"]),
                **own,
                **{key: value(name) if callable(value) else value for key, value in host.items()},
            )
            for name in hosts
            if name not in gone
        ]
        write_by_host(path, trial.id, parts)
        writer.write_trial(*joined(parts, f"a-{trial.id}", gone))
    writer.journal("study_finished", failed=[], not_run={})
    writer.close()
    return open_result(path)
