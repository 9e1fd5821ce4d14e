"""The knee of a surface and its plateau, each with its interval, and the cells that would tell more of them.

The plateau is the most that the grid reaches, the knee the cell with the least in flight (the least product
of its levels) that gives the asked share of it. Cells are chosen by how much less uncertain the logarithms
of both are expected to be after them, as in designs of experiments that minimise a variance (Chaloner and
Verdinelli, "Bayesian experimental design: a review", Statistical Science 10, 1995), one after the other.

Which surfaces agree with the trials so far: a sample of them, so that every answer has its uncertainty.

A cell's mean may be off the form by a misfit; it scatters from trial to trial by the noise, and what a
block does to all of its cells is taken out as far as the block has cells enough to tell. Residuals have
Student's t, so that a stalled trial does not carry the fit away. Sampled by an ensemble of walkers (Goodman
and Weare, "Ensemble samplers with affine invariance", CAMCoS 5, 2010), with a fixed seed: the same trials
choose the same cells.

What a rate over a grid of two options may look like: requests in flight, and what bounds them.

W bytes in flight, in requests of b bytes, q at a time, are served at W / (t0 + b / v) until something is
full: by Little's law, with a time t0 that every request takes and a speed v at which one is moved. A third
term is a bound on requests for each second. So with times in units of W over the plateau

    a = w0 / W + q0 / q + b0 / b,     rate = plateau x (1 + a ** (g p)) ** (-1 / p)

where a large p is a sharp knee, p = 1 that of times that add up (Jain, "The Art of Computer Systems
Performance Analysis", 1991, chapter 33, has both bounds). Beyond some W the rate may fall again: caches,
memory.

The sweeps of a plan as grids with the rates that were measured, and the cells that they try next.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, product

import numpy as np
from numpy.typing import NDArray

from leadline.analysis.cells import CellTable
from leadline.plan.make import sweeps_of
from leadline.plan.model import Plan, PlannedCell
from leadline.study.work import Sweep


@dataclass(frozen=True)
class MeasuredSweep:
    """A sweep on a target: its cells by place, and the rates of those that were tried, by block.

    `failed` were tried and gave no rate.
    """

    target: str
    name: str
    asked: Sweep
    grid: Grid
    cells: Mapping[Place, PlannedCell]
    rates: Rates
    failed: frozenset[Place]


def measured_sweeps(
    plan: Plan, tables: Mapping[str, CellTable], tried: Mapping[str, int] | None = None
) -> tuple[MeasuredSweep, ...]:
    """Every sweep of the plan on each target; `tried` counts the trials that cells were given."""
    found = []
    for (target, name), own in sweeps_of(plan.cells).items():
        swept = [cell.swept for cell in own if cell.swept is not None]
        asked = swept[0].sweep
        cells = {one.place: cell for one, cell in zip(swept, own, strict=True)}
        rates = {place: _rates(tables.get(cell.id), asked.metric) for place, cell in cells.items()}
        failed = {place for place, cell in cells.items() if (tried or {}).get(cell.id) and not rates[place]}
        found.append(
            MeasuredSweep(
                target,
                name,
                asked,
                Grid(asked.levels, tuple(cells)),
                cells,
                {place: rate for place, rate in rates.items() if rate},
                frozenset(failed),
            )
        )
    return tuple(found)


def _rates(table: CellTable | None, metric: str) -> dict[int, float]:
    by_block = table.by_block if table else {}
    return {block: own.values[metric] for block, own in by_block.items() if own.values.get(metric, 0) > 0}


def next_of_sweeps(plan: Plan, tables: Mapping[str, CellTable]) -> Sequence[str]:
    """The ids of the cells of the next block of all sweeps; none when every knee is known."""
    tried: dict[str, int] = {}
    for trial in plan.trials:
        tried[trial.cell] = tried.get(trial.cell, 0) + 1
    chosen = []
    for one in measured_sweeps(plan, tables, tried):
        left = one.asked.trials - sum(tried.get(cell.id, 0) for cell in one.cells.values())
        chosen += [
            one.cells[place].id
            for place in next_cells(one.grid, one.rates, one.asked.share, one.failed, left)
        ]
    return chosen


Array = NDArray[np.float64]
Place = tuple[int, ...]  # of a cell: the number of its level in each option
Rates = Mapping[Place, Mapping[int, float]]  # by cell and block

_ROOM = 2.0  # beyond the grid, as a logarithm: where knees may be that it does not have
_NONE = 6.0  # so far below the grid a bound is none


@dataclass(frozen=True)
class Grid:
    """The levels of one or two options, ascending, and the `cells` that can be tried.

    A level is a number above 0; what counts is the product of both, as bytes in flight are.
    """

    levels: tuple[tuple[float, ...], ...]
    cells: tuple[Place, ...]

    @classmethod
    def whole(cls, *levels: Sequence[float]) -> Grid:
        """Every combination of levels."""
        return cls(tuple(map(tuple, levels)), tuple(product(*(range(len(one)) for one in levels))))

    def amount(self, place: Place) -> float:
        """The product of a cell's levels."""
        return math.prod(levels[at] for levels, at in zip(self.levels, place, strict=True))

    def logarithms(self, cells: Sequence[Place]) -> Array:
        """One row a cell: logarithms of the product, and of each of two options."""
        own = np.array([[math.log(lv[at]) for lv, at in zip(self.levels, c, strict=True)] for c in cells])
        return np.column_stack([own.sum(axis=1), own]) if own.shape[1] > 1 else own

    @property
    def step(self) -> float:
        """The smallest ratio of neighbouring levels, as a logarithm."""
        found = [math.log(high / low) for levels in self.levels for low, high in pairwise(levels)]
        return min(found, default=math.log(2))


