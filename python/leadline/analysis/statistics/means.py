"""Means and ratios over blocks, with intervals.

Rates and latencies are positive and skewed, and are compared as ratios; so both work on logarithms:
the geometric mean, and an interval of the mean logarithm. With paired blocks the ratio of two cells'
means is then exactly the mean ratio, and the tables agree with the comparisons.
Source: Fleming and Wallace, "How not to lie with statistics", CACM 29 (1986), for the mean; the interval
is that of `intervals`, which lets blocks depend on the blocks before them. A percentile is compared in the
same way, by the percentile of each block: the method of batches for quantiles, where the batch is the block
(Heidelberger and Lewis, "Quantile estimation in dependent sequences", Operations Research 32, 1984), since
operations within a trial are anything but independent.

Effects of factors at two levels, from states in which several are changed at once.

In each block every state is measured once. A factor's effect is the mean logarithm over the states that have
it less that over the states that have not (Box, Hunter and Hunter, "Statistics for Experimenters", 2005); so
each block gives one value of each effect, and these are ratios paired by block, as of two cells. Two factors
act on each other where the product of their levels has an effect of its own. In a fraction of all states some
products are the same column: these cannot be told from each other.

Values that nobody arranged in blocks, such as the times of works that were done before and after a date.

Each value stands for itself, and both sides may scatter differently. Sources: Welch, "The generalization of
'Student's' problem when several different population variances are involved", Biometrika 34 (1947), on
logarithms, so that it is a ratio of geometric means; degrees of freedom: Satterthwaite, Biometrics 2 (1946).
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from leadline.analysis.statistics.intervals import MeanOfBlocks

ALPHA = 0.05
_SMALLEST_P = 1e-12


@dataclass(frozen=True)
class WelchRatio:
    """other/base of geometric means as a logarithm, with its standard error and degrees of freedom.

    `count` is the smaller number of values; below two `error` and `degrees` are None, and so is the interval.
    """

    logarithm: float
    error: float | None
    degrees: float | None
    count: int

    def estimate(self, alpha: float = ALPHA) -> Estimate:
        """The ratio with the interval that misses with probability `alpha`."""
        return _estimate(self.logarithm, self.error, self.degrees, self.count, alpha)

    def p_value(self) -> float:
        """The level at which the interval just touches 1; 1 where there is none."""
        from leadline.analysis.statistics.special import student_cdf

        if self.error is None or self.degrees is None:
            return 1.0
        if self.error == 0:
            return float(self.logarithm == 0)
        return 2 * float(student_cdf(self.degrees, -abs(self.logarithm) / self.error))


def welch_ratio(
    base: Sequence[float], other: Sequence[float], least: tuple[float, float] = (0.0, 0.0)
) -> WelchRatio | None:
    """The ratio of two geometric means; None where a side has no value, or one that is not positive.

    `least` are standard deviations of the logarithms of base and other that they cannot be below, as by the
    step of the clock that took them.
    """
    if not base or not other or min(*base, *other) <= 0:
        return None
    sides = [_moments(values, floor) for values, floor in zip((base, other), least, strict=True)]
    logarithm, count = sides[1][0] - sides[0][0], min(len(base), len(other))
    if count < 2:
        return WelchRatio(logarithm, None, None, count)
    parts = [variance / len(values) for (_, variance), values in zip(sides, (base, other), strict=True)]
    square = sum(parts)
    weights = sum(part**2 / (len(values) - 1) for part, values in zip(parts, (base, other), strict=True))
    degrees = square**2 / weights if weights else float(len(base) + len(other) - 2)
    return WelchRatio(logarithm, math.sqrt(square), degrees, count)


def mean_of_values(values: Sequence[float], least: float = 0.0, alpha: float = ALPHA) -> Estimate | None:
    """The geometric mean of values that depend on no other, with Student's interval of their logarithms.

    None and `least` as of `welch_ratio`.
    """
    if not values or min(values) <= 0:
        return None
    mean, variance = _moments(values, least)
    error = math.sqrt(variance / len(values)) if len(values) > 1 else None
    return _estimate(mean, error, len(values) - 1.0, len(values), alpha)


def _moments(values: Sequence[float], least: float) -> tuple[float, float]:
    """Mean and variance of the logarithms; the variance of one value is not known."""
    logarithms = [math.log(value) for value in values]
    variance = statistics.variance(logarithms) if len(logarithms) > 1 else math.nan
    return statistics.fmean(logarithms), max(variance, least**2)


def _estimate(
    logarithm: float, error: float | None, degrees: float | None, count: int, alpha: float
) -> Estimate:
    if error is None or degrees is None:
        return Estimate(math.exp(logarithm), None, None, count, 1 - alpha)
    from leadline.analysis.statistics.special import student_quantile

    margin = float(student_quantile(degrees, 1 - alpha / 2)) * error
    low, high = (math.exp(min(logarithm + one, 700.0)) for one in (-margin, margin))
    return Estimate(math.exp(logarithm), low, high, count, 1 - alpha)


Levels = Mapping[str, frozenset[str]]  # by state, the factors that are changed in it
FactorPair = tuple[str, str]


def contrast(values: Mapping[str, Mapping[int, float]], plus: Collection[str]) -> Ratio | None:
    """The mean over the states in `plus` over that of the others, by blocks in which every state has a value.

    `values` are by state and block. None where a value is not positive, or no block is whole.
    """
    minus = [state for state in values if state not in plus]
    blocks = sorted(set.intersection(*(set(found) for found in values.values()))) if values else []
    if not blocks or not plus or not minus:
        return None
    if min(values[state][block] for state in values for block in blocks) <= 0:
        return None
    sides = [[_mean(values, states, block) for block in blocks] for states in (minus, sorted(plus))]
    return paired_ratio(sides[0], sides[1], blocks)


def _mean(values: Mapping[str, Mapping[int, float]], states: Sequence[str], block: int) -> float:
    return math.exp(math.fsum(math.log(values[state][block]) for state in states) / len(states))


def with_factor(levels: Levels, factor: str) -> frozenset[str]:
    """The states that have it."""
    return frozenset(state for state, changed in levels.items() if factor in changed)


def with_both_or_none(levels: Levels, pair: FactorPair) -> frozenset[str]:
    """The states that have both factors, or neither: the product of their levels is positive there."""
    first, second = pair
    return frozenset(state for state, changed in levels.items() if (first in changed) == (second in changed))


def pairs_told(levels: Levels, factors: Sequence[str]) -> tuple[tuple[FactorPair, ...], ...]:
    """All pairs of factors; those in one group cannot be told from each other."""
    groups: dict[frozenset[str], list[FactorPair]] = {}
    for pair in combinations(factors, 2):
        same = with_both_or_none(levels, pair)
        # With the opposite sign it is the same column, too.
        opposite = frozenset(levels) - same
        groups.setdefault(opposite if opposite in groups else same, []).append(pair)
    return tuple(tuple(group) for group in groups.values())


def is_clear(levels: Levels, factors: Sequence[str]) -> bool:
    """Whether every effect is clear of all others, and of every two factors together (resolution IV)."""
    every = frozenset(levels)
    own = [with_factor(levels, factor) for factor in factors]
    pairs = [with_both_or_none(levels, pair) for pair in combinations(factors, 2)]
    halves = all(2 * len(one) == len(every) for one in (*own, *pairs))
    told = {one for column in own for one in (column, every - column)}
    return halves and len(told) == 2 * len(own) and not told.intersection(pairs)


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
