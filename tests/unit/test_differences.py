"""Differences of parts in their own unit: plain means, and intervals that hold, by simulation."""

from __future__ import annotations

import numpy as np
import pytest

from leadline.analysis.statistics.differences import Sides, mean_differences

PARTS_S = np.array([0.02, 0.008, 0.0003, 0.2, 0.6, 0.9, 1.6, 2.6, 10.0, 0.0005])
ADDED_S = np.array([0, 0.75, 0.035, 0, 0, 0, 0, 0, 0, 0.9])


def study(chance: np.random.Generator, load: float, noise: float, blocks: int) -> list[Sides]:
    """Ten parts; a trial's load lengthens all of them, each has noise, and the shortest have jitter."""
    shape = (blocks, 2, len(PARTS_S))
    factors = np.exp(chance.normal(-(load**2) / 2, load, (blocks, 2, 1)))
    factors = factors * np.exp(chance.normal(-(noise**2) / 2, noise, shape))
    seconds = np.stack([PARTS_S, PARTS_S + ADDED_S]) * factors + chance.exponential(0.0003, shape)
    return [
        Sides("a", "b", tuple(seconds[:, 0, at]), tuple(seconds[:, 1, at]), 0.0001 * PARTS_S.sum())
        for at in range(len(PARTS_S))
    ]


@pytest.mark.parametrize(("load", "noise", "power"), [(0.05, 0.1, 0.7), (0.25, 0.1, 0.5)])
def test_three_blocks_find_what_is_longer_and_hardly_anything_else(
    load: float, noise: float, power: float
) -> None:
    chance = np.random.default_rng(7)
    covered, found, false = [], [], []
    for _ in range(12):
        differences = mean_differences(study(chance, load, noise, 3))
        told = np.array([one.found for one in differences])
        pairs = zip(differences, ADDED_S, strict=True)
        covered += [one.low <= true <= one.high for one, true in pairs if one.low is not None and one.high]
        found.append(told[ADDED_S > 0].mean())
        false.append(told[ADDED_S == 0].sum() / max(told.sum(), 1))
    # Where one target met all the load by chance, all its parts are longer: one of so few studies is so.
    assert np.mean(covered) > 0.92
    assert np.mean(false) < 0.1
    assert np.mean(found) > power


def test_means_are_plain_whatever_the_interval_rests_on() -> None:
    parts = [Sides("a", "b", (1.0, 2.0, 3.0), (5.0, 3.0, 4.0), 0.01)]
    (one,) = mean_differences(parts, explores=False)
    assert one.value == pytest.approx(2.0)
    assert one.low is not None
    assert one.high is not None
    assert (one.low + one.high) / 2 == pytest.approx(2.0)
    assert (one.blocks, one.confidence, one.found) == (3, pytest.approx(0.95), False)


def test_one_block_has_no_interval_and_nothing_is_found() -> None:
    (one,) = mean_differences([Sides("a", "b", (1.0,), (9.0,), 0.01)])
    assert (one.value, one.low, one.high, one.found) == (8.0, None, None, False)
    assert mean_differences([]) == ()


def test_parts_of_one_answer_are_decided_at_a_smaller_level_each() -> None:
    parts = [Sides("a", "b", (1.0, 1.1, 0.9), (1.0, 1.2, 0.8), 0.01) for _ in range(2)]
    for one in mean_differences(parts, explores=False):
        assert one.confidence == pytest.approx(0.975)
    assert all(one.confidence > 0.95 for one in mean_differences(parts, 0.03))


def test_parts_that_take_no_time_at_all_differ_by_nothing() -> None:
    for one in mean_differences([Sides("a", "b", (0.0, 0.0, 0.0), (0.0, 0.0, 0.0), 0.01) for _ in range(8)]):
        assert (one.value, one.found) == (0.0, False)
