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

How a figure went over many results: series, and one level shift where there is one.

Does the rate of a trial change its level while it is measured?

Rates of neighbouring intervals resemble each other: caches fill, queues drain. A test that takes them as
independent calls every slow swing a shift. So a step is fitted by generalised least squares for each of a
grid of correlations (a first-order autoregressive series), each with its own probability that the largest
step lies so far from 0 by chance, and these are averaged by how well each correlation fits the series with
its step. It is the method of `intervals`, for a step in place of a mean, and cautious for short series,
where correlation and step look alike.

Sources: Worsley, "On the likelihood ratio test for a shift in location of normal populations", JASA 74
(1979), for the largest of all steps; its probability is bounded by the sum over the places where it may lie
(Bonferroni). Zellner and Tiao, JASA 59 (1964), for averaging over correlations. How often it errs is in
`bench/coverage.md`.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from leadline.analysis.statistics.special import student_cdf
from leadline.store.tables import LatencyRow

FEWEST_INTERVALS = 8
CORRELATIONS: tuple[float, ...] = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
PRIOR: tuple[float, ...] = (0.28,) + (0.08,) * 9
# A level has at least this many intervals, and this share of all: a pause is no level.
_LEVEL_INTERVALS = 3
_LEVEL_SHARE = 0.1
_FAR = 4.0
_MOST_INTERVALS = 240  # of a trial; neighbours of more are averaged, since effort grows with the square
_SMALLEST_SQUARE = 1e-12  # of a series in units of its standard deviation: below it lies rounding


@dataclass(frozen=True)
class Shift:
    """The largest step of a series: `at` is the position of the first value after it (from 0), `before` and
    `after` are the medians of the values, which a pause leaves alone."""

    at: int
    before: float
    after: float
    p_value: float

    @property
    def size(self) -> float:
        """The step as a share of the higher level."""
        higher = max(abs(self.before), abs(self.after))
        return abs(self.after - self.before) / higher if higher > 0 else 0.0


@dataclass(frozen=True)
class TrialShift:
    """The largest step of a trial's operations per second; `at_s` is counted from the trial's start."""

    at_s: float
    shift: Shift


def shift_of_trial(rows: Sequence[LatencyRow]) -> TrialShift | None:
    """The largest step among a trial's measured intervals; `rows` are its latencies, interval by interval.

    None where there are too few intervals, or nothing changes. Reads and writes are added up; an interval
    without a row had no operation; one that was cut short is left out.
    """
    counts: dict[int, int] = {}
    bounds: dict[int, tuple[int, int]] = {}
    for row in rows:
        if row.interval >= 0 and row.measured and row.clock == "total" and row.direction in ("read", "write"):
            counts[row.interval] = counts.get(row.interval, 0) + row.operations
            bounds[row.interval] = (row.start_ns, row.end_ns)
    if not counts:
        return None
    longest_ns = max(end - start for start, end in bounds.values())
    whole = [index for index, (start, end) in bounds.items() if 2 * (end - start) >= longest_ns]
    first, last = min(whole), max(whole)
    lengths = {index: bounds[index][1] - bounds[index][0] for index in whole}
    rates = [counts.get(index, 0) * 1e9 / lengths.get(index, longest_ns) for index in range(first, last + 1)]
    together = math.ceil(len(rates) / _MOST_INTERVALS)
    groups = [rates[start : start + together] for start in range(0, len(rates), together)]
    found = find_shift([math.fsum(group) / len(group) for group in groups])
    if found is None:
        return None
    return TrialShift((bounds[first][0] + found.at * together * longest_ns) / 1e9, found)


def find_shift(values: Sequence[float]) -> Shift | None:
    """The largest step of a series; None where it is too short, or does not vary."""
    series = np.asarray(values, dtype=float)
    if series.size < FEWEST_INTERVALS or np.ptp(series) <= 1e-9 * np.abs(series).max():
        return None
    calm = _without_pauses(series)
    standard = (calm - calm.mean()) / calm.std()
    edge = max(_LEVEL_INTERVALS, int(np.ceil(_LEVEL_SHARE * series.size)))
    places = np.arange(edge, series.size - edge + 1)
    parts = [_steps_at_correlation(standard, rho, places) for rho in CORRELATIONS]
    fit = np.array([likelihood.max() for likelihood, _ in parts]) + np.log(PRIOR)
    weight = np.exp(fit - fit.max())
    p_value = float(weight @ np.array([p for _, p in parts]) / weight.sum())
    at = int(places[parts[0][0].argmax()])  # by least squares: consistent whatever the correlation
    return Shift(at, float(np.median(series[:at])), float(np.median(series[at:])), p_value)


