"""What was seen of a trial, as the one row of figures that causes are judged by.

A figure that was not observable is None: no condition on it holds. docs/diagnosis.md has the list.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from leadline.store.tables import LatencyRow, TrialRow
from leadline.study.target import TargetFacts
from leadline.verdict.diagnosed.samples import Samples
from leadline.verdict.diagnosed.seen.cluster import of_cluster, of_metadata, requests_begun
from leadline.verdict.diagnosed.seen.daemons import of_blocked, of_daemons, of_logs
from leadline.verdict.diagnosed.seen.load import of_load
from leadline.verdict.diagnosed.seen.machine import of_client, of_facts, of_host, of_own_device
from leadline.verdict.diagnosed.seen.network import of_connections, of_network
from leadline.verdict.diagnosed.seen.osds import of_osds, of_slow_osd
from leadline.verdict.diagnosed.seen.stages import of_stages
from leadline.verdict.diagnosed.seen.target import objects_of, of_job, of_server, of_target
from leadline.verdict.diagnosed.seen.values import ONE_EACH, Figure, Figures, one_each, ratio


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
