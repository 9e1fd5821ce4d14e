"""What is known of the target itself, and of the jobs that ask it."""

from __future__ import annotations

import json
import math

from leadline.store.tables import TrialRow
from leadline.study.target import CephAccess, TargetFacts
from leadline.verdict.diagnosis.seen.values import Figure, Figures

_OBJECT_BYTES = 4 << 20  # Ceph's own, where nobody says otherwise


def of_target(facts: TargetFacts | None) -> Figures:
    """A gateway before it, and how it protects what it keeps; None where the target is not known."""
    if facts is None:
        return {"behind_server": 0.0, "coded": None, "pool_groups": None, "read_ahead_bytes": None}
    groups = facts.ceph.groups if facts.ceph is not None else None
    protection = facts.ceph.protection if facts.ceph is not None else None
    return {
        "behind_server": float(facts.behind_server),
        "coded": None if protection is None else float(protection == "erasure"),
        "pool_groups": None if groups is None else float(groups),
        "read_ahead_bytes": _read_ahead_bytes(facts.ceph) if facts.ceph is not None else None,
    }


def _read_ahead_bytes(ceph: CephAccess) -> float | None:
    """The most that ceph-fuse fetches ahead: the least of its limits; None where nobody knows of one."""
    settings, layout = ceph.settings or {}, ceph.layout or {}
    period = layout.get("object_size", _OBJECT_BYTES) * layout.get("stripe_count", 1)
    limits = [
        int(text) * unit
        for name, unit in (("client_readahead_max_bytes", 1), ("client_readahead_max_periods", period))
        if (text := settings.get(name, "")).isdigit()
    ]
    return min((float(limit) for limit in limits if limit), default=None)


def of_server(facts: TargetFacts | None, write_share: Figure) -> Figures:
    """How a mount asks its server, by its options; an NFS mount that does not say it has one connection."""
    options = dict(one.split("=", 1) for one in (facts.options if facts is not None else ()) if "=" in one)

    def number(name: str, unsaid: float | None = None) -> float | None:
        text = options.get(name, "")
        return float(text) if text.isdigit() else unsaid

    writes = isinstance(write_share, float) and write_share >= 0.5
    # Only NFS mounts say by which transport they go, and of several connections only these.
    by_transport = options.get("proto", "").startswith("tcp")
    return {
        "transfer_bytes": number("wsize" if writes else "rsize"),
        "server_connections": number("nconnect", 1.0) if by_transport else None,
    }


def jobs_of(trial: TrialRow) -> int:
    """How many jobs of the engine a trial has on each host; 0 of programs, which do what nobody knows."""
    job = json.loads(trial.job)
    return sum(int(one.get("numjobs", 0)) for one in job.get("jobs", [job]))


def objects_of(trial: TrialRow, facts: TargetFacts | None) -> float | None:
    """Objects of RADOS that the jobs of a trial ask for; None of what is no job of reads and writes.

    Of what goes through its files in order no more than it moved.
    """
    layout = (facts.ceph.layout if facts is not None and facts.ceph is not None else None) or {}
    object_bytes = layout.get("object_size", _OBJECT_BYTES)
    job = json.loads(trial.job)
    jobs = [one for one in job.get("jobs", [job]) if "rw" in one]
    if not jobs or not all(one.get("size") for one in jobs):
        return None
    found = 0
    for one in jobs:
        each = one.get("nrfiles", 1)
        files = each * (1 if one.get("shared") == "whole" else one.get("numjobs", 1))
        found += files * max(math.ceil(one["size"] / each / object_bytes), 1)
    if any(one["rw"].startswith("rand") for one in jobs):
        return float(found)
    return float(min(found, (trial.total_read_bytes + trial.total_write_bytes) // object_bytes + len(jobs)))


def of_job(trial: TrialRow) -> Figures:
    """Whether it reads in order through the caches, as what read-ahead helps, and how long it pauses."""
    job = json.loads(trial.job)
    jobs = [one for one in job.get("jobs", [job]) if "rw" in one]
    if not jobs:
        return {"streamed": None, "pause_s": None}
    return {
        "streamed": float(all(one["rw"] == "read" and not one.get("direct") for one in jobs)),
        "pause_s": max(one.get("thinktime_ns", 0) for one in jobs) / 1e9,
    }
