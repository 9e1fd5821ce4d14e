"""By how much parts of a whole differ between two sides, in their own unit: means of differences by block.

Ratios suit rates. Parts of a whole add up, as the seconds of stages do, and one that takes next to nothing on
one side has a ratio without bounds where the difference is plain. Differences are taken within blocks and
divided by the mean of both sides, one constant a part: what is left scatters alike, however large the parts
are, and is learned of together as ratios are (`moderated`). Source of the scaling: the symmetrised percent
change, Berry and Ayers, The American Statistician 60 (2006). Tried by simulation: `docs/statistics.md`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from leadline.analysis.statistics.intervals import MeanOfBlocks, mean_of_blocks
from leadline.analysis.statistics.moderated import BLOCKS, moderate
from leadline.analysis.statistics.multiplicity import ALPHA, discovery_levels, holm_levels

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Sides:
    """A part on two sides: one value a block, of the same blocks in order. `base` and `other` name what they
    are of, so that parts which share trials are known to."""

    base: str
    other: str
    before: tuple[float, ...]
    after: tuple[float, ...]


@dataclass(frozen=True)
class MeanDifference:
    """Other less base, in the parts' unit; no bounds below two blocks. `found`: the interval leaves out 0."""

    value: float
    low: float | None
    high: float | None
    blocks: int
    confidence: float

    @property
    def found(self) -> bool:
        """One side is larger for certain."""
        return self.low is not None and self.high is not None and (self.low > 0 or self.high < 0)


def mean_differences(
    parts: Sequence[Sides], alpha: float = ALPHA, *, explores: bool = True
) -> tuple[MeanDifference, ...]:
    """The difference of each part. Those that explore share a false discovery rate of `alpha`; those that
    answer one question share the chance that any of them errs, and rest on their own blocks.

    After a run that looked at its intervals, whose `alpha` is smaller, all are decided as the latter.
    """
    looked = alpha < ALPHA
    means: dict[int, MeanOfBlocks] = {}
    for blocks in {len(part.before) for part in parts}:
        places = [at for at, part in enumerate(parts) if len(part.before) == blocks]
        if blocks > 1:
            found = _means([parts[at] for at in places], learned=explores and not looked)
            means |= dict(zip(places, found, strict=True))
    p_values = [float(one.beyond(np.abs(one.mean))[0]) for one in means.values()]
    rule = discovery_levels if explores and not looked else holm_levels
    levels = dict(zip(means, rule(p_values, None, alpha), strict=True))
    return tuple(_difference(part, means.get(at), levels.get(at, alpha)) for at, part in enumerate(parts))


def _difference(part: Sides, mean: MeanOfBlocks | None, level: float) -> MeanDifference:
    value = float(np.mean(part.after) - np.mean(part.before))
    half = None if mean is None else float(mean.half_width(level)[0])
    low, high = (None, None) if half is None else (value - half, value + half)
    return MeanDifference(value, low, high, len(part.before), 1 - level)


def _means(parts: Sequence[Sides], *, learned: bool) -> list[MeanOfBlocks]:
    """In the parts' unit; all of them have the same blocks."""
    sides = np.array([[part.before, part.after] for part in parts])
    sizes = sides.mean(axis=(1, 2))
    sizes = np.where(sizes > 0, sizes, 1.0)
    sides = sides / sizes[:, None, None]
    rows = sides[:, 1] - sides[:, 0]
    if learned and rows.shape[1] in BLOCKS:
        cells = sides.reshape(-1, rows.shape[1])
        found = moderate(rows, [part.other for part in parts], [part.base for part in parts], cells).means
    else:
        found = tuple(mean_of_blocks([row]) for row in rows)
    return [
        replace(one, mean=one.mean * size, scale=one.scale * size)
        for one, size in zip(found, sizes, strict=True)
    ]
