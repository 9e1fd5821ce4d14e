"""Welch's test on logarithms, held against scipy's own and against simulated values."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from leadline.analysis.statistics.means import mean_of_values, welch_ratio

BASE, OTHER = (301.0, 288.0, 315.0, 296.0), (190.0, 183.0, 196.0, 177.0, 201.0)


def test_interval_and_probability_are_those_of_scipy() -> None:
    found = welch_ratio(BASE, OTHER)
    assert found is not None
    by_scipy = stats.ttest_ind(np.log(OTHER), np.log(BASE), equal_var=False)
    assert found.p_value() == pytest.approx(by_scipy.pvalue)
    for level in (0.05, 0.005):
        low, high = by_scipy.confidence_interval(1 - level)
        estimate = found.estimate(level)
        assert (estimate.low, estimate.high) == pytest.approx((math.exp(low), math.exp(high)))


def test_an_interval_at_the_probability_touches_one() -> None:
    found = welch_ratio(BASE, OTHER)
    assert found is not None
    assert found.estimate(found.p_value()).high == pytest.approx(1.0)


@pytest.mark.parametrize("spreads", [(0.1, 0.1), (0.05, 0.5), (0.6, 0.1)])
def test_intervals_of_four_against_four_hold_with_unequal_spreads(spreads: tuple[float, float]) -> None:
    random = np.random.default_rng(5)
    hits = 0
    for _ in range(3000):
        base, other = (np.exp(random.normal(0, spread, 4)) for spread in spreads)
        found = welch_ratio(base.tolist(), (0.63 * other).tolist())
        assert found is not None
        estimate = found.estimate()
        assert estimate.low is not None
        assert estimate.high is not None
        hits += estimate.low <= 0.63 <= estimate.high
    assert hits / 3000 >= 0.93


def test_one_value_has_no_interval_and_a_value_of_nothing_no_ratio() -> None:
    single = welch_ratio([3.0], [1.0, 2.0])
    assert single is not None
    assert single.estimate().value == pytest.approx(math.sqrt(2) / 3)
    assert (single.estimate().low, single.p_value()) == (None, 1.0)
    assert welch_ratio([], [1.0]) is None
    assert welch_ratio([0.0, 1.0], [1.0, 2.0]) is None
    assert mean_of_values([]) is None


def test_values_without_spread_have_at_least_that_of_their_clock() -> None:
    blunt = welch_ratio([60.0] * 4, [59.0] * 4, (0.01, 0.01))
    assert blunt is not None
    assert blunt.p_value() > 0.01
    low, high = blunt.estimate().low, blunt.estimate().high
    assert low is not None
    assert high is not None
    assert low < 59 / 60 < high


def test_a_mean_is_geometric_with_the_interval_of_student() -> None:
    found = mean_of_values(BASE)
    assert found is not None
    logs = np.log(BASE)
    margin = stats.t.ppf(0.975, 3) * logs.std(ddof=1) / 2
    assert found.value == pytest.approx(math.exp(logs.mean()))
    assert (found.low, found.high) == pytest.approx(tuple(np.exp(logs.mean() + np.array([-margin, margin]))))
