"""Scenarios on which nothing was tuned: written down once, after the interval was chosen, then tried.

Log ratios as in `scenarios`; each has the mean 0 that its interval is asked to hold.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from scenarios import Array, Scenario, autoregressive


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
    from math import comb, log

    return sum(comb(10, k) * 0.15**k * 0.85 ** (10 - k) * log(1 - k * 2 / 30) for k in range(11))


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
