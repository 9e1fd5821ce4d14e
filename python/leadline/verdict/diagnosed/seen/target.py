"""What is known of the target itself, and of the jobs that ask it."""

from __future__ import annotations

import json

from leadline.store.tables import TrialRow
from leadline.study.target import TargetFacts
from leadline.verdict.diagnosed.seen.values import Figures


def of_target(facts: TargetFacts | None) -> Figures:
    """A gateway before it, and how it protects what it keeps; None where the target is not known."""
    if facts is None:
        return {"behind_server": 0.0, "coded": None}
    protection = facts.ceph.protection if facts.ceph is not None else None
    return {
        "behind_server": float(facts.behind_server),
        "coded": None if protection is None else float(protection == "erasure"),
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
