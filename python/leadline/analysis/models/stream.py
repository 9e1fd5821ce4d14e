"""What one stream gives: bytes in flight over the time of a request, or the link."""

from __future__ import annotations

from dataclasses import dataclass

from leadline.analysis.models.computed import Computed, ModelSaid, exactly
from leadline.analysis.models.simple import STRIPE_OBJECT_BYTES
from leadline.errors import UsageError
from leadline.units import format_bit_rate, format_latency, format_size


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
            exactly("in flight", held, "B", "requests x buffer"),
        ),
        "Little's law (Operations Research 9, 1961); objects of a request are written side by side",
        "Where devices or processors are saturated, requests wait for each other and each takes longer: then"
        " it is an upper bound.",
    )


def _rate(stream: Stream, hops: int, latency_s: float) -> float:
    seconds = latency_s + hops * stream.buffer_bytes / stream.link_bytes_per_s
    return min(stream.link_bytes_per_s, stream.in_flight * stream.buffer_bytes / seconds)
