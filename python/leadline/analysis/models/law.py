"""Rates by how much is in flight: the Universal Scalability Law, and a fixed number at stations in a row.

The law is fitted to each block alone, so that its uncertainty is that of repeating the study, and not of one
line through means. Gunther, Guerrilla Capacity Planning, 2007.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from leadline.analysis.models.simple import Computed, ModelSaid, exactly
from leadline.analysis.statistics.means import ALPHA, Estimate, arithmetic_mean, geometric_mean
from leadline.analysis.statistics.special import student_quantile
from leadline.errors import UsageError
from leadline.units import format_latency, format_number

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Station:
    """Where an operation is served: by one server (`servers` 1), several, or without waiting (0: a delay)."""

    name: str
    seconds: float
    servers: int = 1


def operations(stations: Sequence[Station], in_flight: int) -> ModelSaid:
    """Operations per second and their latency.

    The mean value analysis of a closed network (Reiser and Lavenberg, J. ACM 27, 1980), exact for
    exponential times; several servers as one that is faster and a delay (Seidmann and others, 1987). High:
    the bound min(N / R, 1 / D), as for times without any chance.
    """
    rate, waits = _mean_values(stations, in_flight)
    alone_s = sum(one.seconds for one in stations)
    slowest = max((one for one in stations if one.servers), key=_demand_s, default=None)
    bound = in_flight / alone_s
    words = f"{in_flight} / {format_latency(alone_s * 1e9)}"
    if slowest is not None and 1 / _demand_s(slowest) < bound:
        bound = 1 / _demand_s(slowest)
        words = f"{slowest.name}: 1 / {format_latency(_demand_s(slowest) * 1e9)}"
    shares = ", ".join(
        f"{one.name} {100 * seconds * rate / in_flight:.0f} %"
        for one, seconds in zip(stations, waits, strict=True)
    )
    found = [
        Computed("operations", rate, bound, "1/s", f"at most {words}; with chance in its times, less"),
        Computed(
            "latency",
            in_flight / bound,
            in_flight / rate,
            "s",
            f"queue depth {in_flight} / operations; {shares}",
        ),
    ]
    if slowest is not None:
        knee = alone_s / _demand_s(slowest)
        words = (
            f"{format_latency(alone_s * 1e9)} / {format_latency(_demand_s(slowest) * 1e9)}, {slowest.name}"
        )
        found.append(exactly("queue depth from which it is full", knee, "", words))
    return ModelSaid(
        tuple(found),
        "Little 1961; mean value analysis, Reiser and Lavenberg 1980; bounds, Denning and Buzen 1978",
        "Locks, batches (a journal flushes several at once) and times that grow with load are not in it.",
    )


def _demand_s(station: Station) -> float:
    return station.seconds / max(station.servers, 1)


def _mean_values(stations: Sequence[Station], in_flight: int) -> tuple[float, list[float]]:
    """Operations per second, and seconds at each station with its waiting."""
    queues = [0.0] * len(stations)
    rate, waits = 0.0, [one.seconds for one in stations]
    for count in range(1, in_flight + 1):
        waits = [
            one.seconds if not one.servers else _demand_s(one) * (1 + queue) + one.seconds - _demand_s(one)
            for one, queue in zip(stations, queues, strict=True)
        ]
        rate = count / sum(waits)
        queues = [
            0.0 if not one.servers else rate * (wait - one.seconds + _demand_s(one))
            for one, wait in zip(stations, waits, strict=True)
        ]
    return rate, waits


def scaling(rates: Mapping[float, float]) -> ModelSaid:
    """X(N) = a N / (1 + s (N - 1) + k N (N - 1)), least squares of the logarithms; 95 % intervals.

    `rates`: operations (or bytes) per second by number of clients. Intervals are those of the linearised fit
    (Student's t). Source: Gunther, Guerrilla Capacity Planning, 2007. UsageError: fewer than four.
    """
    if len(rates) < POINTS_MIN or min(rates) <= 0 or min(rates.values()) <= 0:
        raise UsageError(
            f"{len(rates)} points cannot tell three parameters", "give four or more: 1=100 2=190 4=350 8=560"
        )
    law, errors = fit_law(rates)
    s, k = law.contention, law.crosstalk
    t = float(student_quantile(len(rates) - 3, 0.975))
    worst = law.furthest(rates)
    found = [
        _with(f"contention (s), of {len(rates)} points", s, errors.contention * t),
        _with("crosstalk (k)", k, errors.crosstalk * t),
        exactly("furthest point from the law", worst, "1", "measured / law - 1"),
    ]
    if k > 0 and s < 1:
        most = math.sqrt((1 - s) / k)
        rate = law.rate(most)
        words = f"at {format_number(most)}, sqrt((1 - s) / k)"
        if most > max(rates):
            words += f": beyond the {max(rates):g} that were measured, so not to be relied on"
        found.append(exactly("most of all", rate, "1/s", words))
    return ModelSaid(
        tuple(found),
        "Universal Scalability Law, Gunther 2007",
        "It describes one system whose load alone grows: where another limit is met on the way (a link that"
        " fills), one law does not hold for both sides.",
    )


def _with(what: str, value: float, off: float) -> Computed:
    return Computed(what, max(value - off, 0.0), value + off, "", f"fitted {format_number(value)}")


LawOutcome = Literal["peak", "rising", "undecided"]
POINTS_MIN = 4  # one more than there are parameters
BLOCKS_MIN = 3
_FLAT = 1e-12  # a bend below it is none
_FIRST = (0.01, 0.0001)  # contention and crosstalk where the search begins
_CLOSE, _TRIED_MAX = 1e-14, 500


@dataclass(frozen=True)
class ScalabilityLaw:
    """X(N) = one N / (1 + contention (N - 1) + crosstalk N (N - 1))."""

    one: float
    contention: float
    crosstalk: float

    def rate(self, number: float) -> float:
        """At so many at once."""
        return (
            self.one * number / (1 + self.contention * (number - 1) + self.crosstalk * number * (number - 1))
        )

    @property
    def bend(self) -> float:
        """1 / N*^2 of the N* where the rate is highest: 0 where it rises for ever."""
        return min(self.crosstalk / max(1 - self.contention, 1e-9), 1.0)

    def furthest(self, rates: Mapping[float, float]) -> float:
        """The largest difference from what was measured, as a share."""
        return max(abs(rate / self.rate(number) - 1) for number, rate in rates.items())


def fit_law(rates: Mapping[float, float]) -> tuple[ScalabilityLaw, ScalabilityLaw]:
    """Least squares of the logarithms, and each parameter's standard error; four points above 0 or more.

    NLopt's SLSQP looks for contention and crosstalk in 0 to 1. The rate of one is the mean of what is left.
    """
    numbers = np.array(sorted(rates), dtype=float)
    each = np.log([rates[one] / one for one in sorted(rates)])
    terms = np.column_stack([numbers - 1, numbers * (numbers - 1)])
    found = _least_squares(each, terms)
    divisor = 1 + terms @ found
    alone = each + np.log(divisor)
    one = math.exp(alone.mean())
    slopes = np.column_stack([np.full(numbers.size, 1 / one), -terms / divisor[:, None]])
    variance = ((alone - alone.mean()) ** 2).sum() / (numbers.size - 3)
    errors = np.sqrt(np.diag(np.linalg.pinv(slopes.T @ slopes)) * variance)
    return ScalabilityLaw(one, *map(float, found)), ScalabilityLaw(*map(float, errors))


def _least_squares(each: Array, terms: Array) -> Array:
    """The contention and crosstalk with which log `each` + log(1 + `terms` @ them) scatters least."""
    import nlopt

    best = (math.inf, np.array(_FIRST))

    def squares(at: Array, slope: Array) -> float:
        nonlocal best
        divisor = 1 + terms @ at
        left = each + np.log(divisor)
        left = left - left.mean()
        if slope.size:
            slope[:] = 2 * left @ (terms / divisor[:, None])
        total = float(left @ left)
        best = min(best, (total, at.copy()), key=lambda one: one[0])
        return total

    search = nlopt.opt(nlopt.LD_SLSQP, terms.shape[1])
    search.set_lower_bounds(0.0)
    search.set_upper_bounds(1.0)
    search.set_min_objective(squares)
    search.set_xtol_rel(_CLOSE)
    search.set_maxeval(_TRIED_MAX)
    with suppress(nlopt.RoundoffLimited):  # the points lie on the law as nearly as numbers can tell
        search.optimize(_FIRST)
    return best[1]


@dataclass(frozen=True)
class LawOfBlocks:
    """The law of a study's blocks: `most_at` is the interval of N*, `most` the rate there.

    `outcome`: `peak` where all of the interval is within what was measured, `rising` where none of it is, so
    that more still gave more at the largest number; else the data cannot tell. `furthest`: of the law, from
    the mean rates.
    """

    law: ScalabilityLaw
    contention: Estimate
    most_at: tuple[float, float]
    most: Estimate
    outcome: LawOutcome
    furthest: float


def law_of_blocks(blocks: Sequence[Mapping[float, float]], alpha: float = ALPHA) -> LawOfBlocks | None:
    """The law over blocks that have all numbers; None below four numbers or three blocks.

    N* is worked out by its bend, 1 / N*^2, which has no infinite values: Student's t over the blocks.
    """
    every: set[float] = set().union(*blocks)
    whole = [one for one in blocks if one.keys() == every and min(one.values(), default=0) > 0]
    if len(every) < POINTS_MIN or len(whole) < BLOCKS_MIN:
        return None
    fits = [fit_law(one)[0] for one in whole]
    means = {n: math.exp(sum(math.log(one[n]) for one in whole) / len(whole)) for n in every}
    law, largest = fit_law(means)[0], max(every)
    bend = arithmetic_mean([one.bend for one in fits], alpha)
    most = geometric_mean([max(map(one.rate, _looked_at(one, largest))) for one in fits], alpha)
    contention = arithmetic_mean([one.contention for one in fits], alpha)
    if bend is None or most is None or contention is None:
        return None
    low = max(1 / math.sqrt(max(bend.high or 0.0, _FLAT)), 1.0)
    high = 1 / math.sqrt(bend.low) if bend.low and bend.low > _FLAT else math.inf
    outcome: LawOutcome = "undecided"
    if high <= largest or low >= largest:
        outcome = "peak" if high <= largest else "rising"
    return LawOfBlocks(law, contention, (low, high), most, outcome, law.furthest(means))


def _looked_at(law: ScalabilityLaw, largest: float) -> Sequence[float]:
    """Where its highest rate within what was measured may be: at N*, or at an end."""
    top = 1 / math.sqrt(law.bend) if law.bend > 0 else largest
    return (1.0, largest, min(max(top, 1.0), largest))
