"""By how much parts of a whole differ between two sides, in their own unit: means of differences by block.

Ratios suit rates. Parts of a whole add up, as the seconds of stages do, and one that takes next to nothing on
one side has a ratio without bounds where the difference is plain. So each part is looked at twice, each time
at half of what may err:

- Differences within blocks, divided by the mean of both sides, one constant a part: what is left scatters
  alike, however large the parts are. Source of the scaling: the symmetrised percent change, Berry and Ayers,
  The American Statistician 60 (2006). It gives the interval.
- Logarithms of what a part takes with so much that it does not matter of the whole: a ratio for large parts,
  a difference for small ones ("started logarithms", Tukey, Exploratory Data Analysis, 1977). Which side is
  larger is told by either; then the interval ends at 0. Two intervals at half the error hold together
  (Bonferroni).

Spreads are learned of together, as those of ratios are (`moderated`). Simulated: `docs/statistics.md`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leadline.analysis.statistics.intervals import (
    ALPHA,
    MeanOfBlocks,
    discovery_levels,
    holm_levels,
    mean_of_blocks,
)
from leadline.analysis.statistics.moderated import BLOCKS, moderate

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Sides:
    """A part on two sides: one value a block, of the same blocks in order. `base` and `other` name what they
    are of, so that parts which share trials are known to. `negligible`, above 0, does not matter.
    """

    base: str
    other: str
    before: tuple[float, ...]
    after: tuple[float, ...]
    negligible: float


@dataclass(frozen=True)
class MeanDifference:
    """Other less base, in the parts' unit; no bounds below two blocks.

    `found`: one side is larger for certain, and the interval has no part on the other side of 0.
    """

    value: float
    low: float | None
    high: float | None
    blocks: int
    confidence: float
    found: bool


def mean_differences(
    parts: Sequence[Sides], alpha: float = ALPHA, *, explores: bool = True
) -> tuple[MeanDifference, ...]:
    """The difference of each part. Those that explore share a false discovery rate of `alpha`; those that
    answer one question share the chance that any of them errs, and rest on their own blocks.

    After a run that looked at its intervals, whose `alpha` is smaller, all are decided as the latter.
    """
    looked = alpha < ALPHA
    learned = explores and not looked
    plain = _decided(parts, _scaled, alpha / 2, learned=learned)
    started = _decided(parts, _started, alpha / 2, learned=learned)
    return tuple(map(_difference, parts, plain, started))


@dataclass(frozen=True)
class _Decided:
    """The mean of a part's rows, in units of `size`, with half its interval, None below two blocks."""

    mean: float
    half: float | None
    level: float

    @property
    def sign(self) -> int:
        """1 or -1 where the interval leaves out 0."""
        return 0 if self.half is None or abs(self.mean) <= self.half else 1 if self.mean > 0 else -1


@dataclass(frozen=True)
class _Rows:
    """Values to be averaged, one a block, and the two sides behind them; `size` makes units of them."""

    values: Array
    sides: Array
    size: float = 1.0


def _scaled(part: Sides) -> _Rows:
    sides = np.array([part.before, part.after])
    size = float(sides.mean()) or 1.0
    return _Rows((sides[1] - sides[0]) / size, sides / size, size)


def _started(part: Sides) -> _Rows:
    sides = np.log(np.array([part.before, part.after]) + part.negligible)
    return _Rows(sides[1] - sides[0], sides)


def _decided(
    parts: Sequence[Sides], rows_of: Callable[[Sides], _Rows], alpha: float, *, learned: bool
) -> list[_Decided]:
    """Each part at its level; parts of the same number of blocks are learned of together."""
    rows = [rows_of(part) for part in parts]
    means: dict[int, MeanOfBlocks] = {}
    for blocks in {len(part.before) for part in parts} - {0, 1}:
        places = [at for at, part in enumerate(parts) if len(part.before) == blocks]
        own = [rows[at].values for at in places]
        if learned and blocks in BLOCKS:
            cells = np.concatenate([rows[at].sides for at in places])
            targets, bases = [parts[at].other for at in places], [parts[at].base for at in places]
            found = moderate(np.array(own), targets, bases, cells).means
        else:
            found = tuple(mean_of_blocks([row]) for row in own)
        means |= dict(zip(places, found, strict=True))
    p_values = [float(one.beyond(np.abs(one.mean))[0]) for one in means.values()]
    levels = dict(
        zip(means, (discovery_levels if learned else holm_levels)(p_values, None, alpha), strict=True)
    )
    halves = {at: float(one.half_width(levels[at])[0]) * rows[at].size for at, one in means.items()}
    return [
        _Decided(float(row.values.mean()) * row.size, halves.get(at), levels.get(at, alpha))
        for at, row in enumerate(rows)
    ]


def _difference(part: Sides, plain: _Decided, started: _Decided) -> MeanDifference:
    """The plain interval, as far as it lies on the side that either of both tells."""
    sign = plain.sign or (started.sign if started.sign * plain.mean > 0 else 0)
    low, high = (None, None) if plain.half is None else (plain.mean - plain.half, plain.mean + plain.half)
    if low is not None and high is not None and sign:
        low, high = (max(low, 0.0), high) if sign > 0 else (low, min(high, 0.0))
    confidence = 1 - plain.level - started.level
    return MeanDifference(plain.mean, low, high, len(part.before), confidence, found=bool(sign))