def logarithm_of_rate(parameters: Array, at: Array) -> Array:
    """One row a set of parameters, one column a cell, of which `at` has logarithms as `Grid` gives them."""
    plateau, w0, b0, q0, p, g, fall, falls_from = (parameters[:, [n]] for n in range(8))
    amount = at[:, 0]
    times = np.exp(w0 - amount)
    if at.shape[1] > 1:
        times = times + np.exp(b0 - at[:, 1]) + np.exp(q0 - at[:, 2])
    sharp = np.exp(p)
    rising = -np.logaddexp(0.0, g * sharp * np.log(times)) / sharp
    falling = np.exp(fall) * np.logaddexp(0.0, amount - falls_from)
    return np.asarray(plateau + rising - falling)


@dataclass(frozen=True)
class ParameterBounds:
    """Where parameters may lie, uniformly, and what most of them are thought near: mean and deviation."""

    low: Array
    high: Array
    mean: Array
    deviation: Array

    def log_prior(self, parameters: Array) -> Array:
        """Of each row, -inf outside."""
        inside = ((parameters >= self.low) & (parameters <= self.high)).all(axis=1)
        away = (((parameters - self.mean) / self.deviation) ** 2).sum(axis=1)
        return np.where(inside, -away / 2, -np.inf)

    def draw(self, count: int, random: np.random.Generator) -> Array:
        """So many rows."""
        flat = np.isinf(self.deviation)
        uniform = random.uniform(self.low, self.high, (count, len(self.low)))
        normal = self.mean + np.where(flat, 0.0, self.deviation) * random.standard_normal(uniform.shape)
        return np.asarray(np.where(flat, uniform, np.clip(normal, self.low, self.high)))


def bounds_of(grid: Grid, highest: float) -> ParameterBounds:
    """Of every parameter on a grid; `highest` is the logarithm of the highest rate that was seen.

    The noise of a trial is thought to be 8 %, the misfit of the form 1.5 % of the rate, each within a factor.
    """
    at = grid.logarithms(grid.cells)
    least, most = at.min(axis=0), at.max(axis=0)
    if at.shape[1] == 1:
        least, most = np.repeat(least, 3), np.repeat(most, 3)
    inf = math.inf
    rows = (
        (highest - 2, highest + 3, highest, 1.0),
        (least[0] - _NONE, most[0] + _ROOM, 0.0, inf),
        (least[1] - _NONE, most[1] + _ROOM, 0.0, inf),
        (least[2] - _NONE, most[2] + _ROOM, 0.0, inf),
        (math.log(0.7), math.log(20), 0.0, inf),
        (0.5, 1.3, 1.0, 0.12),
        (math.log(0.001), math.log(1.0), math.log(0.01), 1.5),
        (least[0], most[0], 0.0, inf),
        (math.log(0.01), math.log(1.0), math.log(0.08), 0.7),
        (math.log(0.003), math.log(0.1), math.log(0.015), 0.5),
    )
    return ParameterBounds(*(np.array(column) for column in zip(*rows, strict=True)))


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
