"""How small a difference a number of blocks can find, before anything is measured."""

from __future__ import annotations

import math
from collections.abc import Sequence

POWER = 0.8
_SERIES = 400  # of simulated blocks: the answer then repeats to about a twentieth
_SEED = 1


def smallest_difference(blocks: int, variation: float, alpha: float, power: float = POWER) -> float | None:
    """The smallest change (0.05: by 5 %) of a ratio that is found in a share `power` of all studies.

    `variation` is the standard deviation of the log ratio from block to block, `alpha` the level at which
    the comparison is decided. By simulation of independent normal blocks with a fixed seed: an interval
    finds a difference when that exceeds the margin. None below two blocks.
    """
    if blocks < 2:
        return None
    import numpy as np

    from leadline.analysis.statistics.intervals import mean_of_blocks

    rows = np.random.default_rng(_SEED).standard_normal((_SERIES, blocks))
    found = mean_of_blocks(rows)
    needed = float(np.quantile(found.half_width(alpha) - found.mean, power))
    return math.expm1(min(needed * variation, 700.0))


def block_variation(logarithms: Sequence[float]) -> float | None:
    """The standard deviation of log ratios over blocks; None below two."""
    if len(logarithms) < 2:
        return None
    mean = math.fsum(logarithms) / len(logarithms)
    return math.sqrt(math.fsum((value - mean) ** 2 for value in logarithms) / (len(logarithms) - 1))
