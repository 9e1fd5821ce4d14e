"""Means and ratios over blocks, with intervals.

Rates and latencies are positive and skewed, and are compared as ratios; so both work on logarithms:
the geometric mean, and Student's t interval of the mean logarithm. With paired blocks the ratio of two
cells' means is then exactly the mean ratio, and the tables agree with the comparisons.
Source: Fleming and Wallace, "How not to lie with statistics", CACM 29 (1986), for the mean; any
textbook for the interval. It assumes that the blocks' logarithms are independent and near normal.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Estimate:
    """A geometric mean with its 95 % interval; `low` and `high` are None below two values."""

    value: float
    low: float | None
    high: float | None
    count: int


def geometric_mean(values: Sequence[float]) -> Estimate | None:
    """The mean of positive values; None when there is none, or one of them is not positive."""
    if not values or min(values) <= 0:
        return None
    logarithms = [math.log(value) for value in values]
    count = len(logarithms)
    mean = math.fsum(logarithms) / count
    if count < 2:
        return Estimate(math.exp(mean), None, None, count)
    margin = student_t(CONFIDENCE, count - 1) * math.sqrt(_variance(logarithms) / count)
    return Estimate(math.exp(mean), _exp(mean - margin), _exp(mean + margin), count)


def paired_ratio(base: Sequence[float], other: Sequence[float]) -> Estimate | None:
    """The mean of other/base, pair by pair. Both have one value per block, in the same order."""
    if len(base) != len(other) or not base or min(*base, *other) <= 0:
        return None
    return geometric_mean([b / a for a, b in zip(base, other, strict=True)])


def unpaired_ratio(base: Sequence[float], other: Sequence[float]) -> Estimate | None:
    """The ratio of two geometric means measured apart, with Welch's interval of the logarithms.

    `count` is the smaller number of values. Source: Welch, Biometrika 34 (1947).
    """
    means = (geometric_mean(base), geometric_mean(other))
    if means[0] is None or means[1] is None:
        return None
    ratio, count = means[1].value / means[0].value, min(len(base), len(other))
    if count < 2:
        return Estimate(ratio, None, None, count)
    errors = [_variance([math.log(v) for v in values]) / len(values) for values in (base, other)]
    total = sum(errors)
    if total == 0:
        return Estimate(ratio, ratio, ratio, count)
    degrees = total**2 / sum(e**2 / (len(v) - 1) for e, v in zip(errors, (base, other), strict=True))
    margin = student_t(CONFIDENCE, degrees) * math.sqrt(total)
    return Estimate(ratio, _exp(math.log(ratio) - margin), _exp(math.log(ratio) + margin), count)


def _variance(values: Sequence[float]) -> float:
    mean = math.fsum(values) / len(values)
    return math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)


def student_t(confidence: float, degrees: float) -> float:
    """The two-sided quantile of Student's t."""
    from scipy.special import stdtrit

    return float(stdtrit(degrees, 0.5 + confidence / 2))


def _exp(value: float) -> float:
    return math.exp(min(value, 700.0))  # beyond it a float overflows; such an interval says nothing anyway
