"""What was seen of a trial, as the one row of figures that causes are judged by.

A figure that was not observable is None: no condition on it holds. docs/diagnosis.md has the list.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean, median

from leadline.store.tables import LatencyRow, TrialRow
from leadline.study.target import TargetFacts
from leadline.verdict.diagnosis.ceph_figures import (
    of_blocked,
    of_cluster,
    of_daemons,
    of_logs,
    of_metadata,
    of_osds,
    of_slow_osd,
    requests_begun,
)
from leadline.verdict.diagnosis.host_figures import (
    objects_of,
    of_client,
    of_connections,
    of_facts,
    of_host,
    of_job,
    of_network,
    of_own_device,
    of_server,
    of_target,
)
from leadline.verdict.diagnosis.samples import ONE_EACH, Figure, Figures, Samples, one_each, ratio

_SEEN_MIN = 10  # operations; of fewer a share says nothing


def of_stages(samples: Samples) -> Figures:
    """The parts of the time in queues and waiting for peers, and the OSD that is waited for."""
    return {**_parts(samples), **_last(samples)}


def _parts(samples: Samples) -> Figures:
    every = _count(samples, "seen_in_flight")
    if every >= _SEEN_MIN:
        return {
            "osd_queue_part": _count(samples, "seen_queued") / every,
            "osd_peers_part": _count(samples, "seen_waiting_for_peers") / every,
        }
    return {
        "osd_queue_part": _of_slowest(samples, "op_queue_part"),
        "osd_peers_part": _of_slowest(samples, "op_peers_part"),
    }


def _last(samples: Samples) -> Figures:
    writes = sum(samples.values("ceph", "cluster", "seen_parts_of"))
    shares = samples.by_subject("ceph", "osd.", "came_last")
    if writes >= _SEEN_MIN:
        subjects = samples.by_subject("ceph", "osd.", "seen_alone")
        shares = {one: sum(samples.values("ceph", one, "seen_alone")) / writes for one in subjects}
    late = max(shares, key=lambda one: shares[one], default=None)
    others = [share for one, share in shares.items() if one != late]
    return {
        "last_osd": late,
        "last_osd_share": shares[late] if late is not None else None,
        "last_others_share": median(others) if others else None,
        "operations_joined": float(writes)
        if writes >= _SEEN_MIN
        else samples.total("ceph", "cluster", "operations_joined"),
    }


def _count(samples: Samples, metric: str) -> float:
    return sum(sum(samples.values("ceph", one, metric)) for one in samples.by_subject("ceph", "osd.", metric))


def _of_slowest(samples: Samples, metric: str) -> float | None:
    """A part of the time of single operations, the mean of all OSDs."""
    parts = samples.by_subject("ceph", "osd.", metric)
    return fmean(parts.values()) if parts else None


_NO_ROOM = ("No space left", "quota exceeded", "ENOSPC", "EDQUOT")


def of_load(trial: TrialRow, latency: Sequence[LatencyRow], asked: int | None) -> Figures:
    """The figures of its operations. A trial without reads and writes has those of metadata operations."""
    seconds = trial.measured_ns / 1e9
    operations = trial.read_operations + trial.write_operations
    moved = trial.read_bytes + trial.write_bytes
    whole = [row for row in latency if row.interval == -1]
    means = {
        clock: mean_of([row for row in whole if row.clock == clock and row.direction in ("read", "write")])
        for clock in ("submission", "total")
    }
    mean_s = means["total"]
    rate = operations / seconds if seconds > 0 else None
    metadata = [] if operations else [row for row in whole if row.clock == "total"]
    named = sum(row.operations for row in metadata)
    return {
        "seconds": seconds,
        "operations_per_s": rate,
        "bytes_per_s": moved / seconds if seconds > 0 else None,
        "request_bytes": moved / operations if operations else None,
        "write_share": trial.write_operations / operations if operations else None,
        "syncs_per_write": trial.sync_operations / max(trial.write_operations, 1) if operations else None,
        "latency_s": mean_s,
        "submission_share": ratio(means["submission"], mean_s),
        "sync_latency_s": mean_of([row for row in whole if row.direction == "sync" and row.clock == "total"]),
        "metadata_latency_s": mean_of(metadata),
        "metadata_operations_per_s": named / seconds if named and seconds > 0 else None,
        "asked": None if asked is None else float(asked),
        "in_flight": None if mean_s is None or rate is None else mean_s * rate,
        "engine_share": trial.busy_share_max,
        "no_room": float(any(words in (trial.error or "") for words in _NO_ROOM)),
        "unfinished": float(trial.state in ("hung", "error")),
    }


def mean_of(rows: Sequence[LatencyRow]) -> float | None:
    """Seconds, over all operations of these histograms."""
    operations = sum(row.operations for row in rows)
    return sum(row.mean_ns * row.operations for row in rows) / operations / 1e9 if operations else None


def figures_of(
    trial: TrialRow,
    latency: Sequence[LatencyRow],
    samples: Samples,
    asked: int | None,
    *,
    target: TargetFacts | None = None,
    host: Mapping[str, str] | None = None,
) -> Figures:
    """All figures of a trial; `asked` is how many operations each host asks to have in flight, where it does.

    `host`: what the manifest says of it.
    """
    found = of_load(trial, latency, None if asked is None else asked * (trial.hosts or 1))
    found |= of_target(target)
    found |= of_server(target, found["write_share"])
    found |= of_job(trial)
    found |= of_facts(host or {}, trial.wire_limit_bytes_per_s)
    for part in (
        of_host(trial, samples, target),
        of_client(samples, target),
        of_network(trial, samples),
        of_osds(samples),
    ):
        found |= part
    found |= of_own_device(trial, samples, target)
    found |= of_connections(trial, samples)
    found |= of_slow_osd(samples, objects_of(trial, target))
    found |= of_stages(samples)
    found |= of_daemons(samples)
    found |= of_blocked(samples)
    found |= of_logs(samples)
    found |= of_metadata(samples)
    found |= of_cluster(trial, samples)
    found["metadata_per_operation"] = ratio(requests_begun(samples), found["operations_per_s"])
    found["cut_into"] = ratio(found["client_operations_per_s"], found["operations_per_s"])
    found["operation_s"] = operation_s(found)
    parts = [samples.total("ceph", "osd.", f"operations_{way}") for way in ("read", "written")]
    known = [one for one in parts if one is not None]
    found["osd_each"] = ratio(sum(known) if known else None, found["operations_per_s"])
    found["store_amplification"] = ratio(number(trial.store_written_bytes), number(trial.osd_written_bytes))
    return found | between(found)


def operation_s(found: Mapping[str, Figure]) -> Figure:
    """Of requests that a client cuts, the time of one piece (Little's law); of others their own."""
    cut = found["cut_into"]
    piece = ratio(found["client_in_flight"], found["client_operations_per_s"])
    return piece if isinstance(cut, float) and cut > ONE_EACH and piece else found["latency_s"]


def number(value: int | None) -> float | None:
    """A count as a figure."""
    return None if value is None else float(value)


def between(found: Mapping[str, Figure]) -> Figures:
    """What is left of the client's latency once the OSDs' own is taken off: the way there, and the client."""
    writes = found["write_share"]
    latency = found["latency_s"]
    if not isinstance(writes, float) or not isinstance(latency, float):
        return {"osd_s": None, "outside_osd_share": None}
    parts = ((writes, found["osd_write_s"]), (1.0 - writes, found["osd_read_s"]))
    times = [(share, seconds) for share, seconds in parts if share > 0]
    osd = sum(share * seconds for share, seconds in times if isinstance(seconds, float))
    if not all(isinstance(seconds, float) for _, seconds in times):
        return {"osd_s": None, "outside_osd_share": None}
    # Cached requests reach no OSD; those of a library that takes locks are several operations each.
    alone = latency > 0 and one_each(found["osd_each"])
    return {"osd_s": osd, "outside_osd_share": max(1.0 - osd / latency, 0.0) if alone else None}
