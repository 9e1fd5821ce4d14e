"""Figures of this host and its client daemon; of links, ports and connections; of the target and the jobs."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from statistics import median, median_low

from leadline.store.tables import TrialRow
from leadline.study.target import CephAccess, TargetFacts
from leadline.verdict.diagnosis.ceph_figures import of_threads
from leadline.verdict.diagnosis.samples import Figure, Figures, Samples, ratio, seconds

_OBJECT_BYTES = 4 << 20  # Ceph's own, where nobody says otherwise


def of_target(facts: TargetFacts | None) -> Figures:
    """A gateway before it, and how it protects what it keeps; None where the target is not known."""
    if facts is None:
        return {"behind_server": 0.0, "coded": None, "pool_groups": None, "read_ahead_bytes": None}
    groups = facts.ceph.groups if facts.ceph is not None else None
    protection = facts.ceph.protection if facts.ceph is not None else None
    return {
        "behind_server": float(facts.behind_server),
        "coded": None if protection is None else float(protection == "erasure"),
        "pool_groups": None if groups is None else float(groups),
        "read_ahead_bytes": _read_ahead_bytes(facts.ceph) if facts.ceph is not None else None,
    }


def _read_ahead_bytes(ceph: CephAccess) -> float | None:
    """The most that ceph-fuse fetches ahead: the least of its limits; None where nobody knows of one."""
    settings, layout = ceph.settings or {}, ceph.layout or {}
    period = layout.get("object_size", _OBJECT_BYTES) * layout.get("stripe_count", 1)
    limits = [
        int(text) * unit
        for name, unit in (("client_readahead_max_bytes", 1), ("client_readahead_max_periods", period))
        if (text := settings.get(name, "")).isdigit()
    ]
    return min((float(limit) for limit in limits if limit), default=None)


def of_server(facts: TargetFacts | None, write_share: Figure) -> Figures:
    """How a mount asks its server, by its options; an NFS mount that does not say it has one connection."""
    options = dict(one.split("=", 1) for one in (facts.options if facts is not None else ()) if "=" in one)

    def number(name: str, unsaid: float | None = None) -> float | None:
        text = options.get(name, "")
        return float(text) if text.isdigit() else unsaid

    writes = isinstance(write_share, float) and write_share >= 0.5
    # Only NFS mounts say by which transport they go, and of several connections only these.
    by_transport = options.get("proto", "").startswith("tcp")
    return {
        "transfer_bytes": number("wsize" if writes else "rsize"),
        "server_connections": number("nconnect", 1.0) if by_transport else None,
    }


def jobs_of(trial: TrialRow) -> int:
    """How many jobs of the engine a trial has on each host; 0 of programs, which do what nobody knows."""
    job = json.loads(trial.job)
    return sum(int(one.get("numjobs", 0)) for one in job.get("jobs", [job]))


def objects_of(trial: TrialRow, facts: TargetFacts | None) -> float | None:
    """Objects of RADOS that the jobs of a trial ask for; None of what is no job of reads and writes.

    Of what goes through its files in order no more than it moved.
    """
    layout = (facts.ceph.layout if facts is not None and facts.ceph is not None else None) or {}
    object_bytes = layout.get("object_size", _OBJECT_BYTES)
    job = json.loads(trial.job)
    jobs = [one for one in job.get("jobs", [job]) if "rw" in one]
    if not jobs or not all(one.get("size") for one in jobs):
        return None
    found = 0
    for one in jobs:
        each = one.get("nrfiles", 1)
        files = each * (1 if one.get("shared") == "whole" else one.get("numjobs", 1))
        found += files * max(math.ceil(one["size"] / each / object_bytes), 1)
    if any(one["rw"].startswith("rand") for one in jobs):
        return float(found)
    return float(min(found, (trial.total_read_bytes + trial.total_write_bytes) // object_bytes + len(jobs)))


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


# Of a port's rate, what its counters show when it is full: headers are counted once a packet, but sent with
# each segment (MTU 1500; docs/observers.md).
CARRIED = 0.956
_SEGMENT_BYTES = 1448.0


def of_network(trial: TrialRow, samples: Samples) -> Figures:
    """Ports of a lab's switches, and this host's interfaces where they have a speed."""
    rates = samples.by_subject("wire", "", "rate_bytes_per_s")
    shares = {
        port: max(samples.middle("wire", port, f"{way}_bytes_per_s") or 0.0 for way in ("tx", "rx"))
        / (rate * CARRIED)
        for port, rate in rates.items()
        if rate > 0
    }
    # Hosts with OSDs are meant to be alike; a client's link may well be narrower.
    equals = {one: rates[one] for one in samples.by_subject("wire", "", "osds") if rates.get(one)}
    port = max(shares, key=lambda one: shares[one], default=None)
    lasted_s = (trial.ramp_ns + trial.measured_ns) / 1e9
    carried = max(trial.interface_sent_bytes or 0, trial.interface_received_bytes or 0)
    limit = trial.wire_limit_bytes_per_s
    faults = [samples.total("host", "", metric) for metric in ("errors", "drops")]
    resent = samples.by_subject("daemon", "", "resent_segments")
    sent = sum(samples.mean("wire", one, "tx_bytes_per_s") or 0.0 for one in samples.subjects("wire"))
    worst = max(resent, key=lambda one: resent[one], default=None)
    sent_s = None if trial.wire_sent_bytes is None else trial.wire_sent_bytes / (lasted_s or 1.0)
    received_s = None if trial.wire_received_bytes is None else trial.wire_received_bytes / (lasted_s or 1.0)
    own = max((one for one in (sent_s, received_s) if one is not None), default=None)
    return {
        "port": port,
        "port_share": shares[port] if port is not None else None,
        "port_own_share": _own_share(trial, samples, port, own),
        "link_own_share": own * lasted_s / carried if own is not None and carried > 0 else None,
        "port_rate": rates[port] if port is not None else None,
        "slowest_port": min(equals, key=lambda one: equals[one], default=None),
        "slowest_port_factor": median(equals.values()) / min(equals.values()) if equals else None,
        "ports_share": _fullest_in_turn(samples),
        "link_share": carried / lasted_s / limit if limit and lasted_s > 0 else None,
        "link_faults_per_s": sum(one for one in faults if one is not None),
        "resent_per_s": sum(resent.values()) if resent else None,
        "resent_at": worst,
        "resent_share": min(sum(resent.values()) * _SEGMENT_BYTES / sent, 1.0)
        if resent and sent > 0
        else None,
    }


def _own_share(trial: TrialRow, samples: Samples, port: str | None, own: float | None) -> float | None:
    """Of what a client's port carried the part that this trial moved, by sockets or by its own bytes."""
    if port is None or not samples.values("wire", port, "clients"):
        return None
    carried = max(samples.middle("wire", port, f"{way}_bytes_per_s") or 0.0 for way in ("tx", "rx"))
    moved = (trial.read_bytes + trial.write_bytes) * 1e9 / trial.measured_ns if trial.measured_ns else 0.0
    return min(max(own or 0.0, moved) / carried, 1.0) if carried > 0 and not (trial.hosts or 1) > 1 else None


