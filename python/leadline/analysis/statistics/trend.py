"""How a figure went over many results: series, and one level shift where there is one."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

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
