"""What small writes cost by erasure coding, commits that writes cause, copies of a program that run at once,
and what one stream gives.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from leadline.analysis.models.simple import (
    STRIPE_OBJECT_BYTES,
    STRIPE_UNIT_BYTES,
    Computed,
    ModelSaid,
    Protection,
    copies_time_s,
    exactly,
    fit_copies,
    network_bytes,
    small_write_amplification,
    syncs_per_s,
)
from leadline.errors import UsageError
from leadline.units import format_bit_rate, format_latency, format_number, format_rate, format_size


@dataclass(frozen=True)
class Stream:
    """A stream of requests of `buffer_bytes`, so many in flight, each cut into objects written side by side.

    `hops`, least and most, is how often a buffer passes a link whole before the next step begins: once to a
    server; twice through a proxy that receives it whole first.
    """

    buffer_bytes: float
    link_bytes_per_s: float
    in_flight: int = 1
    object_bytes: float = STRIPE_OBJECT_BYTES
    hops: tuple[int, int] = (1, 1)


def by_latency(stream: Stream, latency_s: float) -> ModelSaid:
    """`latency_s`: what a request takes beside its way through the links. Source: Little, 1961."""
    return _said(stream, [(hops, latency_s) for hops in sorted(set(stream.hops))])


def by_another(stream: Stream, size_bytes: float, bytes_per_s: float) -> ModelSaid:
    """From the rate of another buffer, one at a time, by what its requests took beside their way.

    Left open: whether an object's time grows with its size, or not at all. Raises UsageError for a rate
    beyond the link. CASTOR's figures, from 2 MB and 65 MB/s over 10 Gbit/s with one hop or two: 294 to 584
    MB/s for 32 MB (300 published), 400 to 796 for 64 MB (over 500 published).
    """
    cases = []
    for hops in sorted(set(stream.hops)):
        rest_s = size_bytes / bytes_per_s - hops * size_bytes / stream.link_bytes_per_s
        if rest_s <= 0:
            raise UsageError(
                f"{format_size(bytes_per_s)}/s is more than the link carries with {hops} of its hops",
                "check the rate and --link: a link is in bits, a rate in bytes",
            )
        seen = min(size_bytes, stream.object_bytes)
        grown = max(min(stream.buffer_bytes, stream.object_bytes) / seen, 1.0)
        cases += [(hops, rest_s), (hops, rest_s * grown)]
    return _said(stream, cases)


def _said(stream: Stream, cases: list[tuple[int, float]]) -> ModelSaid:
    rates = [_rate(stream, hops, latency_s) for hops, latency_s in cases]
    shortest, longest = min(one for _, one in cases), max(one for _, one in cases)
    latency = format_latency(shortest * 1e9)
    if longest > shortest:
        latency = f"{latency} to {format_latency(longest * 1e9)}"
    least, most = min(stream.hops), max(stream.hops)
    hops = f"{least}" if least == most else f"{least} to {most}"
    held = stream.in_flight * stream.buffer_bytes
    formula = (
        f"min(link {format_bit_rate(stream.link_bytes_per_s * 8)}, {stream.in_flight} x"
        f" {format_size(stream.buffer_bytes)} / ({latency} + {hops} x buffer / link))"
    )
    return ModelSaid(
        (
            Computed("rate of the stream", min(rates), max(rates), "B/s", formula),
            exactly("outstanding", held, "B", "requests x buffer"),
        ),
        "Little's law (Operations Research 9, 1961); the objects of a request are written in parallel",
        "Where devices or processors are saturated, requests wait for each other and each takes longer: then"
        " it is an upper bound.",
    )


def _rate(stream: Stream, hops: int, latency_s: float) -> float:
    seconds = latency_s + hops * stream.buffer_bytes / stream.link_bytes_per_s
    return min(stream.link_bytes_per_s, stream.in_flight * stream.buffer_bytes / seconds)


def run_time(times_s: Mapping[float, float], cpus: float, copies: int) -> ModelSaid:
    """Seconds by `copies_time_s`, fitted to as many copies as there are CPUs.

    Beyond the CPUs from what copies at storage share with as many as fit, to computing alone. Raises
    UsageError for fewer than three numbers of copies up to the CPUs.
    """
    fitted = fit_copies(times_s, cpus)
    if fitted is None:
        raise UsageError(
            f"fewer than three numbers of copies up to {cpus:g} CPUs: nothing could contradict the fit",
            "measure 1, 2 and 3 copies, for example",
        )
    compute_s, shared_s = fitted
    seconds = copies_time_s(copies, compute_s, shared_s, cpus)
    numbers = f"C = {format_number(compute_s)} s, s = {format_number(shared_s)} s, c = {cpus:g}"
    formula = f"C max(1, N / c) + s min(N, c), {numbers}"
    off = max(abs(seen / copies_time_s(n, compute_s, shared_s, cpus) - 1) for n, seen in times_s.items())
    least = max(compute_s * max(1.0, copies / cpus), compute_s + shared_s)
    low = seconds if copies <= cpus else least
    return ModelSaid(
        (
            Computed(f"run time of {copies}", min(low, seconds), seconds, "s", formula),
            exactly(
                "furthest of what was given", off, "1", "measured / model - 1, those beyond the CPUs too"
            ),
        ),
        "a line up to the CPUs; beyond, copies share them, and no more than these are at storage at once",
        "Copies that wait long for storage leave their CPU to others: then it is too high.",
    )


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


def costs(write_bytes: int, protection: Protection, unit_bytes: int = STRIPE_UNIT_BYTES) -> ModelSaid:
    """Network, stored bytes and device operations of one write, aligned to its size.

    Source: Ceph's documentation of erasure-coded overwrites, before what Tentacle made of them.
    """
    _, back = network_bytes(1.0, protection)
    stored = small_write_amplification(write_bytes, protection, unit_bytes)
    found = [
        exactly("between OSDs, of each byte, whole stripes", back, "x", _between(protection)),
        exactly("stored, of each byte", stored, "x", _stored(write_bytes, protection, unit_bytes)),
        exactly("writes of devices", protection.shards, "x", "one a copy or shard, next to the stores' logs"),
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
        f"{devices} devices / ({protection.shards} x {write_s * 1e6:.0f} us for {format_size(shard)} +"
        f" {reads:.3g} to {2 * reads:.3g} reads x {read_s * 1e6:.0f} us)"
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
        return f"({protection.copies} - 1) copies"
    return f"({protection.k} + {protection.m} - 1) / {protection.k}"


def _stored(write_bytes: int, protection: Protection, unit_bytes: int) -> str:
    if protection.copies is not None:
        return f"{protection.copies} copies of whole extents of 4 KiB"
    shards, size = protection.shards, format_size(write_bytes)
    return f"whole stripes, {shards} x {format_size(unit_bytes)} for each that {size} touch"
