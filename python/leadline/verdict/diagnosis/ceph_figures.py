"""Figures of OSDs by their counters, of metadata servers, of servers' processes on this host, and of the
cluster.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean, median
from typing import Any

from leadline.store.tables import TrialRow
from leadline.verdict.diagnosis.samples import Figures, Samples, outlier, ratio, seconds

# What stands before a cluster is a proxy, whatever its kind.
_SUBJECTS = {
    "osd": ("osd.",),
    "mds": ("mds.",),
    "mon": ("mon.",),
    "mgr": ("mgr.",),
    "proxy": ("proxy.", "rgw."),
}
_LOOKS_MIN = 5  # two of three looks are chance
_CLEARED = 0.5  # of a core: no cause accuses a thread of that little


def of_daemons(samples: Samples) -> Figures:
    """Processes of Ceph's daemons and of gateways, where they run on this host."""
    found: Figures = {}
    for kind, prefixes in _SUBJECTS.items():
        subjects = [one for prefix in prefixes for one in samples.subjects("daemon", prefix)]
        whole = [one for one in subjects if "/" not in one]
        throttled = {one: samples.mean("daemon", one, "throttled") or 0.0 for one in whole}
        periods = {one: samples.mean("daemon", one, "periods") for one in whole}
        stopped = {one: samples.mean("daemon", one, "stopped") or 0.0 for one in whole}
        cpus = {one: samples.mean("daemon", one, "cpu") for one in subjects}
        threads = {one: value for one, value in of_threads(samples, "daemon").items() if one in cpus}
        most = max(throttled, key=lambda one: throttled[one], default=None)
        still = max(stopped, key=lambda one: stopped[one], default=None)
        thread = max(threads, key=lambda one: threads[one], default=None)
        cores = sum(cpus[one] or 0.0 for one in whole) if whole else None
        found |= {
            f"{kind}_throttled": most,
            f"{kind}_throttled_per_s": throttled[most] if most is not None else None,
            f"{kind}_throttled_part": ratio(throttled[most], periods[most]) if most is not None else None,
            f"{kind}_stopped": still,
            f"{kind}_stopped_share": stopped[still] if still is not None else None,
            f"{kind}_thread": None if thread is None else thread.rpartition(".")[0],
            f"{kind}_thread_share": _busiest(threads, thread, map(cpus.get, whole)),
            f"{kind}_cores": cores,
        }
    return found


def of_threads(samples: Samples, source: str) -> dict[str, float]:
    """Cores that each thread used on average: there is no sample of one that was idle at a look."""
    values: dict[str, list[float]] = {}
    looks = set()
    for subject, at, value in samples.moments(source, "cpu"):
        if "/" in subject:
            values.setdefault(subject, []).append(value)
            looks.add(at)
    return {subject: sum(found) / len(looks) for subject, found in values.items()}


def _busiest(
    threads: Mapping[str, float], thread: str | None, processes: Iterable[float | None]
) -> float | None:
    """Where no thread was seen, none used more than its process: that can clear threads, and accuses none."""
    if thread is not None:
        return threads[thread]
    most = max((one for one in processes if one is not None), default=None)
    return most if most is not None and most < _CLEARED else None


def of_logs(samples: Samples) -> Figures:
    """What OSDs spend on writing their own log, of what they spend at all."""
    threads = {one: value for one, value in of_threads(samples, "daemon").items() if one.startswith("osd.")}
    logs = {
        one.partition("/")[0]: value
        for one, value in threads.items()
        if one.partition("/")[2].rpartition(".")[0] == "log"
    }
    name = max(logs, key=lambda one: logs[one], default=None)
    whole = None if name is None else samples.mean("daemon", name, "cpu")
    seen = any(threads.values())
    return {
        "logging_osd": name,
        "logging_share": logs[name] / whole if name is not None and whole else 0.0 if seen else None,
    }


def of_blocked(samples: Samples) -> Figures:
    """The OSD that waits for its device most, beside the others."""
    shares = {
        one: samples.mean("daemon", one, "blocked") or 0.0
        for one in samples.subjects("daemon", "osd.")
        if len(samples.values("daemon", one, "blocked")) >= _LOOKS_MIN
    }
    name = max(shares, key=lambda one: shares[one], default=None)
    others = [share for one, share in shares.items() if one != name]
    return {
        "blocked_osd": name,
        "blocked_osd_share": shares[name] if name is not None else None,
        "blocked_others_share": median(others) if others else None,
    }


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


_OWN = {
    "store_commit_latency": "commit_s",
    "kv_sync_latency": "kv_sync_s",
    "store_aio_wait_latency": "aio_wait_s",
    "kv_commit_latency": "kv_commit_s",
}
_WRITES = ("operations_written", "subops")
_TIMES = {
    "subop_write_latency": ("subops",),
    "store_commit_latency": _WRITES,
    "op_write_latency": ("operations_written",),
    "op_read_latency": ("operations_read",),
}
_FEW_READS = 0.05  # for each write


