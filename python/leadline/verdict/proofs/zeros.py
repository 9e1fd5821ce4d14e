"""Figures that are zero in some block, of which no ratio of blocks is known: compared by their differences.

A setting that takes a cause away brings its figure to zero: the largest move that there is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from leadline.analysis.statistics.means import ALPHA, Estimate

if TYPE_CHECKING:
    from leadline.analysis.statistics.intervals import MeanOfBlocks


@dataclass(frozen=True)
class ZeroRatio:
    """As `Ratio`, of two plain means: 1 plus the mean difference over the base's mean, which may be zero."""

    base: float
    difference: float
    count: int
    series: MeanOfBlocks

    def estimate(self, alpha: float = ALPHA) -> Estimate:
        """The ratio with its interval; from nothing to something it is infinite."""
        half = float(self.series.half_width(alpha)[0])
        value, low, high = (self._times(self.difference + one) for one in (0.0, -half, half))
        return Estimate(value, low, high, self.count, 1 - alpha)

    def p_value(self) -> float:
        """The level at which the interval just touches no difference."""
        import numpy as np

        return float(self.series.beyond(np.array([abs(self.difference)]))[0])

    def _times(self, difference: float) -> float:
        if self.base:
            return max(0.0, 1 + difference / self.base)
        return math.inf if difference > 0 else 0.0


def zero_ratio(base: Sequence[float], other: Sequence[float]) -> ZeroRatio | None:
    """None below two blocks, where all is zero, and where something is less than zero: that is no amount."""
    if len(base) != len(other) or len(base) < 2 or min(*base, *other) < 0 or not any((*base, *other)):
        return None
    from leadline.analysis.statistics.intervals import mean_of_blocks

    differences = [b - a for a, b in zip(base, other, strict=True)]
    count = len(base)
    return ZeroRatio(
        math.fsum(base) / count, math.fsum(differences) / count, count, mean_of_blocks([differences])
    )
