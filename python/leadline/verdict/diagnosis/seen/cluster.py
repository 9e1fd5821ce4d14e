"""Metadata servers, and the state of the cluster."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from leadline.store.tables import TrialRow
from leadline.verdict.diagnosis.samples import Samples
from leadline.verdict.diagnosis.seen.values import Figures, seconds

_FULL_CHECKS = (
    "OSD_NEARFULL",
    "OSD_BACKFILLFULL",
    "OSD_FULL",
    "POOL_NEAR_FULL",
    "POOL_NEARFULL",
    "POOL_FULL",
)
# Figures that are 1 where the cluster raised one of these checks at either end.
_CHECKS = {
    "cache_oversized": ("MDS_CACHE_OVERSIZED",),
    "caps_recalled": ("MDS_CLIENT_RECALL", "MDS_CLIENT_LATE_RELEASE"),
    "journal_behind": ("MDS_TRIM",),
    "monitors_down": ("MON_DOWN",),
    "managers_down": ("MGR_DOWN",),
    "clocks_apart": ("MON_CLOCK_SKEW",),
    "pings_slow": ("OSD_SLOW_PING_TIME_BACK", "OSD_SLOW_PING_TIME_FRONT"),
    "versions_differ": ("DAEMON_OLD_VERSION", "OSD_UPGRADE_FINISHED"),
}


def of_metadata(samples: Samples) -> Figures:
    """Metadata servers, those that answered requests."""
    served = {
        one: value
        for one, value in samples.by_subject("ceph", "mds.", "client_requests").items()
        if value > 0
    }
    name = max(served, key=lambda one: served[one], default="")
    return {
        "mds_requests_per_s": sum(served.values()) if samples.subjects("ceph", "mds.") else None,
        "mds_reply_s": seconds(samples.weighted("ceph", name, "reply_latency", ("client_requests",))),
        "mds_journal_s": seconds(samples.mean("ceph", name, "journal_latency")),
        "mds_caps": samples.mean("ceph", name, "caps"),
        "mds_ranks": float(len(samples.by_subject("ceph", "mds.", "client_requests"))) or None,
        "mds_lock_part": samples.mean("ceph", name, "lock_part"),
        "mds_inodes": samples.mean("ceph", name, "inodes"),
    }


def requests_begun(samples: Samples) -> float | None:
    """Requests a second to all metadata servers, without those by which a trial opens its files."""
    known = [
        rate
        for one in samples.by_subject("ceph", "mds.", "client_requests")
        if (rate := samples.usual("ceph", one, "client_requests")) is not None
    ]
    return sum(known) if known else None


def of_cluster(trial: TrialRow, samples: Samples) -> Figures:
    """Its state at both ends of the trial, and what was sampled between."""
    states = [state for text in (trial.start_state, trial.end_state) if (state := json.loads(text))]
    checks = {name: text for state in states for name, text in (state.get("checks") or {}).items()}
    flags = sorted({flag for state in states for flag in (state.get("flags") or ())})
    down = [
        state["osds"] - state["osds_up"]
        for state in states
        if state.get("osds") is not None and state.get("osds_up") is not None
    ]
    up = samples.values("ceph", "cluster", "osds_up")
    known = [state["osds"] for state in states if state.get("osds") is not None]
    if up and known:
        down.append(known[0] - min(up))
    full = [name for name in _FULL_CHECKS if name in checks]
    seen = bool(states)
    return {
        "health_checks": ", ".join(sorted(checks)) if seen else None,
        "flags": ", ".join(flags)
        if seen and any(state.get("flags") is not None for state in states)
        else None,
        "osds_down": float(max(down)) if down else None,
        "osds_down_part": samples.part("ceph", "cluster", "osds_up", lambda up: up < known[0])
        if known
        else None,
        "pgs_not_clean": trial.pgs_not_clean_max,
        "pgs_scrubbing": trial.pgs_scrubbing_max,
        "scrubbing_part": samples.part("ceph", "cluster", "pgs_scrubbing", lambda groups: groups > 0),
        "recovering": float(any(state.get("recovering") for state in states)) if seen else None,
        "recovering_part": _recovering_part(samples),
        "full_checks": ", ".join(full) if seen else None,
        "full_count": float(len(full)) if seen else None,
        "slow_ops": samples.most("ceph", "cluster", "slow_ops"),
        "osds": float(max(known)) if known else None,
        "groups_per_osd": _groups_per_osd(states),
        "pgs_snaptrim": _most_groups(states, "snaptrim"),
        "paused": float(any(flag.startswith("pause") for flag in flags)) if seen else None,
        **{
            name: float(any(check in checks for check in codes)) if seen else None
            for name, codes in _CHECKS.items()
        },
    }


def _recovering_part(samples: Samples) -> float | None:
    """The part of the time in which the OSD that recovered most did."""
    parts = [
        samples.part("ceph", osd, "recovery", lambda rate: rate > 0)
        for osd in samples.by_subject("ceph", "osd.", "recovery")
    ]
    return max((part for part in parts if part is not None), default=None)


def _groups_per_osd(states: Sequence[Mapping[str, Any]]) -> float | None:
    """Of the whole cluster, each group once: as primary an OSD has so many on average."""
    for state in states:
        if state.get("pgs") and state.get("osds_up"):
            return float(sum(state["pgs"].values()) / state["osds_up"])
    return None


def _most_groups(states: Sequence[Mapping[str, Any]], part: str) -> float | None:
    """The most placement groups in a state that has this part."""
    counts = [
        sum(count for name, count in state["pgs"].items() if part in name.split("+"))
        for state in states
        if state.get("pgs") is not None
    ]
    return float(max(counts)) if counts else None
