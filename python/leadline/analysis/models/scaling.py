"""The Universal Scalability Law, fitted to measured rates, with how sure that is."""

from __future__ import annotations

import math
from collections.abc import Mapping

from scipy import stats

from leadline.analysis.models.computed import Computed, ModelSaid, exactly
from leadline.analysis.models.law import POINTS_MIN, fit_law
from leadline.errors import UsageError
from leadline.units import format_number


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
    t = float(stats.t.ppf(0.975, len(rates) - 3))
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