def _without_pauses(series: Array) -> Array:
    """The series with what lies far outside drawn in: a single pause would pass for the start of a level."""
    middle = np.median(series)
    away = _FAR * 1.4826 * np.median(np.abs(series - middle))  # of normal values, that many deviations
    return np.clip(series, middle - away, middle + away) if away > 0 else series


def _steps_at_correlation(standard: Array, rho: float, places: NDArray[np.int64]) -> tuple[Array, float]:
    """Generalised least squares of a mean and a step: each place's log likelihood, and the probability that
    the largest step is as large by chance.
    """
    count = standard.size
    mean, precision, steps, lengths = _design(count, int(places[0]), rho)
    values = _white(standard, rho)
    values -= (values @ mean) * mean
    explained = (steps @ values) ** 2 / lengths
    left = np.maximum(values @ values - explained, _SMALLEST_SQUARE)
    degrees = count - 3  # less the mean, the step and the correlation
    largest = float(np.sqrt(explained / left * degrees).max())
    likelihood = -0.5 * (
        (count - 1) * np.log(1 - rho * rho) + np.log(precision) + np.log(lengths) + (count - 2) * np.log(left)
    )
    return likelihood, min(2 * float(student_cdf(degrees, -largest)) * places.size, 1.0)


@lru_cache(maxsize=4 * len(CORRELATIONS))  # trials of a study are mostly as long as each other
def _design(count: int, edge: int, rho: float) -> tuple[Array, float, Array, Array]:
    """What fits a series of `count` values, whatever they are: the mean's direction, of length 1, and its
    precision; of each place a step's direction without the mean, (places, count), and its squared length.
    """
    mean = _white(np.ones(count), rho)
    precision = float(mean @ mean)
    mean /= np.sqrt(precision)
    places = np.arange(edge, count - edge + 1)
    steps = _white((np.arange(count)[None, :] >= places[:, None]).astype(float), rho)
    steps -= (steps @ mean)[:, None] * mean
    return mean, precision, steps, (steps**2).sum(axis=1)


def _white(series: Array, rho: float) -> Array:
    """Without what each value keeps of the one before (Prais and Winsten, 1954); along the last axis."""
    changes = (series[..., 1:] - rho * series[..., :-1]) / np.sqrt(1 - rho * rho)
    return np.concatenate([series[..., :1], changes], axis=-1)


POINTS_MIN = 8  # below it Pettitt's approximation of the probability is poor
PROBABILITY_MAX = 0.01


@dataclass(frozen=True)
class TrendShift:
    """The level changed between the points `before` and `before + 1`; medians on both sides."""

    before: int
    median_before: float
    median_after: float
    probability: float


def level_shift(values: Sequence[float]) -> TrendShift | None:
    """The most likely single change of level, where chance gives one as clear in at most 1 of 100 series.

    Pettitt, "A non-parametric approach to the change-point problem", Applied Statistics 28 (1979): ranks
    only, so neither outliers nor a skew matter. It assumes that results are independent of each other.
    """
    count = len(values)
    if count < POINTS_MIN:
        return None
    import numpy as np

    array = np.asarray(values, dtype=float)
    signs = np.sign(array[:, None] - array[None, :])
    statistic = np.cumsum(signs.sum(axis=1))[:-1]
    place = int(np.argmax(np.abs(statistic)))
    largest = float(abs(statistic[place]))
    probability = min(1.0, 2 * math.exp(-6 * largest**2 / (count**3 + count**2)))
    if probability > PROBABILITY_MAX:
        return None
    medians = statistics.median(values[: place + 1]), statistics.median(values[place + 1 :])
    return TrendShift(place, medians[0], medians[1], probability)


def thinned(values: Sequence[float], width: int) -> list[float]:
    """At most `width` medians of consecutive values, for a line of that many characters."""
    if len(values) <= width:
        return list(values)
    edges = [round(place * len(values) / width) for place in range(width + 1)]
    return [statistics.median(values[a:b]) for a, b in itertools.pairwise(edges)]


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
    first, rest = series[0], series[1:]
    if rest.min() - np.ptp(rest) <= first <= rest.max() + np.ptp(rest):
        return 1.0
    error = rest.std(ddof=1) * math.sqrt(1 + 1 / rest.size)
    return 2 * float(student_cdf(rest.size - 1, -abs(first - rest.mean()) / error)) if error > 0 else 0.0


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