def _fullest_in_turn(samples: Samples) -> float | None:
    """How full whichever port was fullest at each moment was: a write of shards waits for the slowest."""
    rates = samples.by_subject("wire", "", "rate_bytes_per_s")
    moments: dict[int, float] = {}
    for metric in ("tx_bytes_per_s", "rx_bytes_per_s"):
        for subject, at, value in samples.moments("wire", metric):
            if rates.get(subject):
                moments[at] = max(moments.get(at, 0.0), value / rates[subject] / CARRIED)
    return min(median(moments.values()), 1.0) if moments else None


_STUCK = 2  # segments in a row that nobody answers: one happens by chance


def of_connections(trial: TrialRow, samples: Samples) -> Figures:
    """TCP connections of this host, and of those that servers here are on."""
    places = samples.subjects("tcp")
    stuck = {
        one: sum(value >= _STUCK for value in values) / len(values)
        for one in places
        if (values := samples.values("tcp", one, "unanswered"))
    }
    full = samples.by_subject("tcp", "", "receiver_full")
    where = max(stuck, key=lambda one: stuck[one], default=None)
    place = max(full, key=lambda one: full[one], default=None)
    return {
        "round_trip_s": seconds(samples.middle("tcp", "here", "round_trip")),
        "round_trip_least_s": seconds(samples.middle("tcp", "here", "round_trip_least")),
        "unanswered_share": stuck[where] if where is not None else None,
        "unanswered_at": where,
        "connections_per_s": _made_anew(trial, samples),
        "receiver_full_share": full[place] if place is not None else None,
        "receiver_full_at": place,
    }


