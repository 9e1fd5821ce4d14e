"""This host, which bears the load, and the client daemon on it."""

from __future__ import annotations

from collections.abc import Mapping

from leadline.store.tables import TrialRow
from leadline.study.target import TargetFacts
from leadline.verdict.diagnosis.samples import Samples
from leadline.verdict.diagnosis.seen.daemons import of_threads
from leadline.verdict.diagnosis.seen.values import Figures, ratio, seconds

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
