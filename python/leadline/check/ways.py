"""Which ways between hosts carry less than the others: of few hosts a slow link holds back most, not few."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil

_REFERENCE = 0.75  # of three hosts a slow link leaves two of six ways as they were


@dataclass(frozen=True)
class SlowWays:
    """What the faster ways carry, how many are near it, and those (`a > b`) that carry less."""

    usual: float
    near: int
    slow: frozenset[str]


def slow_ways(rates: Mapping[str, float], within: float) -> SlowWays | None:
    """None where rates differ in no way that a link would explain.

    What is usual is the upper quartile, as a slow link holds back all ways of its host: 4 of 6 among three.
    Slow ways count where most others are near that, or each of them is one of a host all of whose ways out,
    or all of whose ways in, are slow.
    """
    usual = sorted(rates.values())[ceil(_REFERENCE * len(rates)) - 1]
    slow = frozenset(way for way, rate in rates.items() if rate < (1 - within) * usual)
    near = sum(abs(rate - usual) <= within * usual for rate in rates.values())
    if near + len(slow) < len(rates):
        return None  # some carry far more: there is no usual rate
    if 2 * near > len(rates) or all(_explained(way, rates, slow) for way in slow):
        return SlowWays(usual, near, slow)
    return None


def _explained(way: str, rates: Mapping[str, float], slow: frozenset[str]) -> bool:
    source, _, sink = way.partition(" > ")
    out = {one for one in rates if one.partition(" > ")[0] == source}
    into = {one for one in rates if one.partition(" > ")[2] == sink}
    return out <= slow or into <= slow
