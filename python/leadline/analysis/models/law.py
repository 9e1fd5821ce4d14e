"""The Universal Scalability Law over the blocks of a study: where the rate is highest, and how sure that is.

The law is fitted to each block alone, so that its uncertainty is that of repeating the study, and not of one
line through means. Gunther, Guerrilla Capacity Planning, 2007.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from leadline.analysis.statistics.means import ALPHA, Estimate, arithmetic_mean, geometric_mean

LawOutcome = Literal["peak", "rising", "undecided"]
POINTS_MIN = 4  # one more than there are parameters
BLOCKS_MIN = 3
_FLAT = 1e-12  # a bend below it is none


@dataclass(frozen=True)
class ScalabilityLaw:
    """X(N) = one N / (1 + contention (N - 1) + crosstalk N (N - 1))."""

    one: float
    contention: float
    crosstalk: float

    def rate(self, number: float) -> float:
        """At so many at once."""
        return (
            self.one * number / (1 + self.contention * (number - 1) + self.crosstalk * number * (number - 1))
        )

    @property
    def bend(self) -> float:
        """1 / N*^2 of the N* where the rate is highest: 0 where it rises for ever."""
        return min(self.crosstalk / max(1 - self.contention, 1e-9), 1.0)

    def furthest(self, rates: Mapping[float, float]) -> float:
        """The largest difference from what was measured, as a share."""
        return max(abs(rate / self.rate(number) - 1) for number, rate in rates.items())


def fit_law(rates: Mapping[float, float]) -> tuple[ScalabilityLaw, ScalabilityLaw]:
    """Least squares of the logarithms, and each parameter's standard error; four points above 0 or more."""
    from scipy import optimize  # a fifth of a second, which whoever fits nothing shall not wait

    numbers = np.array(sorted(rates), dtype=float)
    seen = np.array([rates[one] for one in sorted(rates)], dtype=float)

    def law(n: np.ndarray, a: float, s: float, k: float) -> np.ndarray:
        found: np.ndarray = np.log(a * n / (1 + s * (n - 1) + k * n * (n - 1)))
        return found

    first = (seen[0] / numbers[0], 0.01, 0.0001)
    bounds = ((1e-12, 0.0, 0.0), (np.inf, 1.0, 1.0))
    fitted, covariance = optimize.curve_fit(law, numbers, np.log(seen), p0=first, bounds=bounds)
    errors = np.sqrt(np.diag(covariance))
    return ScalabilityLaw(*map(float, fitted)), ScalabilityLaw(*map(float, errors))


@dataclass(frozen=True)
class LawOfBlocks:
    """The law of a study's blocks: `most_at` is the interval of N*, `most` the rate there.

    `outcome`: `peak` where all of the interval is within what was measured, `rising` where none of it is, so
    that more still gave more at the largest number; else the data cannot tell. `furthest`: of the law, from
    the mean rates.
    """

    law: ScalabilityLaw
    contention: Estimate
    most_at: tuple[float, float]
    most: Estimate
    outcome: LawOutcome
    furthest: float


def law_of_blocks(blocks: Sequence[Mapping[float, float]], alpha: float = ALPHA) -> LawOfBlocks | None:
    """The law over blocks that have all numbers; None below four numbers or three blocks.

    N* is worked out by its bend, 1 / N*^2, which has no infinite values: Student's t over the blocks.
    """
    every: set[float] = set().union(*blocks)
    whole = [one for one in blocks if one.keys() == every and min(one.values(), default=0) > 0]
    if len(every) < POINTS_MIN or len(whole) < BLOCKS_MIN:
        return None
    fits = [fit_law(one)[0] for one in whole]
    means = {n: math.exp(sum(math.log(one[n]) for one in whole) / len(whole)) for n in every}
    law, largest = fit_law(means)[0], max(every)
    bend = arithmetic_mean([one.bend for one in fits], alpha)
    most = geometric_mean([max(map(one.rate, _looked_at(one, largest))) for one in fits], alpha)
    contention = arithmetic_mean([one.contention for one in fits], alpha)
    if bend is None or most is None or contention is None:
        return None
    low = max(1 / math.sqrt(max(bend.high or 0.0, _FLAT)), 1.0)
    high = 1 / math.sqrt(bend.low) if bend.low and bend.low > _FLAT else math.inf
    outcome: LawOutcome = "undecided"
    if high <= largest or low >= largest:
        outcome = "peak" if high <= largest else "rising"
    return LawOfBlocks(law, contention, (low, high), most, outcome, law.furthest(means))


def _looked_at(law: ScalabilityLaw, largest: float) -> Sequence[float]:
    """Where its highest rate within what was measured may be: at N*, or at an end."""
    top = 1 / math.sqrt(law.bend) if law.bend > 0 else largest
    return (1.0, largest, min(max(top, 1.0), largest))