def _made_anew(trial: TrialRow, samples: Samples) -> float | None:
    """Connections a second that OSDs made in place of others, once the trial has begun.

    None where something else may have opened them: programs and people whose connections nobody knows, or a
    trial too short to be told from its own beginning. Each job may connect to each OSD once.
    """
    jobs = jobs_of(trial) * (trial.hosts or 1)
    places = samples.by_subject("ceph", "osd.", "connections_made")
    made = {
        one: median_low([max(rate - jobs / seconds, 0.0) for rate, seconds in found])
        for one in places
        if (found := samples.steady("ceph", one, "connections_made"))
    }
    if not jobs or not made:
        return None
    most = max(made.values())
    if made.keys() <= set(samples.subjects("daemon", "osd.")):
        return most
    # Others use such a cluster, and connect as they like. So this host must have connected as often.
    own = samples.usual("tcp", "here", "new_connections")
    return None if own is None else min(most, own)


_UNSEEN = "not observable"


def of_host(trial: TrialRow, samples: Samples, target: TargetFacts | None = None) -> Figures:
    """This host, which bears the load; on a lab it bears the servers, too."""
    cores = {
        one: samples.mean("host", one, "busy") for one in samples.subjects("host", "cpu") if one != "cpu"
    }
    available = samples.values("host", "memory", "available")
    return {
        "cpu_share": trial.cpu_busy_share,
        "core_share": max((value for value in cores.values() if value is not None), default=None),
        "steal_share": trial.cpu_steal_share,
        "other_cpu_share": trial.other_cpu_share,
        "throttled_per_s": samples.mean("host", "cgroup", "throttled"),
        "throttled_part": ratio(
            samples.mean("host", "cgroup", "throttled"), samples.mean("host", "cgroup", "periods")
        ),
        "memory_stalled_share": samples.mean("host", "pressure", "memory_full"),
        "io_stalled_share": samples.mean("host", "pressure", "io_full"),
        "memory_available": min(available, default=None),
        "device_share": max(
            (samples.mean("host", one, "busy") or 0.0 for one in _disks(samples, target)), default=None
        ),
    }


def of_own_device(trial: TrialRow, samples: Samples, facts: TargetFacts | None) -> Figures:
    """The target's own block device, by its requests; None where it has none here.

    How long each was there is a mean of requests: it holds although samples begin before a trial.
    """
    device = (facts.device if facts is not None else None) or ""

    def both(read: str, written: str) -> float | None:
        return _sum(samples.mean("host", device, read), samples.mean("host", device, written))

    served = both("operations_read", "operations_written")
    carried = _sum(trial.device_read_bytes, trial.device_written_bytes)
    moved = float(trial.read_bytes + trial.write_bytes)
    return {
        "device_request_s": ratio(samples.mean("host", device, "queue"), served),
        "device_request_bytes": ratio(both("read", "written"), served),
        "device_carried": ratio(None if carried is None else float(carried), moved),
    }


