"""What many comparisons together say of how much each of them scatters: a prior that stands outliers.

The variance of one comparison over three blocks has two degrees of freedom. That of others tells how large
such variances are: a scaled inverse chi-square distribution with d0 degrees of freedom, as if d0 more
blocks had been seen (Smyth, "Linear models and empirical Bayes methods for assessing differential
expression", Statistical Applications in Genetics and Molecular Biology 3, 2004). A comparison may be unlike
all others: so with a small probability its variance comes from a wide distribution instead, and its own
blocks say which (Phipson et al., "Robust hyperparameter estimation protects against hypervariable genes",
Annals of Applied Statistics 10, 2016, have the same aim). d0 is averaged over; the scale is found by EM.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

PRIOR_DEGREES: tuple[float, ...] = (1.0, 2.0, 4.0, 8.0, 16.0)
UNLIKE = 0.05  # how likely a comparison is unlike the others, before anything of it is seen
_WIDE_DEGREES = 0.5
_WIDE_SCALES = (1.0, 30.0, 1000.0)  # of variances
_ITERATIONS = 40
_SETTLED = 1e-3  # of a variance, from one iteration to the next


@dataclass(frozen=True)
class Spreads:
    """The variance of each comparison as a mixture of scaled inverse chi-square distributions.

    All have the axes (correlation, d0, component, comparison): `weight` (sums to 1 over d0 and components,
    for each correlation and comparison), `degrees` of freedom and `scale`, the variance about which they lie.
    `unlike` is the weight of the wide components, by correlation and comparison; `prior_degrees` the mean of
    d0 by correlation.
    """

    weight: Array
    degrees: Array
    scale: Array
    unlike: Array
    prior_degrees: Array


def learn_spreads(squares: Array, degrees: int, shares: Array) -> Spreads:
    """Learn the prior from sums of squares, one row a correlation, one column a comparison, each of so many
    degrees of freedom, and what it makes of each comparison.

    `shares` (at most 1) say how much each comparison counts in learning: those with a cell in common tell
    less than as many without.
    """
    d0 = np.array([*PRIOR_DEGREES])[None, :, None, None]
    prior = np.concatenate([d0, *(np.full_like(d0, _WIDE_DEGREES) for _ in _WIDE_SCALES)], axis=2)
    factor = np.array([1.0, *_WIDE_SCALES])[None, None, :, None]
    chance = np.log([1 - UNLIKE, *(UNLIKE / len(_WIDE_SCALES) for _ in _WIDE_SCALES)])[None, None, :, None]
    own = squares[:, None, None, :]
    variance = np.median(squares, axis=1)[:, None, None, None] / degrees * np.ones_like(d0)
    for _ in range(_ITERATIONS):
        fit = chance + _likelihood(own, degrees, prior, factor * variance)
        typical = np.exp(fit[:, :, :1] - np.logaddexp.reduce(fit, axis=2, keepdims=True)) * shares
        precision = (prior[:, :, :1] + degrees) / (prior[:, :, :1] * variance + own)
        before = variance
        variance = typical.sum(axis=3, keepdims=True) / (typical * precision).sum(axis=3, keepdims=True)
        if np.abs(variance / before - 1).max() < _SETTLED:
            break
    fit = chance + _likelihood(own, degrees, prior, factor * variance)
    whole = np.logaddexp.reduce(fit, axis=2, keepdims=True)
    of_degrees = _normalised((shares * whole).sum(axis=3, keepdims=True), axis=1)
    weight = np.exp(fit - whole) * of_degrees
    total = np.broadcast_to(prior + degrees, weight.shape)
    scale = (prior * factor * variance + own) / total
    unlike = weight[:, :, 1:].sum(axis=(1, 2))
    return Spreads(weight, total, scale, unlike, (of_degrees * d0).sum(axis=(1, 2, 3)))


def _likelihood(squares: Array, degrees: int, prior: Array, variance: Array) -> Array:
    """The logarithm of how likely sums of squares are, but for what does not depend on the prior."""
    from scipy.special import gammaln

    both = (prior + degrees) / 2
    known = prior * variance
    return np.asarray(
        gammaln(both) - gammaln(prior / 2) + prior / 2 * np.log(known) - both * np.log(known + squares)
    )


def _normalised(logarithms: Array, axis: int) -> Array:
    weight = np.exp(logarithms - logarithms.max(axis=axis, keepdims=True))
    return np.asarray(weight / weight.sum(axis=axis, keepdims=True))
