"""OSDs, by their counters."""

from __future__ import annotations

import math
from statistics import fmean

from leadline.verdict.diagnosis.samples import Samples, outlier
from leadline.verdict.diagnosis.seen.values import Figures, ratio, seconds

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
