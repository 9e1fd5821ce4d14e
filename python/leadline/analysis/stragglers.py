"""Which host of a study is slower than the others, by how much, and how sure that is.

A host's speed in a block is divided by the median of the other hosts' in the same block: what happens to all
of them at once is in both, and one slow host moves no median. The blocks' log ratios are averaged with the
intervals of the house (`statistics/moderated.py`): how much hosts scatter is learned from all of them, and a
host that scatters unlike the others keeps the interval of its own blocks. Every host of every cell is a
comparison; among those that are found at most the share alpha is false (`statistics/intervals.py`).

Of three hosts the median of two others would be moved by one of them: there the slower one stands for both,
so that one fast host makes no stragglers of the other two.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from leadline.analysis.statistics.intervals import (
    ALPHA,
    MeanOfBlocks,
    discovery_levels,
    holm_levels,
    mean_of_blocks,
)
from leadline.analysis.statistics.moderated import BLOCKS, FEWEST_RATIOS, moderate

Array = NDArray[np.float64]

_PARTS = ("mean", "scale", "weight", "centre", "spread", "degrees")  # of a mean, one value a row
# cell -> block -> host -> its speed, larger is faster, in any unit
Speeds = Mapping[str, Mapping[int, Mapping[str, float]]]


@dataclass(frozen=True)
class HostAway:
    """How fast a host is beside the others in one cell: 0.8 is 20 % slower than their median.

    `low` and `high` are None below two blocks, where no interval was worked out (of very many hosts that lie
    amid the others), and where `found` is None for the former. `found`: its interval leaves out 1.
    """

    cell: str
    host: str
    ratio: float
    low: float | None
    high: float | None
    blocks: int
    confidence: float
    found: bool
    unlike: bool = False


@dataclass(frozen=True)
class _CellHosts:
    """The hosts of one cell: one row a host, one column a block."""

    cell: str
    hosts: tuple[str, ...]
    logarithms: Array
    away: Array


def hosts_away(speeds: Speeds, alpha: float = ALPHA, intervals_max: int = 64) -> tuple[HostAway, ...]:
    """Every host of every cell with two hosts or more, in the order of cells and hosts.

    Hosts that lack a block, or a speed in one, are left out. Of a cell with more than `intervals_max` hosts
    only those that were found have an interval.
    """
    rows = [one for cell, blocks in speeds.items() if (one := _rows(cell, blocks)) is not None]
    means, unlike = _means(rows, learned=alpha >= ALPHA)
    p_values = _by_place(means, lambda one: one.beyond(np.abs(one.mean)), 1.0)
    rule = discovery_levels if alpha >= ALPHA else holm_levels
    levels = rule(p_values, None, alpha)
    decided = [p_value <= level for p_value, level in zip(p_values, levels, strict=True)]
    shown = [few for row in rows for few in [len(row.hosts) <= intervals_max] * len(row.hosts)]
    halves: dict[int, float] = {}
    for level in set(levels):
        wanted = [
            mean if levels[at] == level and (decided[at] or shown[at]) else None
            for at, mean in enumerate(means)
        ]
        found = _by_place(wanted, partial(MeanOfBlocks.half_width, alpha=level), math.nan)
        halves |= {at: half for at, half in enumerate(found) if wanted[at] is not None}
    places = [(row, at) for row in rows for at in range(len(row.hosts))]
    return tuple(
        _host_away(row, at, halves.get(place), levels[place], found=decided[place], unlike=place in unlike)
        for place, (row, at) in enumerate(places)
    )


def _host_away(
    row: _CellHosts, at: int, half: float | None, level: float, *, found: bool, unlike: bool
) -> HostAway:
    mean = float(row.away[at].mean())
    return HostAway(
        cell=row.cell,
        host=row.hosts[at],
        ratio=math.exp(mean),
        low=None if half is None else math.exp(max(mean - half, -700.0)),
        high=None if half is None else math.exp(min(mean + half, 700.0)),
        blocks=row.away.shape[1],
        confidence=1 - level,
        found=found and half is not None,
        unlike=unlike,
    )


def _by_place(
    means: Sequence[MeanOfBlocks | None], asked: Callable[[MeanOfBlocks], Array], otherwise: float
) -> list[float]:
    """What is asked of each, of all with as many components at once: thousands one by one take minutes."""
    found = [otherwise] * len(means)
    alike: dict[tuple[int, int], list[int]] = {}
    for at, one in enumerate(means):
        if one is not None:
            alike.setdefault((one.blocks, len(one.weight)), []).append(at)
    for places in alike.values():
        parts = [one for at in places if (one := means[at]) is not None]
        columns = {name: np.concatenate([getattr(one, name) for one in parts], axis=-1) for name in _PARTS}
        joint = MeanOfBlocks(**columns, blocks=parts[0].blocks)
        for at, value in zip(places, asked(joint), strict=True):
            found[at] = float(value)
    return found


def away_from_others(logarithms: Array) -> Array:
    """Each host's logarithm less the median of the other hosts', block by block (axes: host, block)."""
    hosts = len(logarithms)
    if hosts == 3:
        others = np.array([[1, 2], [0, 2], [0, 1]])
        slower = logarithms.mean(axis=1)[others].argmin(axis=1)
        return np.asarray(logarithms - logarithms[others[np.arange(3), slower]])
    order = np.sort(logarithms, axis=0)
    rank = np.argsort(np.argsort(logarithms, axis=0, kind="stable"), axis=0, kind="stable")
    below, above = (hosts - 2) // 2, (hosts - 1) // 2  # the middle of the others, counted from 0

    def nth(place: int) -> Array:
        """The value at a place among the others: one further where the host itself stands before it."""
        return np.asarray(np.take_along_axis(order, place + (rank <= place), axis=0))

    return np.asarray(logarithms - (nth(below) + nth(above)) / 2)


def _rows(cell: str, blocks: Mapping[int, Mapping[str, float]]) -> _CellHosts | None:
    ordered = [blocks[block] for block in sorted(blocks)]
    if not ordered:
        return None
    hosts = tuple(sorted(host for host in ordered[0] if all(one.get(host, 0.0) > 0 for one in ordered)))
    if len(hosts) < 2:
        return None
    logarithms = np.log(np.array([[one[host] for one in ordered] for host in hosts], dtype=np.float64))
    return _CellHosts(cell, hosts, logarithms, away_from_others(logarithms))


def _means(rows: Sequence[_CellHosts], *, learned: bool) -> tuple[list[MeanOfBlocks | None], frozenset[int]]:
    """What is known of each host's mean, None below two blocks; and the places of those unlike the others.

    Cells with hosts enough are learned of by themselves, the others together where they have as many blocks.
    """
    starts = np.cumsum([0, *(len(row.hosts) for row in rows)])
    means: dict[int, MeanOfBlocks] = {}
    unlike: set[int] = set()
    together: dict[tuple[int, int], list[int]] = {}
    for at, row in enumerate(rows):
        alone = at if len(row.hosts) >= FEWEST_RATIOS else -1
        together.setdefault((row.away.shape[1], alone), []).append(at)
    for (blocks, _), members in together.items():
        places = [int(starts[at]) + host for at in members for host in range(len(rows[at].hosts))]
        away = np.concatenate([rows[at].away for at in members])
        if blocks < 2:
            continue
        if learned and blocks in BLOCKS:
            names = [rows[at].cell for at in members for _ in rows[at].hosts]
            own = [str(place) for place in places]  # no two share a base: each has the others' median
            found = moderate(away, names, own, np.concatenate([rows[at].logarithms for at in members]))
            means |= dict(zip(places, found.means, strict=True))
            unlike |= {places[at] for at in found.unlike}
        else:
            means |= {place: mean_of_blocks([row]) for place, row in zip(places, away, strict=True)}
    return [means.get(place) for place in range(int(starts[-1]))], frozenset(unlike)
