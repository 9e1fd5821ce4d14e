"""How blocks may scatter: the scenarios in which the statistics of leadline are tried.

Of one comparison (series x blocks of log ratios, mean 0) those that the method was made by, those beyond it,
and FRESH ones: nothing was tuned on them, they were written down once, after the interval was chosen, then
tried. Of whole studies STUDIES, for intervals that learn from all cells: targets x works x blocks of
logarithms with the mean 0; what is uncertain about each (how skewed, how correlated, which cell) is drawn
anew for each study, and the first target is the base.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Scenario = Callable[[np.random.Generator, int, int], Array]
Shape = tuple[int, int, int]
StudyScenario = Callable[[np.random.Generator, Shape], Array]


def autoregressive(rho: float) -> Scenario:
    """A stationary first-order series: each block keeps the share `rho` of the one before."""

    def make(random: np.random.Generator, series: int, blocks: int) -> Array:
        noise = random.standard_normal((series, blocks))
        rows = np.empty_like(noise)
        rows[:, 0] = noise[:, 0]
        for block in range(1, blocks):
            rows[:, block] = rho * rows[:, block - 1] + np.sqrt(1 - rho * rho) * noise[:, block]
        return rows

    return make


def normal(random: np.random.Generator, series: int, blocks: int) -> Array:
    """Log ratios that are normal: both targets lognormal."""
    return random.standard_normal((series, blocks))


def lognormal(random: np.random.Generator, series: int, blocks: int) -> Array:
    """Log ratios that are themselves skewed: lognormal with a shape of 0.7 (skewness 2.9)."""
    shape = 0.7
    return np.exp(shape * random.standard_normal((series, blocks))) - np.exp(shape**2 / 2)


def exponential(random: np.random.Generator, series: int, blocks: int) -> Array:
    """Now and then one target is much slower: an exponential delay on top of normal scatter."""
    return random.exponential(1, (series, blocks)) - 1 + 0.3 * random.standard_normal((series, blocks))


def bimodal(random: np.random.Generator, series: int, blocks: int) -> Array:
    """Both targets fall into a slow mode in three of ten blocks."""

    def mode() -> Array:
        return (random.random((series, blocks)) < 0.3) + 0.1 * random.standard_normal((series, blocks))

    return mode() - mode()


def one_bimodal(random: np.random.Generator, series: int, blocks: int) -> Array:
    """Only one target has a slow mode: few blocks may show one mode alone, and nothing hints at the other."""
    slow = (random.random((series, blocks)) < 0.3) - 0.3
    return slow + 0.1 * random.standard_normal((series, blocks))


def drifting(random: np.random.Generator, series: int, blocks: int) -> Array:
    """The ratio itself drifts, by four standard deviations from the first block to the last."""
    return random.standard_normal((series, blocks)) + 2 * np.linspace(-1, 1, blocks)


def shared_storage(random: np.random.Generator, series: int, blocks: int) -> Array:
    """Both targets on one storage that changes slowly (0.8 from trial to trial), in random order."""
    state = autoregressive(0.8)(random, series, 2 * blocks)
    first, second = state[:, 0::2], state[:, 1::2]
    swapped = random.random((series, blocks)) < 0.5
    own = 0.3 * random.standard_normal((series, blocks))
    return np.where(swapped, second - first, first - second) + own


SCENARIOS: Mapping[str, Scenario] = {
    "normal": normal,
    "lognormal": lognormal,
    "exponential": exponential,
    "bimodal": bimodal,
    "drifting": drifting,
    "autocorrelated storage": shared_storage,
    "autocorrelated 0.3": autoregressive(0.3),
    "autocorrelated 0.5": autoregressive(0.5),
}
# Outside of what the method is made for: how far it fails, and whether the program says so.
BEYOND: Mapping[str, Scenario] = {
    "one target bimodal": one_bimodal,
    "autocorrelated 0.7": autoregressive(0.7),
    "autocorrelated 0.9": autoregressive(0.9),
}


# -- nothing was tuned on these ------------------------------------------------------------------------


def gamma(random: np.random.Generator, series: int, blocks: int) -> Array:
    """Heavily skewed: a gamma of shape 0.5 (skewness 2.8), one side only."""
    return random.gamma(0.5, 1, (series, blocks)) - 0.5


def wide_lognormal(random: np.random.Generator, series: int, blocks: int) -> Array:
    """More skewed still: lognormal of shape 1 (skewness 6.2)."""
    return random.lognormal(0, 1, (series, blocks)) - np.exp(0.5)


def collecting(random: np.random.Generator, series: int, blocks: int) -> Array:
    """One target's device collects garbage: each tenth of a block falls to a third of the rate in three of
    twenty cases, and the block's rate is the mean of its tenths."""
    slow = random.random((series, blocks, 10)) < 0.15
    tenths = np.where(slow, 1 / 3, 1.0)
    rates = np.log(tenths.mean(axis=2)) + 0.05 * random.standard_normal((series, blocks))
    return rates - _collecting_mean()


