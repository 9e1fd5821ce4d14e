"""The rule of steadiness: which windows of a series of rates are the first that do not drift.

Source: SNIA Solid State Storage Performance Test Specification, definition of steady state. Pure: the run
stops by it and the tables are made by it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from leadline.study.work import SteadyState


@dataclass(frozen=True)
class Steadiness:
    """Windows `first` to before `end` of a series. `range` and `slope` are shares of their mean.

    `slope` is how far the line of best fit moves from the first to the last of them. Not `steady`: the last
    windows that there were.
    """

    first: int
    end: int
    steady: bool
    range: float
    slope: float


def find_steady(rates: Sequence[float], asked: SteadyState) -> Steadiness | None:
    """The first windows that are steady, else the last ones; None where there are fewer than asked for."""
    found = None
    for first in range(len(rates) - asked.windows + 1):
        end = first + asked.windows
        spread, moved = _spread(rates[first:end]), _moved(rates[first:end])
        found = Steadiness(first, end, spread <= asked.range and moved <= asked.slope, spread, moved)
        if found.steady:
            break
    return found


def _spread(rates: Sequence[float]) -> float:
    """Largest minus smallest, of the mean; infinite where nothing was done."""
    mean = math.fsum(rates) / len(rates)
    return (max(rates) - min(rates)) / mean if mean > 0 else math.inf


def _moved(rates: Sequence[float]) -> float:
    """How far the least-squares line moves over the windows, of the mean."""
    count = len(rates)
    mean, middle = math.fsum(rates) / count, (count - 1) / 2
    if mean <= 0:
        return math.inf
    rise = math.fsum((place - middle) * (rate - mean) for place, rate in enumerate(rates))
    run = math.fsum((place - middle) ** 2 for place in range(count))
    return abs(rise / run) * (count - 1) / mean
