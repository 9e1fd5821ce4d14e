"""Reads what Ceph answers: pure functions from JSON values to numbers, and which health checks bar a load."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from leadline.counters.catalogue import Names, SampledFigure, TrialFigure
from leadline.observe.reading import ClusterState

# `SLOW_OPS` counts operations since Nautilus; the other two did so before.
SLOW_OPERATIONS = frozenset({"SLOW_OPS", "REQUEST_SLOW", "REQUEST_STUCK"})
# These count metadata servers, not operations; each means that one operation at least is slow.
SLOW_SERVERS = frozenset({"MDS_SLOW_METADATA_IO", "MDS_SLOW_REQUEST"})

IN_ERROR = "the cluster is in HEALTH_ERR"
SLOW = "the cluster reports slow operations"


def slow_checks(checks: Mapping[str, str]) -> dict[str, str]:
    """Those of `checks` (codes with their summaries) that report slow operations."""
    return {code: text for code, text in checks.items() if code in SLOW_OPERATIONS | SLOW_SERVERS}


def cluster_trouble(health: str, checks: Mapping[str, str]) -> str:
    """Why a cluster must not get more load, with its checks; "" where nothing forbids it."""
    if health == "HEALTH_ERR":
        return f"{IN_ERROR} ({_named(checks)})"
    if slow := slow_checks(checks):
        return f"{SLOW} ({_named(slow)})"
    return ""


def _named(checks: Mapping[str, str]) -> str:
    return ", ".join(f"{code}: {text}" for code, text in checks.items())


# Flags that every cluster carries and that say nothing about its condition.
_USUAL_FLAGS = frozenset({"sortbitwise", "recovery_deletes", "purged_snapdirs", "pglog_hardlimit"})
_RECOVERY_STATES = frozenset({"recovering", "recovery_wait", "backfilling", "backfill_wait"})
_SCRUB_STATES = frozenset({"scrubbing", "deep"})
_FIRST_NUMBER = re.compile(r"\d+")


def field_at(dump: Mapping[str, Any], path: str) -> Any:
    """What stands at SECTION.NAME of a perf dump, or at SECTION.NAME.PART; None where nothing does."""
    section, _, rest = path.partition(".")
    name, _, part = rest.partition(".")
    counters = dump.get(section)
    found = counters.get(name) if isinstance(counters, Mapping) else None
    if not part:
        return found
    return found.get(part) if isinstance(found, Mapping) else None


def number(dump: Mapping[str, Any], names: Names) -> int | float | None:
    """The first of `names` that is a plain number; of SECTION-*.NAME the sum over such sections."""
    for path in names:
        value = _over_sections(dump, path) if "*" in path else field_at(dump, path)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return value
    return None


def _over_sections(dump: Mapping[str, Any], path: str) -> int | float | None:
    begin, _, name = path.partition("*.")
    sections = [section for section in dump if section.startswith(begin)]
    return sum_or_none(number(dump, (f"{section}.{name}",)) for section in sections) if sections else None


def figure_in(dump: Mapping[str, Any], figure: TrialFigure, place: str) -> int | None:
    """A trial's figure in one daemon's perf dump; None: this release does not count it.

    Ceph counts times in seconds.
    """
    total = sum_or_none(number(dump, names) for names in figure.places[place])
    if total is None:
        return None
    return round(total * 1e9) if figure.unit == "ns" else int(total)


@dataclass(frozen=True)
class Average:
    """A time average of Ceph: seconds in all, over `count` events; both only grow."""

    sum_s: float
    count: int


def average(dump: Mapping[str, Any], names: Names) -> Average | None:
    """The first of `names` that is a long-running average (`avgcount`, `sum`)."""
    for path in names:
        value = field_at(dump, path)
        total, count = (
            (value.get("sum"), value.get("avgcount")) if isinstance(value, Mapping) else (None, None)
        )
        if isinstance(total, int | float) and isinstance(count, int | float):
            return Average(float(total), int(count))
    return None


def mean_between_ms(before: Average | None, after: Average | None) -> float | None:
    """The mean of the events between two readings; None without events or after a restart."""
    if before is None or after is None or after.count <= before.count or after.sum_s < before.sum_s:
        return None
    return (after.sum_s - before.sum_s) / (after.count - before.count) * 1000


def rate_between(before: float | None, after: float | None, elapsed_s: float) -> float | None:
    """Growth per second; None where either is missing or the counter went backwards."""
    if before is None or after is None or after < before or elapsed_s <= 0:
        return None
    return (after - before) / elapsed_s


def perf_rows(
    before: Mapping[str, Any] | None,
    after: Mapping[str, Any],
    elapsed_s: float,
    figures: Iterable[SampledFigure],
) -> list[tuple[str, float, str]]:
    """(metric, value, unit) between two perf dumps of one daemon; what cannot be told has no row."""
    rows: list[tuple[str, float, str]] = []
    for figure in figures:
        value: float | None = None
        if figure.kind == "gauge":
            value = number(after, figure.names)
        elif before is not None and figure.kind == "rate":
            value = rate_between(number(before, figure.names), number(after, figure.names), elapsed_s)
        elif before is not None:
            value = mean_between_ms(average(before, figure.names), average(after, figure.names))
        if value is not None:
            rows.append((figure.metric, float(value), figure.unit))
    return rows


def sum_or_none(values: Iterable[int | float | None]) -> int | float | None:
    """A sum of which no part is missing."""
    total: int | float = 0
    for value in values:
        if value is None:
            return None
        total += value
    return total


def osd_perf(answer: Mapping[str, Any]) -> dict[int, tuple[float, float]]:
    """`ceph osd perf`: OSD -> (commit, apply) latency in ms. Nautilus moved the list below `osdstats`."""
    inner = answer.get("osdstats", answer)
    found = {}
    for entry in inner.get("osd_perf_infos", []):
        stats = entry.get("perf_stats", {})
        if "commit_latency_ms" in stats and "apply_latency_ms" in stats:
            found[int(entry["id"])] = (_milliseconds(stats, "commit"), _milliseconds(stats, "apply"))
    return found


def _milliseconds(stats: Mapping[str, Any], which: str) -> float:
    fine = stats.get(f"{which}_latency_ns")
    return float(stats[f"{which}_latency_ms"]) if fine is None else float(fine) / 1e6


def osdmap_epoch(status: Mapping[str, Any]) -> int | None:
    """The OSD map's epoch in `ceph status`; it was one level deeper before Octopus."""
    value = _osdmap(status).get("epoch")
    return value if isinstance(value, int) else None


