"""Reads what Ceph answers: pure functions from JSON values to numbers.

A counter that a release lacks is None.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from leadline.observe.model import ClusterState

# Flags that every cluster carries and that say nothing about its condition.
_USUAL_FLAGS = frozenset({"sortbitwise", "recovery_deletes", "purged_snapdirs", "pglog_hardlimit"})
_RECOVERY_STATES = frozenset({"recovering", "recovery_wait", "backfilling", "backfill_wait"})
_SCRUB_STATES = frozenset({"scrubbing", "deep"})
_SLOW_OPERATIONS = frozenset({"SLOW_OPS", "REQUEST_SLOW", "REQUEST_STUCK"})
_SLOW_DAEMONS = frozenset({"MDS_SLOW_METADATA_IO", "MDS_SLOW_REQUEST"})
_FIRST_NUMBER = re.compile(r"\d+")


def number(dump: Mapping[str, Any], section: str, *names: str) -> int | float | None:
    """The first of `names` that is a plain number in a section of a perf dump."""
    counters = dump.get(section)
    if not isinstance(counters, Mapping):
        return None
    for name in names:
        value = counters.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return value
    return None


def whole(dump: Mapping[str, Any], section: str, *names: str) -> int | None:
    """As `number`, for counters that are whole."""
    value = number(dump, section, *names)
    return None if value is None else int(value)


@dataclass(frozen=True)
class Average:
    """A time average of Ceph: seconds in all, over `count` events; both only grow."""

    sum_s: float
    count: int


def average(dump: Mapping[str, Any], section: str, *names: str) -> Average | None:
    """The first of `names` that is a long-running average (`avgcount`, `sum`)."""
    counters = dump.get(section)
    if not isinstance(counters, Mapping):
        return None
    for name in names:
        value = counters.get(name)
        if isinstance(value, Mapping) and "avgcount" in value and "sum" in value:
            return Average(float(value["sum"]), int(value["avgcount"]))
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


# metric -> (section, names by age of release): later ones drop the prefix "bluestore_" and say "txc_"
# of transactions.
OSD_AVERAGES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "op_read_latency": ("osd", ("op_r_latency",)),
    "op_read_process_latency": ("osd", ("op_r_process_latency",)),
    "op_write_latency": ("osd", ("op_w_latency",)),
    "op_write_process_latency": ("osd", ("op_w_process_latency",)),
    "op_write_prepare_latency": ("osd", ("op_w_prepare_latency",)),
    "op_before_queue_latency": ("osd", ("op_before_queue_op_lat",)),
    "op_before_dequeue_latency": ("osd", ("op_before_dequeue_op_lat",)),
    "subop_write_latency": ("osd", ("subop_w_latency",)),
    "store_throttle_latency": ("bluestore", ("throttle_lat", "txc_throttle_lat")),
    "store_submit_latency": ("bluestore", ("submit_lat", "txc_submit_lat")),
    "store_commit_latency": ("bluestore", ("commit_lat", "txc_commit_lat")),
    "store_read_latency": ("bluestore", ("read_lat",)),
    "store_aio_wait_latency": ("bluestore", ("state_aio_wait_lat",)),
    "store_kv_queued_latency": ("bluestore", ("state_kv_queued_lat",)),
    "kv_flush_latency": ("bluestore", ("kv_flush_lat",)),
    "kv_commit_latency": ("bluestore", ("kv_commit_lat",)),
    "kv_sync_latency": ("bluestore", ("kv_sync_lat",)),
}
OSD_RATES: Mapping[str, tuple[str, tuple[str, ...], str]] = {
    "client_read": ("osd", ("op_out_bytes",), "B/s"),
    "client_written": ("osd", ("op_in_bytes",), "B/s"),
    "subop_received": ("osd", ("subop_in_bytes",), "B/s"),
    "operations_read": ("osd", ("op_r",), "1/s"),
    "operations_written": ("osd", ("op_w",), "1/s"),
    "subops": ("osd", ("subop",), "1/s"),
    "recovery": ("osd", ("recovery_bytes",), "B/s"),
    "deferred_writes": ("bluestore", ("deferred_write_ops", "issued_deferred_writes"), "1/s"),
    "penalty_reads": ("bluestore", ("write_penalty_read_ops",), "1/s"),
}
OSD_GAUGES: Mapping[str, tuple[str, tuple[str, ...], str]] = {
    "operations_in_progress": ("osd", ("op_wip",), "count"),
    "store_throttle_held": ("throttle-bluestore_throttle_bytes", ("val",), "B"),
    "client_throttle_held": ("throttle-osd_client_bytes", ("val",), "B"),
}
CLIENT_AVERAGES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "metadata_latency": ("client", ("lat",)),
    "reply_latency": ("client", ("reply",)),
    "read_latency": ("client", ("rdlat",)),
    "write_latency": ("client", ("wrlat",)),
    "fsync_latency": ("client", ("fsync",)),
}
CLIENT_RATES: Mapping[str, tuple[str, tuple[str, ...], str]] = {
    "operations_read": ("objecter", ("op_r",), "1/s"),
    "operations_written": ("objecter", ("op_w",), "1/s"),
    "operations_resent": ("objecter", ("op_resend",), "1/s"),
    "cache_hit": ("objectcacher-libcephfs", ("cache_bytes_hit",), "B/s"),
    "cache_miss": ("objectcacher-libcephfs", ("cache_bytes_miss",), "B/s"),
    "writes_blocked": ("objectcacher-libcephfs", ("write_bytes_blocked",), "B/s"),
}
CLIENT_GAUGES: Mapping[str, tuple[str, tuple[str, ...], str]] = {
    "operations_active": ("objecter", ("op_active",), "count"),
    "operations_laggy": ("objecter", ("op_laggy",), "count"),
    "operations_in_flight": ("throttle-objecter_ops", ("val",), "count"),
    "in_flight": ("throttle-objecter_bytes", ("val",), "B"),
}
MDS_AVERAGES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "reply_latency": ("mds", ("reply_latency",)),
    "journal_latency": ("mds_log", ("jlat",)),
    "create_latency": ("mds_server", ("req_create_latency",)),
    "lookup_latency": ("mds_server", ("req_lookup_latency",)),
    "getattr_latency": ("mds_server", ("req_getattr_latency",)),
    "readdir_latency": ("mds_server", ("req_readdir_latency",)),
    "unlink_latency": ("mds_server", ("req_unlink_latency",)),
}
MDS_RATES: Mapping[str, tuple[str, tuple[str, ...], str]] = {
    "requests": ("mds", ("request",), "1/s"),
    "client_requests": ("mds_server", ("handle_client_request",), "1/s"),
    "cap_releases": ("mds", ("handle_client_cap_release",), "1/s"),
    "journal_events": ("mds_log", ("evadd",), "1/s"),
}
MDS_GAUGES: Mapping[str, tuple[str, tuple[str, ...], str]] = {
    "inodes": ("mds", ("inodes",), "count"),
    "caps": ("mds", ("caps",), "count"),
    "inodes_with_caps": ("mds", ("inodes_with_caps",), "count"),
}


def perf_rows(
    before: Mapping[str, Any] | None,
    after: Mapping[str, Any],
    elapsed_s: float,
    tables: tuple[
        Mapping[str, tuple[str, tuple[str, ...]]],
        Mapping[str, tuple[str, tuple[str, ...], str]],
        Mapping[str, tuple[str, tuple[str, ...], str]],
    ],
) -> list[tuple[str, float, str]]:
    """(metric, value, unit) between two perf dumps of one daemon; what cannot be told has no row."""
    averages, rates, gauges = tables
    rows: list[tuple[str, float, str]] = []
    for metric, (section, names, unit) in gauges.items():
        value = number(after, section, *names)
        if value is not None:
            rows.append((metric, float(value), unit))
    if before is None:
        return rows
    for metric, (section, names, unit) in rates.items():
        rate = rate_between(number(before, section, *names), number(after, section, *names), elapsed_s)
        if rate is not None:
            rows.append((metric, rate, unit))
    for metric, (section, names) in averages.items():
        mean = mean_between_ms(average(before, section, *names), average(after, section, *names))
        if mean is not None:
            rows.append((metric, mean, "ms"))
    return rows


@dataclass(frozen=True)
class OsdBytes:
    """Bytes since the daemon started, for one OSD. None: this release does not count them.

    `store_written` is BlueStore's data and padding, and what BlueFS wrote for RocksDB (log and tables).
    `store_read` is what reads did not find in BlueStore's cache.
    """

    client_read: int | None
    client_written: int | None
    subop_received: int | None
    store_read: int | None
    store_written: int | None


def osd_bytes(dump: Mapping[str, Any]) -> OsdBytes:
    """Byte counters of an OSD's perf dump."""
    written = (
        _blue(dump, "write_big_bytes"),
        _blue(dump, "write_small_bytes"),
        whole(dump, "bluestore", "write_pad_bytes", "bluestore_write_pad_bytes"),
        whole(dump, "bluefs", "logged_bytes"),
        whole(dump, "bluefs", "bytes_written_wal"),
        whole(dump, "bluefs", "bytes_written_sst"),
    )
    return OsdBytes(
        client_read=whole(dump, "osd", "op_out_bytes"),
        client_written=whole(dump, "osd", "op_in_bytes"),
        subop_received=whole(dump, "osd", "subop_in_bytes"),
        store_read=_blue(dump, "buffer_miss_bytes"),
        store_written=sum_or_none(written),
    )


