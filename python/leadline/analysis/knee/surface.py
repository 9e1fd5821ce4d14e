"""What a rate over a grid of two options may look like: requests in flight, and what bounds them.

W bytes in flight, in requests of b bytes, q at a time, are served at W / (t0 + b / v) until something is
full: by Little's law, with a time t0 that every request takes and a speed v at which one is moved. A third
term is a bound on requests for each second. So with times in units of W over the plateau

    a = w0 / W + q0 / q + b0 / b,     rate = plateau x (1 + a ** (g p)) ** (-1 / p)

where a large p is a sharp knee, p = 1 that of times that add up (Jain, "The Art of Computer Systems
Performance Analysis", 1991, chapter 33, has both bounds). Beyond some W the rate may fall again: caches,
memory.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, product

import numpy as np
from numpy.typing import NDArray

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
