"""Does the rate of a trial change its level while it is measured?

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

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from leadline.store.tables import LatencyRow

Array = NDArray[np.float64]

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
    from scipy.special import stdtr

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
    return likelihood, min(2 * float(stdtr(degrees, -largest)) * places.size, 1.0)


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
