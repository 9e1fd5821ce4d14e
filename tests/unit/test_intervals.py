"""The statistics behind verdicts: intervals, many comparisons, changes over time, what blocks can find."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from leadline.analysis.statistics import intervals
from leadline.analysis.statistics.drift import find_changes
from leadline.analysis.statistics.intervals import ALPHA, holm_levels, mean_of_blocks
from leadline.analysis.statistics.means import geometric_mean, geometric_means, paired_ratio, unpaired_ratio
from leadline.analysis.statistics.moderated import smallest_difference

_P_VALUES = st.lists(st.floats(1e-9, 1.0), min_size=1, max_size=20)


def rows(count: int, blocks: int, *, rho: float = 0.0, seed: int = 1) -> np.ndarray:
    noise = np.random.default_rng(seed).standard_normal((count, blocks))
    for block in range(1, blocks):
        noise[:, block] = rho * noise[:, block - 1] + math.sqrt(1 - rho * rho) * noise[:, block]
    return noise


def test_without_a_possible_correlation_the_interval_is_students(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intervals, "CORRELATIONS", (0.0,))
    monkeypatch.setattr(intervals, "PRIOR", (1.0,))
    values = [1.0, 4.0, 2.0, 7.0, 3.0]
    low, high = stats.t.interval(0.95, 4, np.mean(values), stats.sem(values))
    assert mean_of_blocks([values]).half_width(0.05)[0] == pytest.approx((high - low) / 2, rel=1e-9)


def test_the_mixture_is_the_posterior_that_integration_over_a_grid_gives() -> None:
    """By brute force: likelihood of an AR(1) series on a grid of mean, scale and correlation."""
    values = np.array([0.3, -0.2, 0.5, 0.9, 0.1, 0.4])
    means = np.linspace(-6, 7, 1301)
    scales = np.exp(np.linspace(-4, 4, 161))
    lag = np.abs(np.subtract.outer(range(6), range(6)))
    mass = np.zeros_like(means)
    for rho, prior in zip(intervals.CORRELATIONS, intervals.PRIOR, strict=True):
        matrix = rho**lag if rho else np.eye(6)
        away = values[None, :] - means[:, None]
        square = np.einsum("mi,ij,mj->m", away, np.linalg.inv(matrix), away)
        density = scales[None, :] ** -6.0 * np.exp(-square[:, None] / (2 * scales[None, :] ** 2))
        mass += prior * np.linalg.det(matrix) ** -0.5 * density.sum(axis=1)
    found = mean_of_blocks([values])
    for distance in (0.2, 0.5, 1.0):
        beyond = mass[np.abs(means - values.mean()) > distance].sum() / mass.sum()
        assert float(found.beyond(np.array([distance]))[0]) == pytest.approx(beyond, rel=0.03)


@pytest.mark.parametrize(("rho", "blocks"), [(0.0, 3), (0.0, 12), (0.3, 8), (0.5, 4), (0.5, 12), (0.5, 30)])
def test_the_interval_holds_for_few_and_correlated_blocks(rho: float, blocks: int) -> None:
    found = mean_of_blocks(rows(2000, blocks, rho=rho))
    assert (found.beyond(np.abs(found.mean)) >= 0.05).mean() >= 0.93


def test_intervals_that_are_found_together_are_those_found_one_by_one() -> None:
    """Of other numbers of blocks too, of one alone, of blocks all alike, and of what has no logarithm."""
    chance = np.random.default_rng(3)
    rows = [list(chance.lognormal(size=count)) for count in (7, 2, 1, 30, 7)] + [[5.0] * 4, [1.0, 0.0], []]
    assert geometric_means(rows, 0.01) == [geometric_mean(row, 0.01) for row in rows]


def test_the_p_value_and_the_interval_agree() -> None:
    ratio = paired_ratio([100.0, 98.0, 103.0, 99.0], [92.0, 95.0, 94.0, 93.0])
    assert ratio is not None
    for alpha in (ratio.p_value() * 0.99, ratio.p_value() * 1.01):
        high = ratio.estimate(alpha).high
        assert high is not None
        assert (high < 1) == (ratio.p_value() < alpha)


def test_the_p_value_and_the_interval_agree_for_results_measured_apart() -> None:
    ratio = unpaired_ratio([100.0, 98.0, 103.0, 99.0], [92.0, 95.0, 90.0, 93.0, 92.0])
    assert ratio is not None
    for alpha in (ratio.p_value() * 0.99, ratio.p_value() * 1.01):
        high = ratio.estimate(alpha).high
        assert high is not None
        assert (high < 1) == (ratio.p_value() < alpha)


def test_blocks_that_are_all_alike_have_an_interval_without_width() -> None:
    found = geometric_mean([3.0] * 5)
    assert found is not None
    assert found.low == pytest.approx(3.0)
    assert found.high == pytest.approx(3.0)
    same, twice = paired_ratio([2.0] * 4, [2.0] * 4), paired_ratio([2.0] * 4, [4.0] * 4)
    assert same is not None
    assert twice is not None
    assert (same.p_value(), twice.p_value()) == (1.0, 0.0)


@given(_P_VALUES)
def test_a_difference_is_found_exactly_where_its_p_value_is_below_its_level(p_values: list[float]) -> None:
    """By Holm's own procedure; and no level above what a single comparison would get."""
    levels = holm_levels(p_values)
    rejected = []
    for rank, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        if p_values[index] > ALPHA / (len(p_values) - rank):
            break
        rejected.append(index)
    for index, (p_value, level) in enumerate(zip(p_values, levels, strict=True)):
        assert level <= ALPHA
        assert (p_value <= level * (1 + 1e-12)) == (index in rejected)


