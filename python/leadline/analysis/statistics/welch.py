"""Values that nobody arranged in blocks, such as the times of works that were done before and after a date.

Each value stands for itself, and both sides may scatter differently. Sources: Welch, "The generalization of
'Student's' problem when several different population variances are involved", Biometrika 34 (1947), on
logarithms, so that it is a ratio of geometric means; degrees of freedom: Satterthwaite, Biometrics 2 (1946).
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from leadline.analysis.statistics.means import ALPHA, Estimate


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
        from scipy.special import stdtr

        if self.error is None or self.degrees is None:
            return 1.0
        if self.error == 0:
            return float(self.logarithm == 0)
        return 2 * float(stdtr(self.degrees, -abs(self.logarithm) / self.error))


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
    from scipy.special import stdtrit

    margin = float(stdtrit(degrees, 1 - alpha / 2)) * error
    low, high = (math.exp(min(logarithm + one, 700.0)) for one in (-margin, margin))
    return Estimate(math.exp(logarithm), low, high, count, 1 - alpha)
