"""The Universal Scalability Law, fitted to measured rates, with how sure that is."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from scipy import optimize, stats

from leadline.analysis.models.computed import Computed, ModelSaid, exactly
from leadline.errors import UsageError
from leadline.units import format_number

_POINTS_MIN = 4  # one more than there are parameters


def scaling(rates: Mapping[float, float]) -> ModelSaid:
    """X(N) = a N / (1 + s (N - 1) + k N (N - 1)), least squares of the logarithms; 95 % intervals.

    `rates`: operations (or bytes) per second by number of clients. Intervals are those of the linearised fit
    (Student's t). Source: Gunther, Guerrilla Capacity Planning, 2007. UsageError: fewer than four.
    """
    if len(rates) < _POINTS_MIN or min(rates) <= 0 or min(rates.values()) <= 0:
        raise UsageError(
            f"{len(rates)} points cannot tell three parameters", "give four or more: 1=100 2=190 4=350 8=560"
        )
    numbers = np.array(sorted(rates), dtype=float)
    seen = np.array([rates[one] for one in sorted(rates)], dtype=float)

    def law(n: np.ndarray, a: float, s: float, k: float) -> np.ndarray:
        found: np.ndarray = np.log(a * n / (1 + s * (n - 1) + k * n * (n - 1)))
        return found

    first = (seen[0] / numbers[0], 0.01, 0.0001)
    bounds = ((1e-12, 0.0, 0.0), (np.inf, 1.0, 1.0))
    fitted, covariance = optimize.curve_fit(law, numbers, np.log(seen), p0=first, bounds=bounds)
    t = float(stats.t.ppf(0.975, len(rates) - len(fitted)))
    a, s, k = (float(one) for one in fitted)
    off = [float(one) * t for one in np.sqrt(np.diag(covariance))]
    worst = float(np.max(np.abs(np.expm1(np.log(seen) - law(numbers, a, s, k)))))
    found = [
        _with(f"contention (s), of {len(rates)} points", s, off[1]),
        _with("crosstalk (k)", k, off[2]),
        exactly("furthest point from the law", worst, "1", "measured / law - 1"),
    ]
    if k > 0 and s < 1:
        most = math.sqrt((1 - s) / k)
        rate = a * most / (1 + s * (most - 1) + k * most * (most - 1))
        words = f"at {format_number(most)}, sqrt((1 - s) / k)"
        if most > numbers[-1]:
            words += f": beyond the {numbers[-1]:g} that were measured, so not to be relied on"
        found.append(exactly("most of all", rate, "1/s", words))
    return ModelSaid(
        tuple(found),
        "Universal Scalability Law, Gunther 2007",
        "It describes one system whose load alone grows: where another limit is met on the way (a link that"
        " fills), one law does not hold for both sides.",
    )


def _with(what: str, value: float, off: float) -> Computed:
    return Computed(what, max(value - off, 0.0), value + off, "", f"fitted {format_number(value)}")
