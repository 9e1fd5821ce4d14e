"""How a cost grows with a size, so that a bench can say it of sizes that nobody has tried."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence


def exponent(sizes: Sequence[float], costs: Sequence[float]) -> float:
    """The power of the size that the cost follows: the slope of its logarithms, by least squares.

    1 is in proportion, 2 as the square. What does not grow, such as a program's start, holds it down: take it
    from the costs where the sizes are to tell of themselves. Raises ValueError for what has no logarithm, and
    for fewer than two sizes.
    """
    if len(set(sizes)) < 2:
        raise ValueError("a growth needs two sizes that differ")
    logarithms = [list(map(math.log, values)) for values in (sizes, costs)]
    return statistics.linear_regression(*logarithms).slope
