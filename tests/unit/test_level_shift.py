"""A trial whose rate changes its level while it is measured: found, placed, and rarely said without cause."""

from __future__ import annotations

import numpy as np
import pytest
from builders import latency_row

from leadline.analysis.statistics.drift import FEWEST_INTERVALS, find_shift, shift_of_trial
from leadline.store.tables import LatencyRow

SECOND = 10**9


def noise(rho: float, series: int, intervals: int, seed: int = 1) -> np.ndarray:
    found = np.random.default_rng(seed).standard_normal((series, intervals))
    for place in range(1, intervals):
        found[:, place] = rho * found[:, place - 1] + np.sqrt(1 - rho * rho) * found[:, place]
    return found


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.8])
@pytest.mark.parametrize("intervals", [8, 20, 60])
def test_a_rate_that_only_swings_is_rarely_called_a_shift(rho: float, intervals: int) -> None:
    found = [find_shift(100 + row) for row in noise(rho, 200, intervals)]
    alarms = sum(shift is not None and shift.p_value <= 0.01 for shift in found)
    assert alarms <= 10  # of 200: at most 5 in 100


@pytest.mark.parametrize("rho", [0.0, 0.5])
def test_a_step_of_six_times_the_noise_is_found_at_its_place(rho: float) -> None:
    found = [find_shift(100 + row + 6 * (np.arange(20) >= 12)) for row in noise(rho, 50, 20)]
    hits = [shift for shift in found if shift is not None and shift.p_value <= 0.01]
    assert len(hits) >= 45
    assert sum(shift.at == 12 for shift in hits) >= 0.9 * len(hits)
    assert hits[0].after - hits[0].before == pytest.approx(6, abs=2)
    assert hits[0].size == pytest.approx(6 / 106, abs=0.02)


def test_a_pause_of_two_intervals_is_no_level() -> None:
    rates = 100 + noise(0.0, 1, 30)[0]
    rates[10:12] = 0.0
    found = find_shift(rates)
    assert found is not None
    assert found.size < 0.05


def test_a_series_that_is_too_short_or_constant_has_no_step() -> None:
    assert find_shift([1.0] * (FEWEST_INTERVALS - 1)) is None
    assert find_shift([5.0] * 20) is None
    assert find_shift([0.0] * 20) is None
    exact = find_shift([5.0] * 10 + [9.0] * 10)
    assert exact is not None
    assert (exact.at, exact.before, exact.after) == (10, 5.0, 9.0)
    assert exact.p_value < 1e-6


def interval(place: int, operations: int, **changes: object) -> LatencyRow:
    start_ns = place * SECOND
    values = {"interval": place, "start_ns": start_ns, "end_ns": start_ns + SECOND, "operations": operations}
    return latency_row(**{**values, **changes})


def test_the_rate_of_a_trial_is_that_of_its_whole_measured_intervals_both_directions_together() -> None:
    rows = [interval(place, 7, measured=False) for place in range(3)]
    for place in range(3, 23):
        if place != 8:  # nothing was done in it
            rows.append(interval(place, 60 if place < 13 else 30))
            rows.append(interval(place, 40 if place < 13 else 20, direction="write"))
            rows.append(interval(place, 999, direction="sync"))
            rows.append(interval(place, 999, clock="completion"))
    rows.append(interval(23, 5000, end_ns=23 * SECOND + 1000))
    found = shift_of_trial(rows)
    assert found is not None
    assert (found.at_s, found.shift.at) == (13.0, 10)
    assert (found.shift.before, found.shift.after) == (100.0, 50.0)


def test_a_trial_of_many_hours_is_looked_at_in_larger_pieces() -> None:
    found = shift_of_trial([interval(place, 100 if place < 30_000 else 80) for place in range(40_000)])
    assert found is not None
    assert found.at_s == pytest.approx(30_000, rel=0.01)
    assert (found.shift.before, found.shift.after) == (100.0, 80.0)


def test_a_trial_without_intervals_has_no_step() -> None:
    assert shift_of_trial([]) is None
    assert shift_of_trial([interval(-1, 100)]) is None
