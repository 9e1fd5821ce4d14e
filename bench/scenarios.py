"""How blocks may scatter: the scenarios in which the statistics of leadline are tried."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Scenario = Callable[[np.random.Generator, int, int], Array]


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
