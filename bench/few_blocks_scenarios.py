"""How the cells of a whole study may scatter: scenarios for intervals that learn from all of them.

Each makes the logarithms of a study's figures, targets x works x blocks, with the mean 0; what is uncertain
about it (how skewed, how correlated, which cell) is drawn anew for each study. The first target is the base.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Shape = tuple[int, int, int]
StudyScenario = Callable[[np.random.Generator, Shape], Array]


def autoregressive(random: np.random.Generator, shape: tuple[int, ...], rho: float) -> Array:
    """Series along the last axis, each value keeping the share `rho` of the one before."""
    rows = random.standard_normal(shape)
    for block in range(1, shape[-1]):
        rows[..., block] = rho * rows[..., block - 1] + np.sqrt(1 - rho * rho) * rows[..., block]
    return rows


def _usual(random: np.random.Generator, shape: Shape, spread: float = 0.3) -> Array:
    """Cells that scatter somewhat differently."""
    return np.exp(spread * random.standard_normal((*shape[:2], 1))) * random.standard_normal(shape)


def usual(random: np.random.Generator, shape: Shape) -> Array:
    """Normal blocks; the cells' deviations differ by a third."""
    return _usual(random, shape)


def unequal(random: np.random.Generator, shape: Shape) -> Array:
    """Deviations from a third to three times the middle one, evenly on a logarithmic scale."""
    return 3.0 ** random.uniform(-1, 1, (*shape[:2], 1)) * random.standard_normal(shape)


def skewed(random: np.random.Generator, shape: Shape) -> Array:
    """A tail towards slow: lognormal waits of shape 0.3 to 0.8."""
    width = random.uniform(0.3, 0.8)
    waits = random.lognormal(0, width, shape) - np.exp(width**2 / 2)
    return np.asarray(-waits / np.sqrt(np.expm1(width**2) * np.exp(width**2)))


def rarely_slow(random: np.random.Generator, shape: Shape) -> Array:
    """Any trial is slow now and then: 5 to 15 % of them, by two to six deviations of the others."""
    chance = random.uniform(0.05, 0.15)
    slow = (random.random(shape) < chance) - chance
    return 0.6 * random.standard_normal(shape) - random.uniform(1.2, 3.6) * slow


def one_rarely_slow(random: np.random.Generator, shape: Shape, at: int | None = None) -> Array:
    """One target alone, any (or `at`), is slow in 15 % of its trials, by six deviations."""
    rows, drawn = 0.5 * random.standard_normal(shape), random.integers(shape[0])
    rows[drawn if at is None else at] -= 3 * ((random.random(shape[1:]) < 0.15) - 0.15)
    return rows


def correlated(random: np.random.Generator, shape: Shape) -> Array:
    """Each cell keeps 0.1 to 0.6 of its block before."""
    scale = np.exp(0.3 * random.standard_normal((*shape[:2], 1)))
    return np.asarray(scale * autoregressive(random, shape, random.uniform(0.1, 0.6)))


def drifting_targets(random: np.random.Generator, shape: Shape) -> Array:
    """All works of a target go up and down together, half of it kept from block to block."""
    common = autoregressive(random, (shape[0], 1, shape[2]), 0.5)
    return random.uniform(0.3, 0.8) * common + 0.8 * random.standard_normal(shape)


def one_storage(random: np.random.Generator, shape: Shape) -> Array:
    """All trials, in random order, on one storage that changes slowly."""
    targets, works, blocks = shape
    state = autoregressive(random, (blocks * targets * works,), random.uniform(0.8, 0.98))
    rows = np.empty(shape)
    for block, part in enumerate(np.split(state, blocks)):
        rows[:, :, block] = random.permutation(part).reshape(targets, works)
    return rows + 0.4 * random.standard_normal(shape)


def one_cell(random: np.random.Generator, shape: Shape, at: int | None = None) -> Array:
    """One cell, any (or of the target `at`), scatters 5 to 20 times as much as the others."""
    rows = _usual(random, shape)
    target, work = random.integers(shape[0]), random.integers(shape[1])
    rows[(target, work) if at is None else (at, 0)] *= random.uniform(5, 20)
    return rows


def one_target(random: np.random.Generator, shape: Shape, at: int | None = None) -> Array:
    """One target, any, the base included (or `at`), scatters ten times as much."""
    rows, drawn = _usual(random, shape), random.integers(shape[0])
    rows[drawn if at is None else at] *= 10
    return rows


def neighbours(random: np.random.Generator, shape: Shape) -> Array:
    """Somebody else's load: each block has one chance in four to scatter two to five times as much."""
    wide = random.random((1, 1, shape[2])) < 0.25
    return np.asarray(np.where(wide, random.uniform(2, 5), 1.0) * _usual(random, shape))


def heavy(random: np.random.Generator, shape: Shape) -> Array:
    """Outliers either way: Student's t of 2.5 to 6 degrees."""
    return random.standard_t(random.uniform(2.5, 6), shape)


STUDIES: Mapping[str, StudyScenario] = {
    "usual": usual,
    "unequal variances": unequal,
    "skewed": skewed,
    "rarely slow": rarely_slow,
    "one target rarely slow": one_rarely_slow,
    "correlated": correlated,
    "targets that drift": drifting_targets,
    "one slow storage": one_storage,
    "a cell unlike all others": one_cell,
    "a target ten times noisier": one_target,
    "neighbours": neighbours,
    "heavy tails": heavy,
}
