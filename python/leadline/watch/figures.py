"""From what was seen of a mount to rates, sizes and shares: pure functions, no judgement.

A figure that could not be seen is None, and `not_seen` says why.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from leadline.watch.store import Seen
from leadline.watch.work import FileWork, MountWork, ProcessWork, Tally, work_of


@dataclass(frozen=True)
class WatchFacts:
    """What rules and reports look at: `values` by name (docs/watch.md), processes, files, what was not seen.

    `about` is what the figures are of in words: what lies below the path, or the whole mount. `rest` is the
    work on the rest of the file system, None where that was not seen apart.
    """

    values: Mapping[str, float | str | None]
    processes: tuple[ProcessWork, ...]
    files: tuple[FileWork, ...]
    rest: Tally | None
    about: str
    source: str
    not_seen: Mapping[str, str] = field(default_factory=dict)


def watch_facts(seen: Seen) -> WatchFacts:
    """All figures of a watch."""
    not_seen: dict[str, str] = {}
    found = work_of(seen, not_seen)
    values: dict[str, float | str | None] = {
        "elapsed_s": seen.elapsed_s,
        "users": float(
            sum(row.seen.is_below or bool(row.below and row.below.work.calls) for row in found.processes)
        ),
        "traced": float(seen.calls is not None),
    }
    values |= _rates(found.per_s) | {"ended_share": _ended_share(found.processes)}
    values |= _rest_rates(found.rest)
    values |= _standing(seen)
    values |= _client(seen, not_seen)
    values |= _wire(seen, not_seen)
    values |= _cluster(seen, not_seen)
    values |= _host(seen)
    if seen.unseen:
        not_seen["processes"] = "; ".join(seen.unseen)
    return WatchFacts(values, found.processes, found.files, found.rest, found.about, found.source, not_seen)


def _rest_rates(rest: Tally | None) -> dict[str, float | str | None]:
    names = {
        "rest_read_bytes_per_s": "bytes_read",
        "rest_written_bytes_per_s": "bytes_written",
        "rest_metadata_per_s": "metadata",
    }
    if rest is None:
        return dict.fromkeys(names)
    return {name: getattr(rest.per_s, of) for name, of in names.items()}


def _rates(work: MountWork | None) -> dict[str, float | str | None]:
    names = (
        *("reads_per_s", "writes_per_s", "metadata_per_s", "syncs_per_s", "read_bytes_per_s"),
        *("written_bytes_per_s", "mean_read_bytes", "mean_write_bytes", "consecutive_read_share"),
        *("consecutive_write_share", "read_share", "write_share", "metadata_share", "in_calls"),
        *("mean_read_s", "mean_write_s", "mean_metadata_s"),
    )
    if work is None:
        return dict.fromkeys(names)
    total_s = work.spent_s
    return {
        "reads_per_s": work.reads,
        "writes_per_s": work.writes,
        "metadata_per_s": work.metadata,
        "syncs_per_s": work.syncs,
        "read_bytes_per_s": work.bytes_read,
        "written_bytes_per_s": work.bytes_written,
        "mean_read_bytes": _over(work.bytes_read, work.reads),
        "mean_write_bytes": _over(work.bytes_written, work.writes),
        "consecutive_read_share": _over(work.consecutive_reads, work.reads),
        "consecutive_write_share": _over(work.consecutive_writes, work.writes),
        "read_share": _over(work.read_s, total_s),
        "write_share": _over(work.write_s, total_s),
        "metadata_share": _over(work.metadata_s, total_s),
        "in_calls": total_s,
        "mean_read_s": _over(work.read_s, work.reads),
        "mean_write_s": _over(work.write_s, work.writes),
        "mean_metadata_s": _over(work.metadata_s, work.metadata),
    }


def _ended_share(processes: Sequence[ProcessWork]) -> float | None:
    """The part of the time in calls that is of processes which ended: of those some calls were not seen."""
    spent = [
        (row.seen.ended, row.below.work.spent_s) for row in processes if row.below and not row.everywhere
    ]
    return _over(sum(spent_s for ended, spent_s in spent if ended), sum(spent_s for _, spent_s in spent))


def _standing(seen: Seen) -> dict[str, float | str | None]:
    """Threads in calls that do not end: how many on average, and the one that stood longest."""
    longest = max(seen.waits, key=lambda wait: wait.stood_s, default=None)
    if longest is None:
        return {"standing_threads": 0.0, "longest_wait": None, "longest_wait_s": None}
    names = {process.pid: process.name for process in seen.processes}
    who = f"{names.get(longest.pid, 'a process')} (pid {longest.pid})"
    where = longest.path.removeprefix(seen.path.rstrip("/")).lstrip("/") or longest.path
    return {
        "standing_threads": sum(wait.stood_s for wait in seen.waits) / seen.elapsed_s,
        "longest_wait": f"{who} in {longest.call} of {where}",
        "longest_wait_s": longest.stood_s,
    }


def _over(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def _client(seen: Seen, not_seen: dict[str, str]) -> dict[str, float | str | None]:
    """The client daemon: CPU by thread, cache, what is in flight, latencies of what it waited for."""
    if seen.client is None:
        not_seen["client"] = f"the client's own counters: {seen.client_reason}"
    threads: dict[str, list[float]] = {}
    for _, source, subject, metric, value, _ in seen.samples:
        if source == "client" and metric == "cpu" and "/" in subject:
            threads.setdefault(subject.rpartition("/")[2], []).append(value)
    looks = max((len(values) for values in threads.values()), default=0)
    loads = {name: sum(values) / looks for name, values in threads.items()}
    busiest = max(loads, key=lambda name: loads[name], default=None)
    asked, cached = seen.change.get("client_read_bytes"), seen.change.get("client_cached_bytes")
    cpu_ns = seen.change.get("client_cpu_ns")
    return {
        "client_thread": busiest,
        "client_thread_share": None if busiest is None else loads[busiest],
        "client_cores": None if cpu_ns is None else cpu_ns / 1e9 / seen.elapsed_s,
        "client_cached_share": None if asked is None or cached is None else _over(cached, asked),
        "client_in_flight": _mean(seen, "client", "operations_in_flight"),
        "client_laggy": _peak(seen, "client", "operations_laggy"),
        "client_metadata_ms": _mean(seen, "client", "metadata_latency"),
        "client_operations_per_s": _sum(
            _mean(seen, "client", "operations_read"), _mean(seen, "client", "operations_written")
        ),
    }


def _sum(*values: float | None) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _series(seen: Seen, source: str, metric: str) -> list[float]:
    return [value for _, its, _, name, value, _ in seen.samples if its == source and name == metric]


def _mean(seen: Seen, source: str, metric: str) -> float | None:
    values = _series(seen, source, metric)
    return statistics.fmean(values) if values else None


def _peak(seen: Seen, source: str, metric: str) -> float | None:
    return max(_series(seen, source, metric), default=None)


def _wire(seen: Seen, not_seen: dict[str, str]) -> dict[str, float | str | None]:
    found: dict[str, float | str | None] = {}
    for name in ("sent", "received"):
        amount = seen.change.get(f"wire_{name}_bytes")
        found[f"wire_{name}_bytes_per_s"] = None if amount is None else amount / seen.elapsed_s
    if found["wire_sent_bytes_per_s"] is None:
        not_seen["wire"] = (
            f"bytes on the wire: {seen.change['reasons'].get('wire_sent_bytes', 'not observable')}"
        )
    limit = seen.change.get("wire_limit_bytes_per_s")
    busiest = max((value for value in found.values() if isinstance(value, float)), default=None)
    found["wire_limit_bytes_per_s"] = None if limit is None else float(limit)
    found["wire_used_share"] = None if limit is None or busiest is None else busiest / limit
    return found


def _cluster(seen: Seen, not_seen: dict[str, str]) -> dict[str, float | str | None]:
    state: Mapping[str, Any] | None = seen.change.get("state_end")
    if state is None and seen.access.startswith("ceph"):
        not_seen["cluster"] = f"the cluster: {seen.change['reasons'].get('state', 'not observable')}"
    commits: dict[str, list[float]] = {}
    for _, source, subject, metric, value, _ in seen.samples:
        if source == "ceph" and metric == "commit_latency" and subject.startswith("osd."):
            commits.setdefault(subject, []).append(value)
    means = {name: statistics.fmean(values) for name, values in commits.items()}
    slowest = max(means, key=lambda name: means[name], default=None)
    rounds = [round_ for round_ in zip(*commits.values(), strict=False) if max(round_) > 0]
    names = list(commits)
    led = sum(slowest == names[max(range(len(names)), key=round_.__getitem__)] for round_ in rounds)
    return {
        "health": None if state is None else str(state["health"]),
        "checks": None if state is None else "; ".join(state["checks"].values()),
        "not_clean_groups": _peak(seen, "ceph", "pgs_not_clean"),
        "scrubbing_groups": _peak(seen, "ceph", "pgs_scrubbing"),
        "slow_ops": _peak(seen, "ceph", "slow_ops"),
        "recovering": None if state is None else float(bool(state["recovering"])),
        "used_share": None if state is None else state["used_share"],
        "nearfull_share": None if state is None else state["nearfull_share"],
        "slowest_osd": slowest,
        "slowest_osd_s": None if slowest is None else means[slowest] / 1e3,
        "median_osd_s": statistics.median(means.values()) / 1e3 if means else None,
        "osds_seen": float(len(means)),
        "osd_looks": float(len(rounds)),
        "slowest_osd_share": led / len(rounds) if rounds else None,
    }


def _host(seen: Seen) -> dict[str, float | str | None]:
    return {
        "cpu_busy_share": seen.change.get("cpu_busy_share"),
        "cpu_steal_share": seen.change.get("cpu_steal_share"),
    }
