"""What erasure coding costs small writes: bytes, reads before writes, and operations of devices."""

from __future__ import annotations

import math
from collections.abc import Sequence

from leadline.analysis.models.computed import Computed, ModelSaid, exactly
from leadline.analysis.models.simple import (
    STRIPE_UNIT_BYTES,
    Protection,
    network_bytes,
    small_write_amplification,
)
from leadline.errors import UsageError
from leadline.units import format_size


def costs(write_bytes: int, protection: Protection, unit_bytes: int = STRIPE_UNIT_BYTES) -> ModelSaid:
    """Network, stored bytes and device operations of one write, aligned to its size.

    Source: Ceph's documentation of erasure-coded overwrites, before what Tentacle made of them.
    """
    _, back = network_bytes(1.0, protection)
    stored = small_write_amplification(write_bytes, protection, unit_bytes)
    found = [
        exactly("between OSDs, of each byte, whole stripes", back, "x", _between(protection)),
        exactly("stored, of each byte", stored, "x", _stored(write_bytes, protection, unit_bytes)),
        exactly("writes of devices", protection.shards, "x", "one a copy or shard, beside the stores' logs"),
    ]
    if protection.k is not None:
        reads = partial_reads(write_bytes, protection.k, unit_bytes)
        stripe = format_size(protection.k * unit_bytes)
        why = f"k for each of the first and last stripe (of {stripe}) that is written in part, mean of places"
        found.append(exactly("reads of devices first", reads, "x", why))
    return ModelSaid(
        tuple(found),
        "Ceph's documentation: erasure-coded overwrites, bluestore_min_alloc_size",
        "Stores put small writes into their log first, and write several at once; since Tentacle an"
        " overwrite reads less where the pool allows it.",
    )


def coded_rate(
    write_bytes: int,
    protection: Protection,
    replicated: Sequence[tuple[int, float]],
    copies: int,
    devices: int,
    read_iops: float,
    unit_bytes: int = STRIPE_UNIT_BYTES,
) -> Computed:
    """Writes per second of an erasure-coded pool, from those of a replicated one on the same devices.

    `replicated`: write sizes and writes per second of two sizes. A device's time for a write is a line
    through both; a coded write takes k + m of them, and each read before it 1 / `read_iops`, or twice that.
    SUSE's figures, from its replicated rows and 18,000 random reads a device: 4 to 24 % too many at 4 KiB,
    4 % too few to 18 % too many at 64 KiB.
    """
    if protection.k is None or len({size for size, _ in replicated}) != 2:
        raise UsageError(
            "a coded rate needs --protection K+M and the rates of two write sizes", "--seen 4k=260082 twice"
        )
    (size_1, rate_1), (size_2, rate_2) = replicated
    time_1, time_2 = devices / rate_1 / copies, devices / rate_2 / copies
    each_byte_s = (time_2 - time_1) / (size_2 - size_1)
    alone_s = time_1 - each_byte_s * size_1
    reads = partial_reads(write_bytes, protection.k, unit_bytes)
    shard = _stripes(write_bytes, protection.k * unit_bytes) * unit_bytes
    write_s = max(alone_s + each_byte_s * shard, min(time_1, time_2))
    read_s = 1 / read_iops
    seconds = protection.shards * write_s + reads * read_s
    longer = protection.shards * write_s + 2 * reads * read_s
    formula = (
        f"{devices} devices / ({protection.shards} x {write_s * 1e6:.0f} µs for {format_size(shard)} +"
        f" {reads:.3g} to {2 * reads:.3g} reads x {read_s * 1e6:.0f} µs)"
    )
    return Computed("writes, erasure-coded", devices / longer, devices / seconds, "1/s", formula)


def _stripes(write_bytes: int, stripe_bytes: int) -> float:
    """Stripes that a write touches, mean over the places aligned to its size."""
    places = stripe_bytes // math.gcd(write_bytes, stripe_bytes)
    counts = [
        (at * write_bytes + write_bytes - 1) // stripe_bytes - at * write_bytes // stripe_bytes + 1
        for at in range(places)
    ]
    return sum(counts) / places


def partial_reads(write_bytes: int, k: int, unit_bytes: int) -> float:
    """Shards read first: k for each stripe that is written in part, mean over places aligned to the size."""
    stripe = k * unit_bytes
    places = stripe // math.gcd(write_bytes, stripe)
    partial = 0
    for at in range(places):
        begin, end = at * write_bytes, (at + 1) * write_bytes
        heads = {begin // stripe} if begin % stripe else set()
        tails = {end // stripe} if end % stripe else set()
        partial += len(heads | tails)
    return k * partial / places


def _between(protection: Protection) -> str:
    if protection.copies is not None:
        return f"{protection.copies} - 1 copies"
    return f"({protection.k} + {protection.m} - 1) / {protection.k}"


def _stored(write_bytes: int, protection: Protection, unit_bytes: int) -> str:
    if protection.copies is not None:
        return f"{protection.copies} copies of whole extents of 4 KiB"
    shards, size = protection.shards, format_size(write_bytes)
    return f"whole stripes, {shards} x {format_size(unit_bytes)} for each that {size} touch"
