"""How many gateways and active metadata servers (ranks) are enough, from measured rates of one only.

One gateway gave what was measured, whatever bounded the cell; a rank's rate is what a cell gave, divided by
its ranks. The numbers are enough where clients and directories are spread evenly, and need not be the least.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from leadline.sizing.designs import FURTHEST, flow_of
from leadline.sizing.hardware import ClientFlow
from leadline.sizing.request import HOURS, AskedSizing
from leadline.units import format_number, format_rate

_STUDY = "leadline run metadata --target NAME=PATH -o DIR, then --from DIR"


@dataclass(frozen=True)
class PerRankRate:
    """What one of `ranks` active ones gave of each operation in a measured cell: low and high end of 95 %."""

    cell: str
    ranks: int
    rates: Mapping[str, tuple[float, float]]


@dataclass(frozen=True)
class RanksCounted:
    """By one cell: ranks that are enough by the low ends, and by the high ones; or why none are said."""

    cell: str
    enough: int | None
    by_high: int | None
    why_not: str = ""


def operations_at(asked: AskedSizing, hour: int) -> dict[str, float]:
    """Operations a second of all clients, by name."""
    found: dict[str, float] = {}
    for one in asked.clients.values():
        for name, rate in one.operations_s.items():
            found[name] = found.get(name, 0.0) + rate * one.at_work(hour)
    return found


def busiest(asked: AskedSizing) -> tuple[dict[str, float], int]:
    """The hour with most operations of all kinds together."""
    hours = [(operations_at(asked, hour), hour) for hour in range(HOURS)]
    return max(hours, key=lambda one: sum(one[0].values()))


def ranks_counted(asked: AskedSizing, seen: Sequence[PerRankRate]) -> tuple[RanksCounted, ...]:
    """By each cell that has a rate of one of the operations; of every hour the one that needs most ranks."""
    every = [operations_at(asked, hour) for hour in range(HOURS)]
    wanted = [name for name, rate in every[0].items() if rate]
    return tuple(_ranks_of(one, every, wanted) for one in seen if any(name in one.rates for name in wanted))


def _ranks_of(one: PerRankRate, every: Sequence[Mapping[str, float]], wanted: Sequence[str]) -> RanksCounted:
    missing = [name for name in wanted if name not in one.rates]
    if missing:
        return RanksCounted(one.cell, None, None, f"it has no rate of {', '.join(missing)}")
    # A rank's time is shared: each operation takes its part of it.
    low, high = (
        max(sum(asked[name] / one.rates[name][end] for name in wanted) for asked in every) for end in (0, 1)
    )
    enough, by_high = max(1, math.ceil(low)), max(1, math.ceil(high))
    if enough > FURTHEST * one.ranks:
        least = math.ceil(enough / FURTHEST)
        why = (
            f"measure first with {least} active ranks or more; {enough} are more than {FURTHEST} times"
            f" the {one.ranks} that were measured"
        )
        return RanksCounted(one.cell, None, None, why)
    return RanksCounted(one.cell, enough, by_high)


def rank_words(asked: AskedSizing, seen: Sequence[PerRankRate]) -> Iterator[str]:
    """What is asked of metadata servers, and how many of them each measured cell makes enough."""
    wanted, hour = busiest(asked)
    if not wanted:
        return
    when = f" at {hour}:00" if any(isinstance(one.active, list) for one in asked.clients.values()) else ""
    rates = ", ".join(f"{name} {format_number(rate)}/s" for name, rate in wanted.items())
    yield f"Asked of metadata servers{when}: {rates}."
    found = ranks_counted(asked, seen)
    if not found:
        yield f"How many ranks that takes is not known; measure first: {_STUDY}."
    for one in found:
        if one.enough is None:
            yield f"{one.cell}: {one.why_not}."
            continue
        fewer = "" if one.by_high == one.enough else f" ({one.by_high} by the high ends of its rates)"
        plural = "rank is" if one.enough == 1 else "ranks are"
        spread = "" if one.enough == 1 else ", with directories pinned evenly over them"
        yield f"{one.cell}, measured: {one.enough} active {plural} enough{fewer}{spread}, and standbys."


@dataclass(frozen=True)
class PerGatewayRate:
    """Bytes a second that one gateway of a protocol gave in a measured cell, one way; 95 %, the low end."""

    cell: str
    protocol: str
    reads: bool
    low: float


@dataclass(frozen=True)
class GatewaysCounted:
    """Of a protocol: how many are enough at the rates of the fastest cells and of the slowest.

    None, and what to measure first, where a way was not measured or the count lies too far from what was.
    """

    protocol: str
    read_bytes_s: float
    written_bytes_s: float
    fastest: int | None
    slowest: int | None
    fastest_cells: tuple[str, ...] = ()
    slowest_cells: tuple[str, ...] = ()
    why_not: str = ""


def gateways_counted(asked: AskedSizing, seen: Sequence[PerGatewayRate]) -> tuple[GatewaysCounted, ...]:
    """Each protocol that clients go through, in the order of the clients."""
    protocols = dict.fromkeys(one.through for one in asked.clients.values() if one.through is not None)
    return tuple(_counted(asked, protocol, seen) for protocol in protocols)


def _counted(asked: AskedSizing, protocol: str, seen: Sequence[PerGatewayRate]) -> GatewaysCounted:
    flows = [_through(asked, protocol, hour) for hour in range(HOURS)]
    busiest = max(flows, key=lambda one: one.read + one.written)
    ways = {True: max(one.read for one in flows), False: max(one.written for one in flows)}
    if not any(ways.values()):
        why = "what operations of metadata take of one is not counted"
        return GatewaysCounted(protocol, 0.0, 0.0, None, None, why_not=why)
    own = [one for one in seen if one.protocol == protocol]
    by_way = {way: sorted((one for one in own if one.reads is way), key=lambda one: one.low) for way in ways}
    missing = [("reads" if way else "writes") for way, most in ways.items() if most and not by_way[way]]
    if missing:
        run = "leadline run render --target NAME=ITS_MOUNT -o DIR, then --from DIR"
        why = f"measure first how fast one {' and '.join(missing)}: {run}"
        return GatewaysCounted(protocol, busiest.read, busiest.written, None, None, why_not=why)
    needed = [way for way, most in ways.items() if most]
    ends = [[by_way[way][place] for way in needed] for place in (-1, 0)]
    counts = [_enough(flows, rates) for rates in ends]
    cells = [tuple(dict.fromkeys(one.cell for one in rates)) for rates in ends]
    if counts[0] > FURTHEST:
        least = math.ceil(counts[0] / FURTHEST)
        why = f"measure first with {least} at once; {counts[0]} by the fastest cells are too far from one"
        return GatewaysCounted(protocol, busiest.read, busiest.written, None, None, why_not=why)
    fastest, slowest = counts
    return GatewaysCounted(protocol, busiest.read, busiest.written, fastest, slowest, cells[0], cells[1])


def _enough(flows: Sequence[ClientFlow], rates: Sequence[PerGatewayRate]) -> int:
    """Reads and writes share a gateway's time; of every hour the one that needs most."""
    parts = [sum((flow.read if one.reads else flow.written) / one.low for one in rates) for flow in flows]
    return max(1, math.ceil(max(parts)))


def _through(asked: AskedSizing, protocol: str, hour: int) -> ClientFlow:
    flows = [flow_of(one, hour) for one in asked.clients.values() if one.through == protocol]
    return ClientFlow(sum(one.read for one in flows), sum(one.written for one in flows))


def gateway_words(asked: AskedSizing, seen: Sequence[PerGatewayRate]) -> Iterator[str]:
    """A sentence a protocol."""
    for one in gateways_counted(asked, seen):
        ways = (("read", one.read_bytes_s), ("written", one.written_bytes_s))
        load = " and ".join(f"{format_rate(rate)} {way}" for way, rate in ways if rate)
        if one.fastest is None:
            place = f"Through gateways of {one.protocol}, {load or 'no bytes'}"
            yield f"{place}: how many is not known; {one.why_not}."
            continue
        slow = ""
        if one.slowest != one.fastest:
            slow = f", {one.slowest} at those of {' and '.join(one.slowest_cells)}"
        yield (
            f"Through gateways of {one.protocol}, {load}: {one.fastest} at the rates of"
            f" {' and '.join(one.fastest_cells)}, measured of one{slow}; and one more for each that may fail."
        )
