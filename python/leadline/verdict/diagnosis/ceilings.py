"""Measured beside what should be: the ceilings that are known of a cell, and the share that it reached."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

from leadline.analysis.models.simple import Protection, network_bytes
from leadline.verdict.diagnosis.host_figures import CARRIED
from leadline.verdict.diagnosis.samples import Figures, Samples
from leadline.wires import BACK

if TYPE_CHECKING:
    from leadline.store.tables import TrialRow
    from leadline.study.target import TargetFacts

_PASSED = 1.2
_WHOLE = 1.5  # operations for each request: with more than that it was cut


@dataclass(frozen=True)
class Ceiling:
    """What a part allows, bytes per second, and by what that was computed."""

    bytes_per_s: float
    by: str


@dataclass(frozen=True)
class RateCeilings:
    """`measured` of a cell's trials, bytes per second, and its ceilings, the least first."""

    measured: float
    ceilings: tuple[Ceiling, ...]

    @property
    def share(self) -> float:
        """Of the least ceiling, 1 where it is reached: what it is computed from scatters, too."""
        return min(self.measured / self.ceilings[0].bytes_per_s, 1.0)


@dataclass(frozen=True)
class TrialSeen:
    """A trial, its figures, what is known to limit it, and how many samples it has."""

    trial: TrialRow
    figures: Figures
    ceilings: tuple[Ceiling, ...]
    sampled: int


def should_of(trials: Sequence[TrialSeen]) -> RateCeilings | None:
    """The means of a cell's trials; None where no ceiling is known, or nothing was moved."""
    found: dict[str, list[float]] = {}
    measured = []
    for one in trials:
        rate = one.figures["bytes_per_s"]
        if not isinstance(rate, float) or rate <= 0:
            continue
        measured.append(rate)
        for ceiling in one.ceilings:
            found.setdefault(ceiling.by, []).append(ceiling.bytes_per_s)
    known = [Ceiling(fmean(values), by) for by, values in found.items() if len(values) == len(measured)]
    # What is passed by more than measurements scatter is none, such as a limit that was taken away meanwhile.
    known = [one for one in known if fmean(measured) <= _PASSED * one.bytes_per_s]
    if not known:
        return None
    return RateCeilings(fmean(measured), tuple(sorted(known, key=lambda one: one.bytes_per_s)))


def ceilings(trial: TrialRow, samples: Samples, figures: Figures, facts: TargetFacts) -> Iterator[Ceiling]:
    """What is known to limit a trial."""
    hosts = trial.hosts or 1
    if trial.wire_limit_bytes_per_s:
        yield Ceiling(hosts * trial.wire_limit_bytes_per_s * CARRIED, "the link of a client")
    rates = samples.by_subject("wire", "", "rate_bytes_per_s")
    own = _busiest_client(samples, rates)
    if own is not None and hosts == 1:
        yield Ceiling(rates[own] * CARRIED, f"the link of {own}")
    servers = _of_servers(samples, rates, figures, facts)
    if servers is not None:
        yield Ceiling(servers, "the links of the hosts with OSDs")
    writes = figures["write_share"]
    if isinstance(writes, float):
        limits = (trial.device_write_limit_bytes_per_s, trial.device_read_limit_bytes_per_s)
        limit = limits[0] if writes >= 0.5 else limits[1]
        if limit:
            yield Ceiling(float(limit), "the limit of the device")
    yield from _in_flight(samples, figures)


def _in_flight(samples: Samples, figures: Figures) -> Iterator[Ceiling]:
    """The queue depth over the time that the storage itself needs for a request.

    Not where a client cuts requests into pieces: nobody knows how many of them could be outstanding.
    """
    asked, size, rate = figures["asked"], figures["request_bytes"], figures["operations_per_s"]
    if not isinstance(asked, float) or not isinstance(size, float) or not isinstance(rate, float):
        return
    osd_s, device_s = figures["osd_s"], figures["device_request_s"]
    depth = f"a queue depth of {asked:.0f}, and the latency of"
    parts = [samples.total("ceph", "osd.", f"operations_{way}") or 0.0 for way in ("read", "written")]
    if isinstance(osd_s, float) and osd_s > 0 and sum(parts) <= _WHOLE * rate:
        yield Ceiling(asked * size / osd_s, f"{depth} an OSD")
    at_device, carried = figures["device_request_bytes"], figures["device_carried"]
    if (
        isinstance(device_s, float)
        and device_s > 0
        and isinstance(at_device, float)
        and isinstance(carried, float)
        and at_device * _WHOLE >= size
        and carried * _WHOLE >= 1
    ):
        yield Ceiling(asked * size / device_s, f"{depth} the device")


def _busiest_client(samples: Samples, rates: dict[str, float]) -> str | None:
    ports = [port for port in samples.by_subject("wire", "", "clients") if port in rates]
    moved = {
        port: sum(samples.mean("wire", port, f"{way}_bytes_per_s") or 0.0 for way in ("tx", "rx"))
        for port in ports
    }
    return max(moved, key=lambda one: moved[one], default=None)


def _of_servers(
    samples: Samples, rates: dict[str, float], figures: Figures, facts: TargetFacts
) -> float | None:
    """What the links of the hosts with OSDs allow; all is dealt out by OSDs (docs/models.md, aggregate)."""
    writes, protection = figures["write_share"], _protection(facts)
    osds = samples.by_subject("wire", "", "osds")
    if protection is None or not isinstance(writes, float) or not osds:
        return None
    front, back = network_bytes(1.0, protection) if writes >= 0.5 else (1.0, _read_between(protection))
    found = []
    for host, count in osds.items():
        part = count / sum(osds.values())
        apart = rates.get(f"{host}{BACK}")
        if host in rates:
            found.append(rates[host] / part / (front if apart is not None else front + back))
        if apart is not None and back > 0:
            found.append(apart / part / back)
    return min(found) * CARRIED if found else None


def _protection(facts: TargetFacts) -> Protection | None:
    ceph = facts.ceph
    if ceph is None:
        return None
    if ceph.protection == "erasure" and ceph.k and ceph.m:
        return Protection(k=ceph.k, m=ceph.m)
    return Protection(copies=ceph.size) if ceph.size else None


def _read_between(protection: Protection) -> float:
    """Between OSDs, for each byte that is read: the shards that the primary has not itself."""
    return 0.0 if protection.k is None else (protection.k - 1) / protection.k