def of_osds(samples: Samples) -> Figures:
    """All OSDs together, by their operations."""

    def over_all(metric: str, by: tuple[str, ...]) -> float | None:
        parts = []
        for osd in samples.subjects("ceph", "osd."):
            value = samples.weighted("ceph", osd, metric, by)
            count = sum(samples.mean("ceph", osd, name) or 0.0 for name in by)
            if value is not None:
                parts.append((value, count))
        total = sum(count for _, count in parts)
        if not parts or total <= 0:
            return seconds(fmean(value for value, _ in parts)) if parts else None
        return seconds(sum(value * count for value, count in parts) / total)

    written, read = ("operations_written",), ("operations_read",)
    whole, process = over_all("op_write_latency", written), over_all("op_write_process_latency", written)
    writes = samples.total("ceph", "osd.", "operations_written")
    commit = over_all("store_commit_latency", written)
    return {
        "osd_operations_per_s": samples.total("ceph", "osd.", "operations_written"),
        "osd_write_s": whole,
        "osd_write_queue_s": None if whole is None or process is None else max(whole - process, 0.0),
        "osd_write_prepare_s": over_all("op_write_prepare_latency", written),
        "osd_peers_s": None
        if whole is None or process is None or commit is None
        else max(process - commit, 0.0),
        "osd_read_s": over_all("op_read_latency", read),
        "osd_dispatch_s": over_all("op_before_queue_latency", (*_WRITES, *read)),
        "osd_store_read_s": over_all("store_read_latency", read),
        "osd_store_commit_s": commit,
        "osd_aio_wait_s": over_all("store_aio_wait_latency", written),
        "osd_kv_queued_s": over_all("store_kv_queued_latency", written),
        "osd_kv_sync_s": over_all("kv_sync_latency", written),
        "osd_store_throttle_s": over_all("store_throttle_latency", written),
        "osd_deferred_share": ratio(samples.total("ceph", "osd.", "deferred_writes"), writes),
        "osd_queue_share": None if not whole or process is None else max(1.0 - process / whole, 0.0),
        "osd_read_queue_s": difference(
            over_all("op_read_latency", read), over_all("op_read_process_latency", read)
        ),
        "mclock_waiting": samples.total("ceph", "osd.", "mclock_waiting"),
        "osd_penalty_reads": _reads_before_writes(samples, writes),
        "recovery_per_s": samples.total("ceph", "osd.", "recovery"),
    }


def _reads_before_writes(samples: Samples, writes: float | None) -> float | None:
    """Of stores for parts of blocks, and of other OSDs for parts of stripes: those that no client asked for.

    Stores count the latter with all reads, so that they can be told only where clients hardly read.
    """
    own = samples.total("ceph", "osd.", "penalty_reads")
    asked = samples.total("ceph", "osd.", "operations_read") or 0.0
    every = samples.total("ceph", "osd.", "store_reads")
    if own is not None and every is not None and writes and asked <= _FEW_READS * writes:
        return (own + max(every - asked, 0.0)) / writes
    return ratio(own, writes)


def difference(whole: float | None, process: float | None) -> float | None:
    """What is left of a time without a part of it, never below 0."""
    return None if whole is None or process is None else max(whole - process, 0.0)


def of_slow_osd(samples: Samples, objects: float | None) -> Figures:
    """The OSD that takes longer than the others, and what its store waits for; the one with the most to do.

    `objects` is how many the work has: of few, chance alone gives one OSD much more than the others (Raab and
    Steger, Balls into Bins, 1998).
    """
    factors: dict[str, float] = {}
    for metric, by in _TIMES.items():
        # By operations: a single slow one, as the first of a trial may be, is not what the others are.
        osds = samples.by_subject("ceph", "osd.", metric)
        means = {one: samples.weighted("ceph", one, metric, by) for one in osds}
        found = outlier({one: mean for one, mean in means.items() if mean is not None})
        if found is not None:
            factors[found[0]] = max(factors.get(found[0], 0.0), found[1])
    name = max(factors, key=lambda one: factors[one], default=None)
    load: dict[str, float] = {}
    for way in ("read", "written"):
        for osd, count in samples.by_subject("ceph", "osd.", f"operations_{way}").items():
            load[osd] = load.get(osd, 0.0) + count
    own = {metric: samples.weighted("ceph", name or "", metric, _WRITES) for metric in _OWN}
    busy = max(load, key=lambda one: load[one], default=None)
    return {
        "slow_osd": name,
        "slow_osd_factor": factors[name] if name is not None else None,
        **{f"slow_osd_{figure}": seconds(own[metric]) for metric, figure in _OWN.items()},
        "loaded_osd": busy,
        "loaded_osd_factor": load[busy] * len(load) / sum(load.values())
        if busy is not None and sum(load.values()) > 0
        else None,
        "chance_factor": 1.0 + math.sqrt(2.0 * len(load) * math.log(len(load)) / objects)
        if load and objects
        else None,
    }
