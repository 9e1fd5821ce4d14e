"""Processes of servers, where they run on this host."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from statistics import median

from leadline.verdict.diagnosis.samples import Samples
from leadline.verdict.diagnosis.seen.values import Figures, ratio

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
