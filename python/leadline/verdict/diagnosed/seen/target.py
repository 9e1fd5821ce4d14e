"""What is known of the target itself, and of the jobs that ask it."""

from __future__ import annotations

import json

from leadline.store.tables import TrialRow
from leadline.study.target import TargetFacts
from leadline.verdict.diagnosed.seen.values import Figure, Figures


def of_target(facts: TargetFacts | None) -> Figures:
    """A gateway before it, and how it protects what it keeps; None where the target is not known."""
    if facts is None:
        return {"behind_server": 0.0, "coded": None}
    protection = facts.ceph.protection if facts.ceph is not None else None
    return {
        "behind_server": float(facts.behind_server),
        "coded": None if protection is None else float(protection == "erasure"),
    }


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
