"""The interval of a mean over few blocks that may depend on the blocks before them.

Student's t takes blocks as independent. Blocks of one run are not: at a lag-1 correlation of 0.5 its 95 %
interval holds in about 80 % of the cases. From three to thirty blocks the correlation cannot be estimated
well enough to plug it in; so it is averaged over. For each correlation of a grid the mean has a t
distribution (a first-order autoregressive series, generalised least squares, flat priors on the mean and
on the logarithm of the scale); the grid's points are weighed by how well they fit the series. The
interval is symmetric about the plain mean and holds the asked share of that mixture.

Source: Zellner and Tiao, "Bayesian analysis of the regression model with autocorrelated errors",
JASA 59 (1964). The weights of the grid were chosen by simulation, see `bench/coverage.md`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
        from scipy.special import stdtr

        away = distance / np.where(self.scale > 0, self.scale, 1.0)
        tails = stdtr(self.degrees, -(away - self.centre) / self.spread) + stdtr(
            self.degrees, -(away + self.centre) / self.spread
        )
        share = np.minimum((self.weight * tails).sum(axis=0), 1.0)
        return np.where(self.scale > 0, share, np.where(distance > 0, 0.0, 1.0))

    def half_width(self, alpha: float) -> Array:
        """Half the interval that misses with probability `alpha`."""
        from scipy.special import stdtrit

        reach = np.abs(self.centre) + self.spread * stdtrit(self.degrees, 1 - alpha / 2)
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
        from scipy.special import gammaln

        height = np.exp(gammaln((self.degrees + 1) / 2) - gammaln(self.degrees / 2))
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
