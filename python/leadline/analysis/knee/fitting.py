"""Which surfaces agree with the trials so far: a sample of them, so that every answer has its uncertainty.

A cell's mean may be off the form by a misfit; it scatters from trial to trial by the noise, and what a
block does to all of its cells is taken out as far as the block has cells enough to tell. Residuals have
Student's t, so that a stalled trial does not carry the fit away. Sampled by an ensemble of walkers (Goodman
and Weare, "Ensemble samplers with affine invariance", CAMCoS 5, 2010), with a fixed seed: the same trials
choose the same cells.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from leadline.analysis.knee.surface import Array, Grid, Place, Rates, bounds_of, logarithm_of_rate

_WALKERS, _STEPS, _BURN, _KEPT = 48, 260, 120, 7  # every so many steps are kept
_DRAWN = 4_000  # of the prior, to begin from the best of them
_STRETCH = 2.0
_DEGREES = 5.0  # of Student's t
_BLOCKS_LIKE = 2.0  # trials that it takes until half of a block's mean residual is thought the block's


@dataclass(frozen=True)
class Fit:
    """Surfaces that agree with the trials: one row each, one column a cell of the grid, logarithms of rates.

    `asymptote` is what each would reach with anything in flight, `off` how far a cell might be off it (drawn
    by its misfit, as a logarithm), `noise` a trial's standard deviation of the
    logarithm.
    """

    grid: Grid
    surfaces: Array
    asymptote: Array
    off: Array
    noise: float


def fit_surface(grid: Grid, rates: Rates) -> Fit | None:
    """The surfaces that agree with these rates (any unit, above 0); None where there is no rate at all."""
    trials = [(cell, block, rate) for cell, own in sorted(rates.items()) for block, rate in own.items()]
    trials = [one for one in trials if one[2] > 0]
    if not trials:
        return None
    logarithms = np.array([math.log(rate) for _, _, rate in trials])
    cells = list(dict.fromkeys(cell for cell, _, _ in trials))
    highest = max(float(np.mean([math.log(r) for r in rates[c].values() if r > 0])) for c in cells)
    limits = bounds_of(grid, highest)
    likelihood = _likelihood(grid, cells, trials, logarithms)

    def posterior(parameters: Array) -> Array:
        prior = limits.log_prior(parameters)
        found = np.full(len(parameters), -np.inf)
        inside = np.isfinite(prior)
        if inside.any():
            found[inside] = prior[inside] + likelihood(parameters[inside])
        return found

    random = np.random.default_rng(1)
    first = limits.draw(_DRAWN, random)
    best = first[np.argsort(-posterior(first), kind="stable")[:_WALKERS]]
    sample = _sampled(posterior, best, random)
    surfaces = logarithm_of_rate(sample, grid.logarithms(grid.cells))
    off = np.exp(sample[:, 9]) * random.standard_normal(len(sample))
    return Fit(grid, surfaces, sample[:, 0], off, float(np.exp(np.median(sample[:, 8]))))


def _likelihood(
    grid: Grid, cells: list[Place], trials: list[tuple[Place, int, float]], logarithms: Array
) -> Callable[[Array], Array]:
    """The logarithm of how likely the trials are, of each row of parameters."""
    numbers = {cell: number for number, cell in enumerate(cells)}
    blocks = {block: number for number, block in enumerate(dict.fromkeys(b for _, b, _ in trials))}
    of_cell = np.array([numbers[cell] for cell, _, _ in trials])
    in_cell = np.eye(len(cells))[of_cell]
    in_block = np.eye(len(blocks))[[blocks[block] for _, block, _ in trials]]
    shrunken = in_block / (in_block.sum(axis=0) + _BLOCKS_LIKE)
    count = in_cell.sum(axis=0)
    at = grid.logarithms(cells)

    def likelihood(parameters: Array) -> Array:
        residuals = logarithms - logarithm_of_rate(parameters, at)[:, of_cell]
        residuals = residuals - np.clip(residuals, -0.5, 0.5) @ shrunken @ in_block.T
        means = residuals @ in_cell / count
        squares = ((residuals - means[:, of_cell]) ** 2).sum(axis=1)
        noise, misfit = np.exp(2 * parameters[:, [8]]), np.exp(2 * parameters[:, [9]])
        variance = noise / count + misfit
        outside = np.log1p(means**2 / (_DEGREES * variance)) * (_DEGREES + 1) / 2
        within = squares / (2 * noise[:, 0]) + (len(trials) - len(cells)) * parameters[:, 8]
        return np.asarray(-(outside + np.log(variance) / 2).sum(axis=1) - within)

    return likelihood


def _sampled(posterior: Callable[[Array], Array], walkers: Array, random: np.random.Generator) -> Array:
    """Rows of parameters, distributed as the posterior; `walkers` are an even number to begin with."""
    walkers = walkers.copy()
    likely = posterior(walkers)
    half, width = len(walkers) // 2, walkers.shape[1]
    kept = []
    for step in range(_STEPS):
        for own, others in ((slice(0, half), slice(half, None)), (slice(half, None), slice(0, half))):
            stretch = ((_STRETCH - 1) * random.random(half) + 1) ** 2 / _STRETCH
            other = walkers[others][random.integers(half, size=half)]
            moved = other + stretch[:, None] * (walkers[own] - other)
            found = posterior(moved)
            taken = np.log(random.random(half)) < (width - 1) * np.log(stretch) + found - likely[own]
            walkers[own] = np.where(taken[:, None], moved, walkers[own])
            likely[own] = np.where(taken, found, likely[own])
        if step >= _BURN and step % _KEPT == 0:
            kept.append(walkers.copy())
    return np.concatenate(kept)