def _disks(samples: Samples, target: TargetFacts | None) -> list[str]:
    """Those that may be on the way: the target's own, else all of the host, which may bear its OSDs.

    A target elsewhere has none here: this host's devices have what others and leadline itself write.
    """
    every = [one for one in samples.subjects("host") if samples.values("host", one, "operations_written")]
    if target is None:
        return every
    if target.device in every:
        return [target.device]
    served_here = any(samples.subjects("daemon", kind) for kind in ("osd.", "proxy."))
    return every if served_here or not target.is_remote else []


def of_facts(host: Mapping[str, str], link_bytes_per_s: int | None) -> Figures:
    """What the manifest says of the host; None where the kernel did not show it."""

    def number(name: str) -> float | None:
        text = host.get(name, "")
        return float(text) if text.isdigit() else None

    governor, iommu = host.get("cpu_governor"), host.get("iommu")
    wake_us = number("cpu_wake_us")
    links = _links(host.get("links", ""))
    halves = [name for name, (_, duplex) in links.items() if duplex == "half"]
    fastest = max((speed for speed, _ in links.values()), default=None)
    return {
        "half_duplex": float(len(halves)) if "links" in host else None,
        "half_duplex_at": ", ".join(halves) if halves else None,
        "faster_link_factor": fastest / link_bytes_per_s if fastest and link_bytes_per_s else None,
        "governor": governor if governor != _UNSEEN else None,
        "wake_s": None if wake_us is None else wake_us / 1e6,
        "memory_nodes": number("numa_nodes"),
        "addresses_translated": None if iommu in (None, _UNSEEN) else float(iommu == "translated"),
    }


def _links(text: str) -> dict[str, tuple[float, str]]:
    """Bytes a second and duplex of each; words that are of another kind are left out."""
    found = {}
    for part in text.split(", "):
        name, _, rest = part.partition(" ")
        speed, _, duplex = rest.partition(" ")
        if speed.isdigit():
            found[name] = (int(speed) * 1e6 / 8, duplex)
    return found


def of_client(samples: Samples, target: TargetFacts | None = None) -> Figures:
    """The ceph-fuse of the target; others that are looked at in the same result are other targets'."""
    daemon = _ceph_fuse(samples, target)
    threads = {
        one.partition("/")[2].rpartition(".")[0]: value
        for one, value in of_threads(samples, "client").items()
        if daemon and one.partition("/")[0] == daemon
    }
    busiest = max(threads, key=lambda one: threads[one], default=None)
    return {
        "client_thread": busiest,
        "client_thread_share": threads[busiest] if busiest is not None else None,
        "client_cores": samples.mean("client", daemon, "cpu"),
        "client_in_flight": samples.mean("client", daemon, "operations_in_flight"),
        "client_in_flight_bytes": samples.mean("client", daemon, "in_flight"),
        "client_operations_per_s": _sum(
            samples.mean("client", daemon, "operations_read"),
            samples.mean("client", daemon, "operations_written"),
        ),
        "client_blocked_per_s": samples.mean("client", daemon, "writes_blocked"),
        "client_resent_per_s": samples.mean("client", daemon, "operations_resent"),
        "client_reply_s": seconds(samples.mean("client", daemon, "reply_latency")),
    }


def _ceph_fuse(samples: Samples, target: TargetFacts | None) -> str:
    """As samples name it; "" where the target has none, or it cannot be told which of several it is."""
    if target is not None and not target.through_ceph_fuse:
        return ""
    there = [one for one in samples.subjects("client", "ceph-fuse") if "/" not in one]
    own = f"ceph-fuse.{target.ceph.client_pid}" if target is not None and target.ceph is not None else ""
    if own in there:
        return own
    return there[0] if len(there) == 1 else ""


def _sum(*parts: float | None) -> float | None:
    known = [part for part in parts if part is not None]
    return sum(known) if known else None
