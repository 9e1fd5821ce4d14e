"""Do series change over their blocks: a drift, a change of level, or blocks that hang together?

One permutation test for all series of a study. If nothing changes over time, the blocks' order means
nothing, so every order of whole blocks is equally likely; shuffling whole blocks keeps what the series
have in common. Three statistics of each series are held against the largest over all series, and the best
of the three against its own distribution. A first block that is unlike all others cannot be found that way:
it is the most extreme one by chance in one of n. For it there is a t test of its own, which takes the other
blocks as normal, and a rule that holds whatever they are: it must lie further away from them than they lie
apart. The chance of any false alarm in a study is at most ALPHA, a fifth of it for the first block.

Sources: Mann, Econometrica 13 (1945), for the trend; Pettitt, Applied Statistics 28 (1979), for the change of
level, here on means; von Neumann, Annals of Mathematical Statistics 12 (1941), for dependence; Westfall and
Young, "Resampling-based multiple testing" (1993), for the maximum over series.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Kind = Literal["trend", "level", "dependence"]

KINDS: tuple[Kind, ...] = ("trend", "level", "dependence")
ALPHA = 0.05
_FIRST_BLOCK_SHARE = 0.2
FEWEST_BLOCKS = 5  # with four, even a perfect trend has a chance of 2 in 24
_ALL_ORDERS_UP_TO = 6
_SHUFFLES = 1999


@dataclass(frozen=True)
class Change:
    """A series that changes. `before` and `after` are means of the series' values: of the first and last
    third for a trend, before and from position `at` (from 0) for a level; None for dependence.

    `p_value` is corrected for all series and statistics.
    """

    series: int
    kind: Kind
    p_value: float
    before: float | None
    after: float | None
    at: int | None = None
    correlation: float = 0.0


def find_changes(rows: Sequence[Sequence[float]], seed: int = 0, alpha: float = ALPHA) -> tuple[Change, ...]:
    """The series (rows, one value a block, all of the same blocks in order) that change over their blocks.

    Each series is named once, by the statistic that shows it best. Constant series cannot change.
    """
    values = np.asarray(rows, dtype=float)
    if values.ndim != 2 or values.shape[0] == 0 or values.shape[1] < FEWEST_BLOCKS:
        return ()
    spread = values.std(axis=1)
    moving = np.flatnonzero(spread > 1e-12 * np.maximum(np.abs(values).max(axis=1), 1e-300))
    if moving.size == 0:
        return ()
    orders = _orders(values.shape[1], seed)
    changes = {change.series: change for change in _by_order(values, moving, orders, alpha)}
    for row in moving:
        p_value = min(first_block_p_value(values[row]) * moving.size, 1.0)
        if int(row) not in changes and p_value <= alpha * _FIRST_BLOCK_SHARE:
            changes[int(row)] = _step_at(int(row), values[row], p_value, 1)
    return tuple(sorted(changes.values(), key=lambda change: change.p_value))


def _by_order(
    values: Array, moving: NDArray[np.intp], orders: NDArray[np.int64], alpha: float
) -> Iterator[Change]:
    largest, own = _statistics(values[moving], orders)
    per_kind = _shares_at_least(largest)  # (orders, kinds): of each order, how rare its largest is
    best = np.sort(per_kind.min(axis=1))
    for position, row in enumerate(moving):
        shares = (largest >= own[position] - 1e-9).mean(axis=0)
        kind = int(shares.argmin())
        p_value = float(np.searchsorted(best, shares[kind] + 1e-12, side="right") / best.size)
        if p_value <= alpha * (1 - _FIRST_BLOCK_SHARE):
            yield _describe(int(row), values[row], KINDS[kind], p_value)


def first_block_p_value(series: Array) -> float:
    """How rare it is that the first value lies so far from the others; 1 where it is among them."""
    from scipy.special import stdtr

    first, rest = series[0], series[1:]
    if rest.min() - np.ptp(rest) <= first <= rest.max() + np.ptp(rest):
        return 1.0
    error = rest.std(ddof=1) * math.sqrt(1 + 1 / rest.size)
    return 2 * float(stdtr(rest.size - 1, -abs(first - rest.mean()) / error)) if error > 0 else 0.0


def _orders(blocks: int, seed: int) -> NDArray[np.int64]:
    """Orders of the blocks, the true one first: all of them where they are few."""
    if blocks <= _ALL_ORDERS_UP_TO:
        return np.array(list(itertools.permutations(range(blocks))))
    random = np.random.default_rng(seed)
    shuffled = random.permuted(np.tile(np.arange(blocks), (_SHUFFLES, 1)), axis=1)
    return np.concatenate([np.arange(blocks)[None, :], shuffled])


def _statistics(values: Array, orders: NDArray[np.int64]) -> tuple[Array, Array]:
    """The largest of each statistic over all series for each order, and the true order's of each series."""
    largest = np.full((len(orders), len(KINDS)), -np.inf)
    own = np.empty((len(values), len(KINDS)))
    for index, series in enumerate(values):
        found = series_statistics(series[orders])
        own[index] = found[0]
        largest = np.maximum(largest, found)
    return largest, own


def series_statistics(rows: Array) -> Array:
    """Of each row: Kendall's |S|, the largest standardised step of the mean, the lag-1 correlation."""
    blocks = rows.shape[1]
    trend = np.zeros(len(rows))
    for lag in range(1, blocks):
        trend += np.sign(rows[:, lag:] - rows[:, :-lag]).sum(axis=1)
    centred = rows - rows.mean(axis=1, keepdims=True)
    square = (centred**2).sum(axis=1)
    sizes = np.arange(1, blocks)
    steps = np.abs(np.cumsum(centred, axis=1)[:, :-1]) / np.sqrt(sizes * (blocks - sizes) / blocks)
    lagged = (centred[:, 1:] * centred[:, :-1]).sum(axis=1)
    return np.column_stack([np.abs(trend), steps.max(axis=1) / np.sqrt(square), lagged / square])


def _shares_at_least(largest: Array) -> Array:
    """For each order and statistic, the share of orders whose largest is at least as large."""
    shares = np.empty_like(largest)
    for kind in range(largest.shape[1]):
        column = np.sort(largest[:, kind])
        below = np.searchsorted(column, largest[:, kind] - 1e-9, side="left")
        shares[:, kind] = 1 - below / len(column)
    return shares


def _describe(series: int, values: Array, kind: Kind, p_value: float) -> Change:
    correlation = float(series_statistics(values[None, :])[0, 2])
    if kind == "dependence":
        return Change(series, kind, p_value, None, None, None, correlation)
    if kind == "trend":
        third = max(values.size // 3, 1)
        ends = float(values[:third].mean()), float(values[-third:].mean())
        return Change(series, kind, p_value, *ends, None, correlation)
    return _step_at(series, values, p_value, _step(values))


def _step_at(series: int, values: Array, p_value: float, at: int) -> Change:
    correlation = float(series_statistics(values[None, :])[0, 2])
    before, after = float(values[:at].mean()), float(values[at:].mean())
    return Change(series, "level", p_value, before, after, at, correlation)


def _step(values: Any) -> int:
    """Where the mean changes most: the position of the first value after it."""
    blocks = len(values)
    sums = np.abs(np.cumsum(values - np.mean(values))[:-1])
    weights = [math.sqrt(size * (blocks - size) / blocks) for size in range(1, blocks)]
    return int(np.argmax(sums / weights)) + 1
