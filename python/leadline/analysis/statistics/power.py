"""How small a difference a number of blocks can find, before anything is measured."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

POWER = 0.8
_SERIES = 400  # of simulated blocks: the answer then repeats to about a twentieth
_LEARNED_SERIES = 120  # the same, of whole studies that are larger and slower to simulate
_LARGEST = (10, 8)  # targets and works: larger studies learn no more
_SEED = 1
FEWEST_RATIOS = 6  # that anything is learned of


def smallest_difference(blocks: int, variation: float, alpha: float, power: float = POWER) -> float | None:
    """The smallest change (0.05: by 5 %) of a ratio that is found in a share `power` of all studies.

    `variation` is the standard deviation of the log ratio from block to block, `alpha` the level at which
    the comparison is decided. By simulation of independent normal blocks with a fixed seed: an interval
    finds a difference when that exceeds the margin. None below two blocks.
    """
    if blocks < 2:
        return None
    return math.expm1(min(_needed(blocks, _rounded(alpha), power) * variation, 700.0))


def _rounded(alpha: float) -> float:
    """Down to two digits, so that the many levels of one table share their simulations; this errs to more."""
    step = 10.0 ** (math.floor(math.log10(alpha)) - 1)
    return math.floor(alpha / step + 1e-9) * step


def smallest_learned_difference(
    blocks: int, variation: float, alpha: float, targets: int, works: int
) -> float | None:
    """The same where spreads are learned from all cells of a study of so many targets and works; None where
    nothing can be learned of so few."""
    needed = _needed_learned(blocks, _rounded(alpha), min(targets, _LARGEST[0]), min(works, _LARGEST[1]))
    return None if needed is None else math.expm1(min(needed * variation, 700.0))


def blocks_for(difference: float, variation: float, alpha: float, blocks_max: int = 100) -> int | None:
    """The fewest blocks that find a change by `difference` in four of five studies; None where that many do
    not. Units as of `smallest_difference`.
    """
    low, high = 2, blocks_max
    if (smallest_difference(high, variation, alpha) or math.inf) > difference:
        return None
    while low < high:
        middle = (low + high) // 2
        found = (smallest_difference(middle, variation, alpha) or math.inf) <= difference
        low, high = (low, middle) if found else (middle + 1, high)
    return low


@cache
def _needed_learned(blocks: int, alpha: float, targets: int, works: int) -> float | None:
    import numpy as np

    from leadline.analysis.statistics.moderated import moderate

    ratios, random = (targets - 1) * works, np.random.default_rng(_SEED)
    names = [str(target) for target in range(1, targets) for _ in range(works)]
    bases = [str(work) for _ in range(1, targets) for work in range(works)]
    margins: list[float] = []
    while ratios and len(margins) < _LEARNED_SERIES:
        cells = random.standard_normal((targets, works, blocks)) / math.sqrt(2)
        rows = (cells[1:] - cells[:1]).reshape(-1, blocks)
        found = moderate(rows, names, bases, cells.reshape(-1, blocks))
        if found.refused and len(rows) < FEWEST_RATIOS:
            return None
        means = found.means[: max(_LEARNED_SERIES // 4, 1)]
        margins += [float(mean.half_width(alpha)[0] - mean.mean[0]) for mean in means]
    return float(np.quantile(margins, POWER)) if margins else None


@cache
def _needed(blocks: int, alpha: float, power: float) -> float:
    """The logarithm of the smallest change, in standard deviations."""
    import numpy as np

    from leadline.analysis.statistics.intervals import mean_of_blocks

    rows = np.random.default_rng(_SEED).standard_normal((_SERIES, blocks))
    found = mean_of_blocks(rows)
    return float(np.quantile(found.half_width(alpha) - found.mean, power))


def block_variation(logarithms: Sequence[float]) -> float | None:
    """The standard deviation of log ratios over blocks; None below two."""
    if len(logarithms) < 2:
        return None
    mean = math.fsum(logarithms) / len(logarithms)
    return math.sqrt(math.fsum((value - mean) ** 2 for value in logarithms) / (len(logarithms) - 1))