def _blue(dump: Mapping[str, Any], name: str) -> int | None:
    return whole(dump, "bluestore", f"bluestore_{name}", name)


def sum_or_none(values: Iterable[int | None]) -> int | None:
    """A sum of which no part is missing."""
    total = 0
    for value in values:
        if value is None:
            return None
        total += value
    return total


def messenger_bytes(dump: Mapping[str, Any]) -> tuple[int | None, int | None]:
    """(sent, received) by all of a daemon's messenger threads."""
    workers = [name for name in dump if name.startswith("AsyncMessenger::Worker-")]
    if not workers:
        return None, None
    sent = sum_or_none(whole(dump, name, "msgr_send_bytes") for name in workers)
    received = sum_or_none(whole(dump, name, "msgr_recv_bytes") for name in workers)
    return sent, received


def cache_bytes(dump: Mapping[str, Any]) -> tuple[int | None, int | None, int | None, int | None]:
    """(asked for, of it found, taken in, sent on) by the cache of a client daemon (ceph-fuse, libcephfs)."""
    name = "objectcacher-libcephfs"
    hit, miss = whole(dump, name, "cache_bytes_hit"), whole(dump, name, "cache_bytes_miss")
    return sum_or_none((hit, miss)), hit, whole(dump, name, "data_written"), whole(dump, name, "data_flushed")


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
    """`SLOW_OPS` since Nautilus, `REQUEST_SLOW` before. Without a check, none are slow."""
    total = 0
    for code in _SLOW_OPERATIONS & checks.keys():
        found = _FIRST_NUMBER.search(checks[code])
        total += int(found.group()) if found else 1
    # These two count daemons, not operations; each means that one operation at least is slow.
    return total + len(_SLOW_DAEMONS & checks.keys())


def _objects(pgmap: Mapping[str, Any], kind: str, states: Sequence[set[str]], state: str) -> int | None:
    """Ceph leaves the key out where the number is 0: it is unknown only if a group is in that state."""
    value = pgmap.get(f"{kind}_objects")
    if isinstance(value, int):
        return value
    return None if any(state in names for names in states) or not states else 0
