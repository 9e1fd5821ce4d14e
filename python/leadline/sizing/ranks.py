"""How many active metadata servers (ranks) carry the operations of clients, by measured rates only.

A rank's rate is what a measured cell gave, divided by its ranks: these gave it, so that as many more give as
much more where directories are spread over them, whatever bounded the cell. So it is a number that is enough.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from leadline.sizing.request import HOURS, AskedSizing
from leadline.units import format_number

RANKS_FURTHEST = 4  # times those that were measured, as devices
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
    return tuple(_counted(one, every, wanted) for one in seen if any(name in one.rates for name in wanted))


def _counted(one: PerRankRate, every: Sequence[Mapping[str, float]], wanted: Sequence[str]) -> RanksCounted:
    missing = [name for name in wanted if name not in one.rates]
    if missing:
        return RanksCounted(one.cell, None, None, f"it has no rate of {', '.join(missing)}")
    # A rank's time is shared: each operation takes its part of it.
    low, high = (
        max(sum(asked[name] / one.rates[name][end] for name in wanted) for asked in every) for end in (0, 1)
    )
    enough, by_high = max(1, math.ceil(low)), max(1, math.ceil(high))
    if enough > RANKS_FURTHEST * one.ranks:
        least = math.ceil(enough / RANKS_FURTHEST)
        why = (
            f"measure first with {least} active ranks or more; {enough} are more than {RANKS_FURTHEST} times"
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
