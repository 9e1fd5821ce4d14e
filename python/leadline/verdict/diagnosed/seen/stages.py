"""What single operations of OSDs waited for: by looks at those in flight, else by what trackers remember."""

from __future__ import annotations

from statistics import fmean, median

from leadline.verdict.diagnosed.samples import Samples
from leadline.verdict.diagnosed.seen.values import Figures

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
