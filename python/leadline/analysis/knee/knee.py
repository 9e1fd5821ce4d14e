"""The knee of a surface and its plateau, each with its interval, and the cells that would tell more of them.

The plateau is the most that the grid reaches, the knee the cell with the least in flight (the least product
of its levels) that gives the asked share of it. Cells are chosen by how much less uncertain the logarithms
of both are expected to be after them, as in designs of experiments that minimise a variance (Chaloner and
Verdinelli, "Bayesian experimental design: a review", Statistical Science 10, 1995), one after the other.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leadline.analysis.knee.fitting import Fit, fit_surface
from leadline.analysis.knee.surface import Array, Grid, Place, Rates

CELLS_A_BLOCK = 5
LEAST_BLOCKS = 3  # of the knee and of a cell on the plateau
_SURE = 0.9  # that the knee is not a step from where it is said to be
_INTERVAL = (0.025, 0.975)
_RISING = 1.1  # of what is reached: where the form goes on beyond it, the grid has no plateau
_PLATEAU_WEIGHT = 0.3  # of the plateau's uncertainty beside the knee's, as logarithms


@dataclass(frozen=True)
class Knee:
    """Where a rate begins to be as good as flat.

    `plateau` is a rate with its interval; `knee` the least cell that gives the share of it, `could_be` all
    cells that could be it (95 %), `amounts` the interval of the products of their levels. `share` is what
    the knee gives of the plateau, with its interval. `reached` is the probability with which each cell of
    the grid gives the share, `rates` what each gives by the fit. `sure` is the probability that the knee is
    within a step of the one said. `rising`: the rate rises still at the end of the grid, so that there is
    no plateau in it.
    """

    plateau: tuple[float, float, float]
    knee: Place
    could_be: tuple[Place, ...]
    amounts: tuple[float, float]
    share: tuple[float, float, float]
    reached: dict[Place, float]
    rates: dict[Place, float]
    sure: float
    rising: bool
    noise: float


def find_knee(grid: Grid, rates: Rates, share: float = 0.95) -> Knee | None:
    """What the trials so far say; None where there are none with a rate."""
    fit = fit_surface(grid, rates)
    return None if fit is None else _knee(fit, share)


def _knee(fit: Fit, share: float) -> Knee:
    grid, surfaces = fit.grid, fit.surfaces
    most = surfaces.max(axis=1)
    enough = _enough(fit, share)
    amounts = np.log([grid.amount(cell) for cell in grid.cells])
    reached = enough.mean(axis=0)
    knee = _least(amounts, reached >= 0.5, reached)
    own = _own_amounts(amounts, enough)
    low, high = (float(np.quantile(own, level, method="inverted_cdf")) for level in _INTERVAL)
    low, high = min(low, float(amounts[knee])), max(high, float(amounts[knee]))
    could_be = [
        cell
        for number, cell in enumerate(grid.cells)
        if low - 1e-9 <= amounts[number] <= high + 1e-9 and _possible(reached[number])
    ]
    plateau = _quantiles(np.exp(most))
    gives = _quantiles(np.exp(surfaces[:, knee] - most))
    top = float(np.median(np.exp(fit.asymptote - most)))
    at_end = amounts[knee] >= amounts.max() - grid.step
    return Knee(
        plateau,
        grid.cells[knee],
        tuple(could_be) or (grid.cells[knee],),
        (_amount(grid, amounts, low), _amount(grid, amounts, high)),
        gives,
        dict(zip(grid.cells, map(float, reached), strict=True)),
        dict(zip(grid.cells, map(float, np.exp(np.median(surfaces, axis=0))), strict=True)),
        float((np.abs(own - amounts[knee]) < grid.step + 1e-9).mean()),
        bool(top > _RISING and at_end),
        fit.noise,
    )


def _enough(fit: Fit, share: float) -> NDArray[np.bool_]:
    """Which cells of each surface give the share of its most; as far off as cells are of their form."""
    most = fit.surfaces.max(axis=1, keepdims=True)
    short = np.minimum(math.log(share) + fit.off, 0.0)[:, None]
    return np.asarray(fit.surfaces >= most + short)


def _least(amounts: Array, enough: NDArray[np.bool_], reached: Array) -> int:
    """The number of the cell with the least amount that gives enough; of several the surest."""
    if not enough.any():
        return int(np.argmax(reached))
    least = amounts[enough].min()
    same = enough & (amounts <= least + 1e-9)
    return int(np.argmax(np.where(same, reached, -1.0)))


def _own_amounts(amounts: Array, enough: NDArray[np.bool_]) -> Array:
    """The least amount that gives enough, of each surface."""
    return np.asarray(np.where(enough, amounts, np.inf).min(axis=1))


def _amount(grid: Grid, amounts: Array, logarithm: float) -> float:
    """The product itself, without what rounding does to its logarithm."""
    return grid.amount(grid.cells[int(np.argmin(np.abs(amounts - logarithm)))])


def _possible(reached: float) -> bool:
    return bool(reached > _INTERVAL[0])


def _quantiles(values: Array) -> tuple[float, float, float]:
    low, high = np.quantile(values, _INTERVAL)
    return float(np.median(values)), float(low), float(high)


def next_cells(
    grid: Grid, rates: Rates, share: float, failed: Collection[Place], left: int
) -> tuple[Place, ...]:
    """The cells of the next block; none when the knee is known, or none can be tried.

    `failed` are cells that gave no rate: they are left alone. `left` is how many trials there may still be.
    """
    usable = tuple(cell for cell in grid.cells if cell not in failed)
    fit = fit_surface(Grid(grid.levels, usable), rates) if usable and left > 0 else None
    if fit is None:
        return ()
    found = _knee(fit, share)
    must = _unconfirmed(found, fit, rates)
    if found.sure >= _SURE and not must:
        return ()
    wanted = min(CELLS_A_BLOCK, left, len(usable))
    return tuple(sorted(_chosen(fit, share, list(must)[:wanted], wanted)))


def _unconfirmed(found: Knee, fit: Fit, rates: Rates) -> tuple[Place, ...]:
    """The likely knee, the best cell tried and the likeliest below the knee, until each has its blocks."""
    tried = {cell: sum(rate > 0 for rate in own.values()) for cell, own in rates.items()}
    best = max(tried, key=lambda cell: found.rates.get(cell, 0.0))
    below = _below(found, fit)
    return tuple(
        dict.fromkeys(
            cell
            for cell in (found.knee, best, below)
            if cell is not None and tried.get(cell, 0) < LEAST_BLOCKS
        )
    )


def _below(found: Knee, fit: Fit) -> Place | None:
    """Of the cells with less in flight than the knee the one that most likely gives enough, too."""
    grid = fit.grid
    less = [cell for cell in grid.cells if grid.amount(cell) < grid.amount(found.knee) * 0.999]
    return max(less, key=lambda cell: (found.reached[cell], found.rates[cell]), default=None)


def _chosen(fit: Fit, share: float, chosen: list[Place], wanted: int) -> list[Place]:
    """Cells until there are as many as wanted, each the one that tells the most beside those before it."""
    surfaces = fit.surfaces
    most = surfaces.max(axis=1)
    amounts = np.log([fit.grid.amount(cell) for cell in fit.grid.cells])
    own = _own_amounts(amounts, _enough(fit, share))
    asked = np.column_stack([own, _PLATEAU_WEIGHT * most])
    away, asked = surfaces - surfaces.mean(axis=0), asked - asked.mean(axis=0)
    numbers = {cell: number for number, cell in enumerate(fit.grid.cells)}
    for turn in range(wanted):
        variance = (away**2).mean(axis=0) + fit.noise**2
        gain = ((away.T @ asked / len(away)) ** 2).sum(axis=1) / variance
        if turn >= len(chosen):
            gain[[numbers[cell] for cell in chosen]] = -1.0
            chosen.append(fit.grid.cells[int(np.argmax(gain))])
        number = numbers[chosen[turn]]
        column = away[:, number].copy()
        asked = asked - np.outer(column, column @ asked / len(away) / variance[number])
        away = away - np.outer(column, column @ away / len(away) / variance[number])
    return chosen
