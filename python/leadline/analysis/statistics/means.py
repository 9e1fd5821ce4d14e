"""Means and ratios over blocks, with intervals.

Rates and latencies are positive and skewed, and are compared as ratios; so both work on logarithms:
the geometric mean, and an interval of the mean logarithm. With paired blocks the ratio of two cells'
means is then exactly the mean ratio, and the tables agree with the comparisons.
Source: Fleming and Wallace, "How not to lie with statistics", CACM 29 (1986), for the mean; the interval
is that of `intervals`, which lets blocks depend on the blocks before them. A percentile is compared in the
same way, by the percentile of each block: the method of batches for quantiles, where the batch is the block
(Heidelberger and Lewis, "Quantile estimation in dependent sequences", Operations Research 32, 1984), since
operations within a trial are anything but independent.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from leadline.analysis.statistics.intervals import MeanOfBlocks

ALPHA = 0.05
_SMALLEST_P = 1e-12


@dataclass(frozen=True)
class Estimate:
    """A geometric mean with its interval; `low` and `high` are None below two values."""

    value: float
    low: float | None
    high: float | None
    count: int
    confidence: float = 1 - ALPHA


@dataclass(frozen=True)
class Ratio:
    """What is known of a ratio: `series` has one mixture where blocks were paired, two where not.

    `count` is the (smaller) number of blocks; below two there is no series and no interval.
    `logarithms` are the paired blocks' log ratios in order, empty where blocks do not pair; `blocks` are the
    numbers of these blocks and `sides` the logarithms of base and other, where they are known.
    """

    value: float
    count: int
    series: tuple[MeanOfBlocks, ...]
    logarithms: tuple[float, ...] = ()
    blocks: tuple[int, ...] = ()
    sides: tuple[tuple[float, ...], ...] = ()

    def estimate(self, alpha: float = ALPHA) -> Estimate:
        """The ratio with the interval that misses with probability `alpha`."""
        if not self.series:
            return Estimate(self.value, None, None, self.count, 1 - alpha)
        return self.within(self._margin(alpha), alpha)

    def within(self, margin: float, alpha: float) -> Estimate:
        """The ratio with the interval of that half width, of its logarithm."""
        mean = math.log(self.value)
        return Estimate(self.value, _exp(mean - margin), _exp(mean + margin), self.count, 1 - alpha)

    def p_value(self) -> float:
        """The level at which the interval just touches 1: an interval below it leaves 1 out."""
        if not self.series:
            return 1.0
        import numpy as np

        distance = abs(math.log(self.value))
        if len(self.series) == 1:
            return float(self.series[0].beyond(np.array([distance]))[0])
        low, high = _SMALLEST_P, 1.0
        while high / low > 1.0001:
            middle = math.sqrt(low * high)
            low, high = (low, middle) if self._margin(middle) < distance else (middle, high)
        return high

    def _margin(self, alpha: float) -> float:
        """Two that were measured apart: the root of the sum of squares of their margins.

        Source: Zou and Donner, "Construction of confidence limits about effect measures",
        Statistics in Medicine 27 (2008).
        """
        return math.hypot(*(float(one.half_width(alpha)[0]) for one in self.series))


def geometric_mean(values: Sequence[float], alpha: float = ALPHA) -> Estimate | None:
    """The mean of positive values in order of blocks; None when there is none, or one is not positive."""
    found = _ratio_of_one(values)
    return found.estimate(alpha) if found else None


def geometric_means(rows: Sequence[Sequence[float]], alpha: float = ALPHA) -> list[Estimate | None]:
    """The same of many series: the intervals of those with as many blocks are found together."""
    found: list[Estimate | None] = [None] * len(rows)
    alike: dict[int, list[int]] = {}
    for place, values in enumerate(rows):
        if len(values) < 2 or min(values) <= 0:
            found[place] = geometric_mean(values, alpha)
        else:
            alike.setdefault(len(values), []).append(place)
    for places in alike.values():
        from leadline.analysis.statistics.intervals import mean_of_blocks

        logarithms = [[math.log(value) for value in rows[place]] for place in places]
        margins = mean_of_blocks(logarithms).half_width(alpha)
        for place, own, margin in zip(places, logarithms, margins, strict=True):
            mean = math.exp(math.fsum(own) / len(own))
            found[place] = Ratio(mean, len(own), ()).within(float(margin), alpha)
    return found


def typical(values: Sequence[float]) -> float | None:
    """The geometric mean alone, as of the copies of a trial; None of no values, or if one is not above 0."""
    if not values or min(values) <= 0:
        return None
    return math.exp(math.fsum(map(math.log, values)) / len(values))


def arithmetic_mean(values: Sequence[float], alpha: float = ALPHA) -> Estimate | None:
    """The plain mean of values that may be zero, in order of blocks, such as shares; never below zero."""
    if not values:
        return None
    mean = math.fsum(values) / len(values)
    if len(values) < 2:
        return Estimate(mean, None, None, 1, 1 - alpha)
    from leadline.analysis.statistics.intervals import mean_of_blocks

    margin = float(mean_of_blocks([list(values)]).half_width(alpha)[0])
    return Estimate(mean, max(0.0, mean - margin), mean + margin, len(values), 1 - alpha)


def paired_ratio(base: Sequence[float], other: Sequence[float], blocks: Sequence[int] = ()) -> Ratio | None:
    """The mean of other/base, pair by pair. Both have one value per block, in the same order."""
    if len(base) != len(other) or not base or min(*base, *other) <= 0:
        return None
    ratio = _ratio_of_one([b / a for a, b in zip(base, other, strict=True)])
    sides = tuple(tuple(math.log(value) for value in side) for side in (base, other))
    return replace(ratio, blocks=tuple(blocks), sides=sides) if ratio else None


def unpaired_ratio(base: Sequence[float], other: Sequence[float]) -> Ratio | None:
    """The ratio of two geometric means measured apart; `count` is the smaller number of values."""
    first, second = _ratio_of_one(base), _ratio_of_one(other)
    if first is None or second is None:
        return None
    series = (*first.series, *second.series) if first.series and second.series else ()
    return Ratio(second.value / first.value, min(first.count, second.count), series)


def _ratio_of_one(values: Sequence[float]) -> Ratio | None:
    if not values or min(values) <= 0:
        return None
    logarithms = tuple(math.log(value) for value in values)
    mean = math.exp(math.fsum(logarithms) / len(logarithms))
    if len(logarithms) < 2:
        return Ratio(mean, 1, ())
    from leadline.analysis.statistics.intervals import mean_of_blocks

    return Ratio(mean, len(logarithms), (mean_of_blocks([logarithms]),), logarithms)


def _exp(value: float) -> float:
    return math.exp(min(value, 700.0))  # beyond it a float overflows; such an interval says nothing anyway
