"""Intervals of many ratios over few blocks, each from its own blocks and from how much all of them scatter.

Three blocks say little of their own spread; the cells of a study together say much. For each correlation of
neighbouring blocks the mean ratio has a mixture of t distributions: its own sum of squares, moderated by what
was learned from all ratios (`spread_prior`). The correlation is weighed once per study, from the cells and
not from the ratios: ratios to one base share its blocks, which looks like correlation. Before variances are
compared they are divided by a scale of their target, shrunken towards 1 as far as targets do not differ.
A ratio that is unlike the others keeps the interval of its own blocks, and is named.

Sources: Smyth (2004) and Phipson et al. (2016), see `spread_prior`; Zellner and Tiao (1964), see `intervals`;
James and Stein (1961) for the scales. Limits were found by simulation, see `bench/coverage.md`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leadline.analysis.statistics.intervals import (
    CORRELATIONS,
    MeanOfBlocks,
    least_squares,
    mean_of_blocks,
)
from leadline.analysis.statistics.power import FEWEST_RATIOS
from leadline.analysis.statistics.spread_prior import Spreads, learn_spreads

Array = NDArray[np.float64]

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
    from scipy.special import polygamma

    logarithms = np.log(np.maximum(squares, 1e-6 * np.median(squares)))
    names = list(dict.fromkeys(targets))
    if len(names) < 2:
        return np.ones(len(squares))
    groups = [logarithms[[target == name for target in targets]] for name in names]
    sizes = np.array([len(group) for group in groups])
    levels = np.array([np.median(group) for group in groups])
    levels -= np.median(logarithms)
    within = sum(float(((group - group.mean()) ** 2).sum()) for group in groups)
    one = max(within / max(len(squares) - len(names), 1), float(polygamma(1, (rows.shape[1] - 1) / 2)))
    common = common_share(rows, targets, correlation)
    noise = one * (common + (1 - common) * np.pi / 2 / sizes)  # of a median
    between = max(float((levels**2 - noise).mean()), 0.0)
    shrunken = levels * between / (between + noise)
    by_name = dict(zip(names, np.exp(shrunken), strict=True))
    return np.array([by_name[target] for target in targets])
