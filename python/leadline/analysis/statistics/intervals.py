"""The interval of a mean over few blocks that may depend on the blocks before them.

Student's t takes blocks as independent. Blocks of one run are not: at a lag-1 correlation of 0.5 its 95 %
interval holds in about 80 % of the cases. From three to thirty blocks the correlation cannot be estimated
well enough to plug it in; so it is averaged over. For each correlation of a grid the mean has a t
distribution (a first-order autoregressive series, generalised least squares, flat priors on the mean and
on the logarithm of the scale); the grid's points are weighed by how well they fit the series. The
interval is symmetric about the plain mean and holds the asked share of that mixture.

Source: Zellner and Tiao, "Bayesian analysis of the regression model with autocorrelated errors",
JASA 59 (1964). The weights of the grid were chosen by simulation, see `bench/coverage.md`.

Do a few of the blocks lie far to one side of the others?

An interval of a mean from few values holds less often where they are skewed: the long tail is mostly unseen,
or one block of it decides the mean. The skewness that blocks have by chance, where they are normal, is found
by drawing them: there is no formula for so few.

Many comparisons in one study: at which confidence each is decided, so that together they rarely err.

Two rules. A study's own question is decided by Holm, "A simple sequentially rejective multiple test
procedure", Scand. J. Statistics 6 (1979), with his weights: whatever depends on what, the chance of any false
difference is at most ALPHA. A table that explores is decided by Benjamini and Hochberg, "Controlling the
false discovery rate", J. Royal Statistical Society B 57 (1995), with the weights of Genovese, Roeder and
Wasserman, Biometrika 93 (2006): of the differences that are found at most the share ALPHA is false, on
average, where comparisons are independent or depend positively on each other. Its intervals are those of
Benjamini and Yekutieli, "False discovery rate-adjusted multiple confidence intervals for selected
parameters", JASA 100 (2005).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline.analysis.statistics.special import log_gamma, student_cdf, student_quantile

ALPHA = 0.05
# Where a run looked at its intervals to decide whether to go on, they were narrow by luck now and then;
# decided at this level they hold as often as ever (by simulation, in `bench/coverage.md`).
ALPHA_AFTER_LOOKS = 0.03


def holm_levels(
    p_values: Sequence[float], weights: Sequence[float] | None = None, alpha: float = ALPHA
) -> tuple[float, ...]:
    """The level at which each comparison is decided; its interval has the confidence 1 - level.

    Comparisons whose difference is found leave their share to the others, so a study whose targets
    clearly differ pays little. An interval at its level leaves out 1 exactly where Holm finds a
    difference: what is shown and what is said agree. No level is above `alpha`.
    """
    shares = list(weights) if weights is not None else [1.0] * len(p_values)
    left = sum(shares)
    last = left
    found: set[int] = set()
    for index in sorted(range(len(p_values)), key=lambda i: p_values[i] / shares[i]):
        if p_values[index] > shares[index] * alpha / left:
            break
        found.add(index)
        last = left
        left = sum(share for i, share in enumerate(shares) if i not in found)
    return tuple(min(alpha, share * alpha / (last if i in found else left)) for i, share in enumerate(shares))


def discovery_levels(
    p_values: Sequence[float], weights: Sequence[float] | None = None, alpha: float = ALPHA
) -> tuple[float, ...]:
    """The level at which each comparison of a table that explores is decided; its interval has 1 - level.

    Where R of m differences are found, it is R alpha / m, by its weight: of the intervals of what was found
    at most the share alpha misses, on average. An interval leaves out 1 exactly where a difference is found.
    No level is above `alpha`.
    """
    shares = list(weights) if weights is not None else [1.0] * len(p_values)
    whole = sum(shares)
    paired = zip(p_values, shares, strict=True)
    ranked = sorted(p_value / share for p_value, share in paired if p_value <= alpha)
    found = [rank for rank, value in enumerate(ranked, start=1) if value <= rank * alpha / whole]
    count = max(found, default=1)
    return tuple(min(alpha, share * count * alpha / whole) for share in shares)


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


Array = NDArray[np.float64]

# Correlations of neighbouring blocks that are thought possible, and how likely before anything is seen.
CORRELATIONS: tuple[float, ...] = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
PRIOR: tuple[float, ...] = (0.3,) + (0.7 / 8,) * 8
_STEPS, _CLOSE = 60, 1e-10  # to a quantile, and how near it: beyond the digits that anybody sees
_SMALLEST_SQUARE = 1e-18  # of a series in units of its standard deviation: below it lies rounding


@dataclass(frozen=True)
class MeanOfBlocks:
    """What rows of a matrix (one row a series, one column a block, at least two) say of their means.

    `mean` and `scale` (standard deviation) have the values' unit; `weight`, `centre`, `spread` and
    `degrees` of freedom describe the mixture, one row a t distribution (here one a correlation), in units of
    `scale` and from the mean.
    """

    mean: Array
    scale: Array
    weight: Array
    centre: Array
    spread: Array
    degrees: Array
    blocks: int

    def beyond(self, distance: Array) -> Array:
        """The share of the mixture that lies further than `distance` from the mean, either side."""
        away = distance / np.where(self.scale > 0, self.scale, 1.0)
        tails = student_cdf(self.degrees, -(away - self.centre) / self.spread) + student_cdf(
            self.degrees, -(away + self.centre) / self.spread
        )
        share = np.minimum((self.weight * tails).sum(axis=0), 1.0)
        return np.where(self.scale > 0, share, np.where(distance > 0, 0.0, 1.0))

    def half_width(self, alpha: float) -> Array:
        """Half the interval that misses with probability `alpha`."""
        reach = np.abs(self.centre) + self.spread * student_quantile(self.degrees, 1 - alpha / 2)
        low, high = np.zeros_like(self.scale), self.scale * reach.max(axis=0)
        found = self.scale * (self.weight * reach).sum(axis=0)
        for _ in range(_STEPS):
            excess, density = self.beyond(found) - alpha, self._density(found)
            low, high = np.where(excess > 0, found, low), np.where(excess > 0, high, found)
            steps = np.divide(excess, density, out=np.zeros_like(found), where=density > 0)
            # Newton's step, or half of the bracket where that leaves it.
            following = found + steps
            inside = (following >= low) & (following <= high)
            following = np.where(inside, following, (low + high) / 2)
            moved = np.abs(following - found)
            found = following
            if (moved <= _CLOSE * found).all():
                break
        return np.asarray(found, dtype=float)

    @cached_property
    def _peaks(self) -> Array:
        """The density of each t distribution at its centre, by its weight and per `scale`."""
        height = np.exp(log_gamma((self.degrees + 1) / 2) - log_gamma(self.degrees / 2))
        return np.asarray(self.weight * height / (np.sqrt(self.degrees * np.pi) * self.spread))

    def _density(self, distance: Array) -> Array:
        """Minus the slope of `beyond`: the mixture's density at both of its ends, per unit of the values."""
        scale = np.where(self.scale > 0, self.scale, 1.0)
        ends = [((distance / scale + sign * self.centre) / self.spread) ** 2 for sign in (-1, 1)]
        tails = sum((1 + end / self.degrees) ** (-(self.degrees + 1) / 2) for end in ends)
        slope = (self._peaks * tails).sum(axis=0) / scale
        return np.where(self.scale > 0, slope, 0.0)