def test_a_weight_is_a_share_of_the_chance_to_err() -> None:
    assert holm_levels([0.5, 0.5], [4.0, 1.0]) == pytest.approx((0.04, 0.01))
    assert holm_levels([0.5], [4.0]) == (0.05,)
    assert holm_levels([0.001, 0.5], [4.0, 1.0]) == pytest.approx((0.04, 0.05))
    assert holm_levels([]) == ()


def test_a_study_against_itself_claims_nothing_in_95_of_100() -> None:
    found = mean_of_blocks(rows(500 * 14, 6))
    p_values = found.beyond(np.abs(found.mean)).reshape(500, 14)
    claims = sum(bool((row < np.array(holm_levels(list(row)))).any()) for row in p_values)
    assert claims <= 25


def test_a_drift_a_step_and_a_first_block_are_told_apart() -> None:
    quiet = rows(3, 12, seed=4) * 0.01
    drift, step, first = quiet.copy(), quiet.copy(), quiet.copy()
    drift[1] += np.linspace(0, 1, 12)
    step[1] += np.arange(12) >= 5
    first[1] += np.arange(12) == 0
    (trend,) = find_changes(drift)
    assert (trend.series, trend.kind) == (1, "trend")
    assert trend.after is not None
    assert trend.before is not None
    assert trend.after - trend.before == pytest.approx(8 / 11, abs=0.03)
    (found,) = find_changes(step)
    assert (found.series, found.kind, found.at) == (1, "level", 5)
    assert found.after is not None
    assert found.before is not None
    assert found.after - found.before == pytest.approx(1, abs=0.03)
    (warm_up,) = find_changes(first)
    assert (warm_up.series, warm_up.kind, warm_up.at) == (1, "level", 1)


def test_blocks_that_hang_together_are_noticed() -> None:
    found = find_changes(rows(1, 40, rho=0.9, seed=3))
    assert [change.series for change in found] == [0]
    assert found[0].correlation > 0.4


def test_nothing_is_said_of_four_blocks_nor_of_a_constant() -> None:
    assert find_changes([[1.0, 2.0, 3.0, 4.0]]) == ()
    assert find_changes([[2.0] * 12]) == ()
    assert find_changes([]) == ()


@pytest.mark.parametrize("blocks", [5, 6, 12])
def test_changes_are_rarely_said_where_nothing_changes(blocks: int) -> None:
    alarms = sum(bool(find_changes(rows(4, blocks, seed=seed))) for seed in range(100))
    assert alarms <= 11  # of 100 at a rate of 5 %: more come in fewer than one of 200 cases


def test_of_all_orders_of_the_same_blocks_no_more_are_called_a_change_than_chance_may_give() -> None:
    """What is exact needs no luck: each order is tried once. A fifth of the level is for first blocks."""
    values = [0.1, 0.9, 2.3, 3.1, 5.7, 6.0]
    alarms = sum(bool(find_changes([order])) for order in itertools.permutations(values))
    assert 0 < alarms <= 720 * 0.05 * 0.8


def test_more_blocks_find_less_and_a_single_one_finds_nothing() -> None:
    found = [smallest_difference(blocks, 0.05, 0.05) for blocks in (3, 6, 12, 30)]
    assert all(value is not None for value in found)
    assert found == sorted(found, key=lambda value: -(value or 0))
    assert smallest_difference(1, 0.05, 0.05) is None


def test_the_smallest_difference_is_found_in_four_of_five_studies() -> None:
    effect = smallest_difference(8, 0.1, 0.05)
    assert effect is not None
    found = mean_of_blocks(math.log1p(effect) + 0.1 * rows(2000, 8, seed=9))
    assert (found.beyond(np.abs(found.mean)) < 0.05).mean() == pytest.approx(0.8, abs=0.05)
