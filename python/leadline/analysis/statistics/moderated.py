"""Intervals of many ratios over few blocks, each from its own blocks and from how much all of them scatter;
and how small a difference a number of blocks can find, before anything is measured.

Three blocks say little of their own spread; the cells of a study together say much. For each correlation of
neighbouring blocks the mean ratio has a mixture of t distributions: its own sum of squares, moderated by
what was learned from all ratios (`learn_spreads`). The correlation is weighed once per study, from the cells
and not from the ratios: ratios to one base share its blocks, which looks like correlation. Before variances
are compared they are divided by a scale of their target, shrunken towards 1 as far as targets do not differ.
A ratio that is unlike the others keeps the interval of its own blocks, and is named.

The variance of one comparison over three blocks has two degrees of freedom. That of others tells how large
such variances are: a scaled inverse chi-square distribution with d0 degrees of freedom, as if d0 more blocks
had been seen (Smyth, "Linear models and empirical Bayes methods for assessing differential expression",
Statistical Applications in Genetics and Molecular Biology 3, 2004). A comparison may be unlike all others:
so with a small probability its variance comes from a wide distribution instead, and its own blocks say which
(Phipson et al., "Robust hyperparameter estimation protects against hypervariable genes", Annals of Applied
Statistics 10, 2016, have the same aim). d0 is averaged over; the scale is found by EM.

Sources further: Zellner and Tiao (1964), see `intervals`; James and Stein (1961) for the scales. Limits were
found by simulation, see `bench/coverage.md`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from leadline.analysis.statistics.intervals import (
    CORRELATIONS,
    MeanOfBlocks,
    least_squares,
    mean_of_blocks,
)
from leadline.analysis.statistics.special import log_gamma, trigamma

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
    both = (prior + degrees) / 2
    known = prior * variance
    return np.asarray(
        log_gamma(both) - log_gamma(prior / 2) + prior / 2 * np.log(known) - both * np.log(known + squares)
    )


def _normalised(logarithms: Array, axis: int) -> Array:
    weight = np.exp(logarithms - logarithms.max(axis=axis, keepdims=True))
    return np.asarray(weight / weight.sum(axis=axis, keepdims=True))


BLOCKS = range(3, 13)  # below it nothing tells blocks apart; above it each ratio says enough of itself
LEAST_PRIOR_DEGREES = 2.0
MOST_CORRELATION = 0.6
MOST_UNLIKE = 0.5
_NEGLIGIBLE = 1e-4  # of the weight of a correlation
_SMALLEST_SPREAD = 1e-9  # of a log ratio: below it lies rounding


@dataclass(frozen=True)
class Moderated:
    """What ratios say of their means; `refused` says why they could not be moderated.

    `unlike` has the positions of ratios whose own spread is unlike that of the others.
    """

    means: tuple[MeanOfBlocks, ...]
    unlike: frozenset[int] = frozenset()
    refused: str | None = None


def moderate(ratios: Array, targets: Sequence[str], bases: Sequence[str], cells: Array) -> Moderated:
    """The means of log ratios, one row each, one column a block, in order.

    `targets` name what each row's ratio is of, `bases` the cell that it is divided by; `cells` are the
    logarithms behind the ratios, one row a cell.
    """
    own = mean_of_blocks(ratios)
    alone = tuple(_row(own, at) for at in range(len(ratios)))
    if len(ratios) < FEWEST_RATIOS:
        return Moderated(alone, refused=f"fewer than {FEWEST_RATIOS} comparisons")
    unit = float(np.median(ratios.std(axis=1, ddof=1)))
    if unit < _SMALLEST_SPREAD:
        return Moderated(alone, refused="half of the ratios do not vary")
    likely = correlation_weights(cells)
    correlation = float(likely @ np.array(CORRELATIONS))
    if correlation > MOST_CORRELATION:
        return Moderated(alone, refused=f"neighbouring blocks resemble each other ({correlation:.2f})")
    kept = likely > _NEGLIGIBLE
    likely = likely[kept] / likely[kept].sum()
    rows = (ratios - own.mean[:, None]) / unit
    fits = [least_squares(rows, float(rho)) for rho in np.array(CORRELATIONS)[kept]]
    squares = np.array([fit.squares for fit in fits])
    scale = _target_scales(rows, squares[0], targets, correlation)
    shares = independent_shares(rows, correlation, bases, targets)
    spreads = learn_spreads(squares / scale, ratios.shape[1] - 1, shares)
    if float(likely @ spreads.prior_degrees) < LEAST_PRIOR_DEGREES:
        return Moderated(alone, refused="the cells' spreads have little in common")
    precision = np.array([fit.precision for fit in fits])
    centre = np.array([fit.centre for fit in fits])
    mixed = _mixture(own, unit, spreads, likely, centre, scale / precision[:, None])
    unlike = frozenset(int(at) for at in np.flatnonzero(_noisier(spreads, likely, squares / scale)))
    means = tuple(alone[at] if at in unlike else _row(mixed, at) for at in range(len(ratios)))
    return Moderated(means, unlike)


def correlation_weights(cells: Array) -> Array:
    """How likely each of CORRELATIONS is, by all cells together, freed from what the blocks did to all."""
    away = cells - cells.mean(axis=1, keepdims=True)
    away = away - np.median(away, axis=0)
    away = away - away.mean(axis=1, keepdims=True)
    spread = away.std(axis=1, ddof=1)
    kept = spread > _SMALLEST_SPREAD
    rows = away[kept] / spread[kept, None]
    if not len(rows):
        return np.full(len(CORRELATIONS), 1 / len(CORRELATIONS))
    fit = np.array([float(least_squares(rows, rho).likelihood.sum()) for rho in CORRELATIONS])
    first = _weights(fit / 2)
    share = common_share(rows, ["all"] * len(rows), float(first @ np.array(CORRELATIONS)))
    # A cell tells no more of it than three blocks do: what many of them keep is rarely of the first order.
    trust = 2 / (cells.shape[1] - 1)
    return _weights(trust * fit / (1 + (len(rows) - 1) * share))


def _weights(likelihood: Array) -> Array:
    """With no correlation preferred: an interval that few blocks widen less leaves less room to err in it."""
    weight = np.exp(likelihood - likelihood.max())
    return np.asarray(weight / weight.sum())


def _mixture(
    own: MeanOfBlocks, unit: float, spreads: Spreads, likely: Array, centre: Array, per_variance: Array
) -> MeanOfBlocks:
    """All t distributions of each ratio, one row each; `per_variance` is of its centre, blocks having 1."""
    rows, count = spreads.weight.shape[:-1], spreads.weight.shape[-1]
    weight = likely[:, None, None, None] * spreads.weight
    spread = np.sqrt(spreads.scale * per_variance[:, None, None, :])
    deviation = np.sqrt(own.blocks * (weight * spread**2).sum(axis=(0, 1, 2)))  # of a block, as learned
    return MeanOfBlocks(
        own.mean,
        unit * deviation,
        weight.reshape(-1, count),
        np.broadcast_to(centre[:, None, None, :], (*rows, count)).reshape(-1, count) / deviation,
        spread.reshape(-1, count) / deviation,
        spreads.degrees.reshape(-1, count),
        own.blocks,
    )


def _row(found: MeanOfBlocks, at: int) -> MeanOfBlocks:
    one = slice(at, at + 1)
    return MeanOfBlocks(
        found.mean[one],
        found.scale[one],
        found.weight[:, one],
        found.centre[:, one],
        found.spread[:, one],
        found.degrees[:, one],
        found.blocks,
    )


def _noisier(spreads: Spreads, likely: Array, squares: Array) -> NDArray[np.bool_]:
    """Ratios that are rather unlike the others than like them, and scatter more: one that happens to scatter
    less is where its own blocks deceive most."""
    noisier = squares[0] > np.median(squares[0])
    return np.asarray((likely @ spreads.unlike > MOST_UNLIKE) & noisier)


def common_share(rows: Array, groups: Sequence[str], correlation: float) -> float:
    """How much of what rows of one group tell of spreads each of them tells: 0 where they are independent,
    1 where they are the same series. By the mean square of the correlations of rows of a group, less what
    chance makes it where neighbouring blocks have that correlation; so n rows tell as much as
    n / (1 + (n - 1) share) independent ones (Kish, "Survey Sampling", 1965). Rows have the mean 0.
    """
    blocks = rows.shape[1]
    length = np.sqrt((rows**2).sum(axis=1, keepdims=True))
    standard = rows / np.where(length > 0, length, 1.0)
    squares = (standard @ standard.T) ** 2
    names = np.array(groups)
    pairs = (names[:, None] == names[None, :]) & ~np.eye(len(rows), dtype=bool)
    if not pairs.any():
        return 0.0
    centring = np.eye(blocks) - 1 / blocks
    places = np.arange(blocks)
    expected = centring @ correlation ** np.abs(places[:, None] - places[None, :]) @ centring
    chance = (expected**2).sum() / np.trace(expected) ** 2
    return float(max((squares[pairs].mean() - chance) / (1 - chance), 0.0))


def independent_shares(rows: Array, correlation: float, *groupings: Sequence[str]) -> Array:
    """How much each ratio counts beside those that it shares a base, or a target, with."""
    others = np.zeros(len(rows))
    for groups in groupings:
        sizes = Counter(groups)
        counts = np.array([sizes[group] for group in groups])
        others += (counts - 1) * common_share(rows, groups, correlation)
    return np.asarray(1 / (1 + others))


def _target_scales(rows: Array, squares: Array, targets: Sequence[str], correlation: float) -> Array:
    """By ratio, the scale of its target's variances, 1 where targets do not differ."""
    logarithms = np.log(np.maximum(squares, 1e-6 * np.median(squares)))
    names = list(dict.fromkeys(targets))
    if len(names) < 2:
        return np.ones(len(squares))
    groups = [logarithms[[target == name for target in targets]] for name in names]
    sizes = np.array([len(group) for group in groups])
    levels = np.array([np.median(group) for group in groups])
    levels -= np.median(logarithms)
    within = sum(float(((group - group.mean()) ** 2).sum()) for group in groups)
    one = max(within / max(len(squares) - len(names), 1), float(trigamma((rows.shape[1] - 1) / 2)))
    common = common_share(rows, targets, correlation)
    noise = one * (common + (1 - common) * np.pi / 2 / sizes)  # of a median
    between = max(float((levels**2 - noise).mean()), 0.0)
    shrunken = levels * between / (between + noise)
    by_name = dict(zip(names, np.exp(shrunken), strict=True))
    return np.array([by_name[target] for target in targets])