def mean_of_blocks(rows: Any) -> MeanOfBlocks:
    """Judge each row of `rows`, its values in the order in which they were measured."""
    values = np.atleast_2d(np.asarray(rows, dtype=float))
    blocks = values.shape[1]
    mean, deviation = values.mean(axis=1), values.std(axis=1, ddof=1)
    flat = deviation <= 1e-12 * np.maximum(np.abs(mean), 1.0)
    scale = np.where(flat, 0.0, deviation)
    standard = (values - mean[:, None]) / np.where(flat, 1.0, deviation)[:, None]
    parts = [least_squares(standard, rho) for rho in CORRELATIONS]
    fit = np.array([part.likelihood for part in parts]) + np.log(PRIOR)[:, None]
    weight = np.exp(fit - fit.max(axis=0))
    return MeanOfBlocks(
        mean,
        scale,
        weight / weight.sum(axis=0),
        np.array([part.centre for part in parts]),
        np.array([np.sqrt(part.squares / ((blocks - 1) * part.precision)) for part in parts]),
        np.full((len(parts), len(values)), blocks - 1.0),
        blocks,
    )


@dataclass(frozen=True)
class LeastSquares:
    """Rows at one correlation of neighbouring blocks, by generalised least squares.

    Of each row the `centre` and the sum of `squares` about it; `precision` is that of the centre of blocks
    whose standard deviation is 1.
    """

    centre: Array
    squares: Array
    precision: float
    correlation: float
    blocks: int

    @property
    def likelihood(self) -> Array:
        """Of the correlation, as a logarithm, whatever mean and scale of the row are."""
        return np.asarray(self.determinant - 0.5 * (self.blocks - 1) * np.log(self.squares))

    @property
    def determinant(self) -> float:
        """The part of the log likelihood that does not depend on the values."""
        variance = 1 - self.correlation * self.correlation
        return float(-0.5 * ((self.blocks - 1) * np.log(variance) + np.log(self.precision)))


def least_squares(rows: Array, rho: float) -> LeastSquares:
    """Each row at one correlation. Values are to be near 1 in size: squares below 1e-18 are rounding.

    The series is made white first (Prais and Winsten, 1954); the constant goes through the same filter.
    """
    blocks = rows.shape[1]
    shrink = float(np.sqrt(1 - rho * rho))
    white = np.concatenate([rows[:, :1], (rows[:, 1:] - rho * rows[:, :-1]) / shrink], axis=1)
    constant = np.concatenate([[1.0], np.full(blocks - 1, (1 - rho) / shrink)])
    precision = float(constant @ constant)
    centre = white @ constant / precision
    squares = np.maximum(((white - centre[:, None] * constant) ** 2).sum(axis=1), _SMALLEST_SQUARE)
    return LeastSquares(centre, squares, precision, rho, blocks)