def _collecting_mean() -> float:
    """The mean logarithm of a block's rate: exactly, over the number of slow tenths."""
    chances = ((math.comb(10, k) * 0.15**k * 0.85 ** (10 - k), 1 - k * 2 / 30) for k in range(11))
    return sum(chance * math.log(rate) for chance, rate in chances)


def student(random: np.random.Generator, series: int, blocks: int) -> Array:
    """Heavy tails on both sides: Student's t of three degrees."""
    return random.standard_t(3, (series, blocks))


def moving_average(random: np.random.Generator, series: int, blocks: int) -> Array:
    """Neighbours share a cause, others nothing: a moving average of two (correlation 0.49)."""
    noise = random.standard_normal((series, blocks + 1))
    return noise[:, 1:] + 0.8 * noise[:, :-1]


def stepping(random: np.random.Generator, series: int, blocks: int) -> Array:
    """The ratio changes its level by three standard deviations at a random block; asked for is its mean over
    the run."""
    at = random.integers(1, blocks, (series, 1)) if blocks > 1 else np.ones((series, 1))
    level = 3.0 * (np.arange(blocks)[None, :] >= at)
    return level - level.mean(axis=1, keepdims=True) + random.standard_normal((series, blocks))


def unequal_blocks(random: np.random.Generator, series: int, blocks: int) -> Array:
    """A neighbour now and then: a block scatters four times as much as others, in one of four cases."""
    width = np.where(random.random((series, blocks)) < 0.25, 4.0, 1.0)
    return width * random.standard_normal((series, blocks))


def unlike_sides(random: np.random.Generator, series: int, blocks: int) -> Array:
    """One side hardly scatters, the other is skewed: normal of 0.2 against exponential."""
    return 0.2 * random.standard_normal((series, blocks)) - (random.exponential(1, (series, blocks)) - 1)


def outliers(random: np.random.Generator, series: int, blocks: int) -> Array:
    """One block of twenty is off by eight standard deviations, to one side."""
    return random.standard_normal((series, blocks)) + 8.0 * ((random.random((series, blocks)) < 0.05) - 0.05)


def rounded(random: np.random.Generator, series: int, blocks: int) -> Array:
    """Figures in coarse steps, of one standard deviation: many blocks are equal."""
    return np.round(random.standard_normal((series, blocks)))


def periodic(random: np.random.Generator, series: int, blocks: int) -> Array:
    """Something else runs every five blocks or so: a sine of random phase, as large as the noise."""
    phase = random.random((series, 1)) * 2 * np.pi
    wave = np.sqrt(2) * np.sin(2 * np.pi * np.arange(blocks)[None, :] / 5 + phase)
    return wave + random.standard_normal((series, blocks))


def skewed_and_correlated(random: np.random.Generator, series: int, blocks: int) -> Array:
    """Both at once: the square of a series of correlation 0.6 (0.36 after squaring; skewness 2.8)."""
    return autoregressive(0.6)(random, series, blocks) ** 2 - 1


FRESH: Mapping[str, Scenario] = {
    "gamma 0.5": gamma,
    "lognormal 1.0": wide_lognormal,
    "garbage collection": collecting,
    "Student's t, 3 degrees": student,
    "moving average": moving_average,
    "a step": stepping,
    "unequal blocks": unequal_blocks,
    "unlike sides": unlike_sides,
    "rare outliers": outliers,
    "rounded": rounded,
    "periodic": periodic,
    "skewed and correlated": skewed_and_correlated,
}


# -- of whole studies ----------------------------------------------------------------------------------


def series_keeping(random: np.random.Generator, shape: tuple[int, ...], rho: float) -> Array:
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


def correlated_cells(random: np.random.Generator, shape: Shape) -> Array:
    """Each cell keeps 0.1 to 0.6 of its block before."""
    scale = np.exp(0.3 * random.standard_normal((*shape[:2], 1)))
    return np.asarray(scale * series_keeping(random, shape, random.uniform(0.1, 0.6)))


def drifting_targets(random: np.random.Generator, shape: Shape) -> Array:
    """All works of a target go up and down together, half of it kept from block to block."""
    common = series_keeping(random, (shape[0], 1, shape[2]), 0.5)
    return random.uniform(0.3, 0.8) * common + 0.8 * random.standard_normal(shape)


def one_storage(random: np.random.Generator, shape: Shape) -> Array:
    """All trials, in random order, on one storage that changes slowly."""
    targets, works, blocks = shape
    state = series_keeping(random, (blocks * targets * works,), random.uniform(0.8, 0.98))
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
    "correlated": correlated_cells,
    "targets that drift": drifting_targets,
    "one slow storage": one_storage,
    "a cell unlike all others": one_cell,
    "a target ten times noisier": one_target,
    "neighbours": neighbours,
    "heavy tails": heavy,
}
