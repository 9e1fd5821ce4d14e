"""Commits that writes cause, and what devices can do of them."""

from __future__ import annotations

from leadline.analysis.models.computed import ModelSaid, exactly
from leadline.analysis.models.simple import Protection, syncs_per_s
from leadline.units import format_latency, format_rate, format_size


def commits(
    bytes_per_s: float,
    object_bytes: float,
    protection: Protection,
    devices: int | None = None,
    commit_s: float | None = None,
) -> ModelSaid:
    """Commits per second, in all and of one device, and at most, one after another, by a store's flush."""
    total = syncs_per_s(bytes_per_s, object_bytes, protection)
    formula = f"{format_rate(bytes_per_s)} / {format_size(object_bytes)} x {protection.shards}"
    found = [exactly("commits", total, "/s", formula)]
    if devices is not None:
        found.append(exactly("of one device", total / devices, "/s", f"dealt out evenly over {devices}"))
    if commit_s:
        most = 1 / commit_s
        words = f"1 / {format_latency(commit_s * 1e9)}, each flush with one commit"
        found.append(exactly("flushes that one OSD can do", most, "/s", words))
    return ModelSaid(
        tuple(found),
        "(Stress)Testing Ceph for CASTOR: 1 GB/s = 200 objects/s = 2200 syncs/s",
        "An upper bound: BlueStore flushes several commits at once, the more the longer a flush takes.",
    )
