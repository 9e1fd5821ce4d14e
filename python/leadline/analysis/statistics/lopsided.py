"""Do a few of the blocks lie far to one side of the others?

An interval of a mean from few values holds less often where they are skewed: the long tail is mostly unseen,
or one block of it decides the mean. The skewness that blocks have by chance, where they are normal, is found
by drawing them: there is no formula for so few.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

FEWEST_BLOCKS = 6
_DRAWS = 20_000
_SMALLEST_LEVEL = 0.001  # that so many draws show
_SEED = 1


def skewness(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of each row; 0 where it does not vary."""
    away = rows - rows.mean(axis=1, keepdims=True)
    spread = np.sqrt((away**2).mean(axis=1))
    return np.asarray((away**3).mean(axis=1) / np.where(spread > 0, spread, 1.0) ** 3)


def lopsided(values: Sequence[float], level: float) -> float | None:
    """The skewness of values where it is more than chance makes it in a share `level` of all cases; None
    where it is not, or they are few.
    """
    row = np.asarray(values, dtype=float)
    if row.size < FEWEST_BLOCKS or np.ptp(row) <= 1e-12 * max(float(np.abs(row).max()), 1.0):
        return None
    found = float(skewness(row[None, :])[0])
    return found if abs(found) > _bound(row.size, max(level, _SMALLEST_LEVEL)) else None


@cache
def _bound(count: int, level: float) -> float:
    """What the skewness of that many normal values exceeds in that share of all cases, either way."""
    drawn = np.random.default_rng(_SEED).standard_normal((_DRAWS, count))
    return float(np.quantile(np.abs(skewness(drawn)), 1 - level))