def _osdmap(status: Mapping[str, Any]) -> Mapping[str, Any]:
    outer: Mapping[str, Any] = status.get("osdmap") or {}
    inner = outer.get("osdmap")
    return inner if isinstance(inner, Mapping) else outer


def up_osds(osd_dump: Mapping[str, Any]) -> tuple[int, ...]:
    """The OSDs that are up."""
    return tuple(int(osd["osd"]) for osd in osd_dump.get("osds", []) if osd.get("up") == 1)


def last_up_epoch(osd_dump: Mapping[str, Any]) -> int | None:
    """The latest epoch in which an OSD that is up came up."""
    epochs = [osd["up_from"] for osd in osd_dump.get("osds", []) if osd.get("up") == 1 and "up_from" in osd]
    return max(epochs, default=None)


def osd_endpoints(osd_dump: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """Addresses and ports of OSDs that are up, for clients and for each other."""
    for osd in osd_dump.get("osds", []):
        for kind in ("public_addrs", "cluster_addrs"):
            if osd.get("up") == 1:
                yield from _endpoints(osd.get(kind))


def mds_endpoints(fs_dump: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """Addresses and ports of the metadata servers of all file systems."""
    for system in fs_dump.get("filesystems", []):
        for server in ((system.get("mdsmap") or {}).get("info") or {}).values():
            yield from _endpoints(server.get("addrs"))


def _endpoints(addresses: Any) -> Iterator[tuple[str, int]]:
    for one in (addresses or {}).get("addrvec") or []:
        address = str(one.get("addr", ""))
        port = address.rpartition(":")[2]
        if port.isdigit():
            yield _host(address), int(port)


def osd_addresses(osd_dump: Mapping[str, Any]) -> tuple[str, ...]:
    """The hosts' public addresses, each once, without port."""
    hosts = (_host(str(osd.get("public_addr", ""))) for osd in osd_dump.get("osds", []) if osd.get("up") == 1)
    return tuple(dict.fromkeys(host for host in hosts if host and host not in ("-", ":", "0.0.0.0", "::")))  # noqa: S104


def _host(address: str) -> str:
    """`10.0.0.1:6800/123` or `[fd00::1]:6800/123` without what follows the address."""
    if address.startswith("["):
        return address[1:].partition("]")[0]
    return address.partition(":")[0]


def cluster_state(status: Mapping[str, Any], osd_dump: Mapping[str, Any] | None) -> ClusterState:
    """One state from `ceph status` and `ceph osd dump` (None: flags and ratios are not observable)."""
    checks = _checks(status)
    pgs = _placement_groups(status)
    pgmap: Mapping[str, Any] = status.get("pgmap") or {}
    osdmap = _osdmap(status)
    used, total = pgmap.get("bytes_used"), pgmap.get("bytes_total")
    states = [set(state.split("+")) for state in pgs]
    return ClusterState(
        health=str((status.get("health") or {}).get("status", "unknown")),
        checks=checks,
        pgs=pgs,
        flags=None if osd_dump is None else _flags(osd_dump),
        slow_ops=_slow_ops(checks),
        degraded_objects=_objects(pgmap, "degraded", states, "degraded"),
        misplaced_objects=_objects(pgmap, "misplaced", states, "remapped"),
        recovering=any(state & _RECOVERY_STATES for state in states),
        scrubbing=sum(count for state, count in pgs.items() if set(state.split("+")) & _SCRUB_STATES),
        osds=osdmap.get("num_osds"),
        osds_up=osdmap.get("num_up_osds"),
        osds_in=osdmap.get("num_in_osds"),
        used_share=used / total if isinstance(used, int) and isinstance(total, int) and total else None,
        nearfull_share=None if osd_dump is None else osd_dump.get("nearfull_ratio"),
        full_share=None if osd_dump is None else osd_dump.get("full_ratio"),
    )


def _checks(status: Mapping[str, Any]) -> dict[str, str]:
    checks = (status.get("health") or {}).get("checks") or {}
    return {code: str((check.get("summary") or {}).get("message", "")) for code, check in checks.items()}


def _placement_groups(status: Mapping[str, Any]) -> dict[str, int]:
    entries: Sequence[Mapping[str, Any]] = (status.get("pgmap") or {}).get("pgs_by_state") or []
    return {str(entry["state_name"]): int(entry["count"]) for entry in entries}


def _flags(osd_dump: Mapping[str, Any]) -> tuple[str, ...]:
    flags = osd_dump.get("flags_set")
    if not isinstance(flags, list):
        flags = str(osd_dump.get("flags", "")).split(",")
    return tuple(sorted(str(flag) for flag in flags if flag and flag not in _USUAL_FLAGS))


def _slow_ops(checks: Mapping[str, str]) -> int:
    """Operations that the cluster calls slow, at least. Without a check, none are slow."""
    total = 0
    for code, text in slow_checks(checks).items():
        found = _FIRST_NUMBER.search(text) if code in SLOW_OPERATIONS else None
        # Of one that has just become slow Ceph reports "0 slow ops, oldest one blocked for 30 sec".
        total += max(int(found.group()), 1) if found else 1
    return total


def _objects(pgmap: Mapping[str, Any], kind: str, states: Sequence[set[str]], state: str) -> int | None:
    """Ceph leaves the key out where the number is 0: it is unknown only if a group is in that state."""
    value = pgmap.get(f"{kind}_objects")
    if isinstance(value, int):
        return value
    return None if any(state in names for names in states) or not states else 0
