"""Which windows of a series are steady: by SNIA's rule, on series whose answer is known."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.run.watches import measure_steady
from leadline.study.work import SteadyState, find_steady

SECOND = 10**9


def asked(**values: Any) -> SteadyState:
    return SteadyState.model_validate({"window": "1s", **values})


def test_a_constant_rate_is_steady_from_its_first_window() -> None:
    found = find_steady([100.0] * 9, asked())
    assert found is not None
    assert (found.first, found.end, found.steady, found.range, found.slope) == (0, 5, True, 0.0, 0.0)


def test_the_steps_of_a_drive_that_fills_up_are_left_out() -> None:
    noise = random.Random(1)  # noqa: S311 - a fixed series
    rates = [1000, 990, 700, 400, 300] + [250 + noise.uniform(-5, 5) for _ in range(8)]
    found = find_steady(rates, asked())
    assert found is not None
    assert found.steady
    assert found.first == 5 or rates[found.first] <= 300


def test_a_slope_within_the_range_is_still_no_steady_state() -> None:
    rates = [100.0 + 4 * n for n in range(5)]  # moves by 16 of 108, spreads by as much
    spread = 16 / 108
    found = find_steady(rates, asked())
    assert found is not None
    assert not found.steady
    assert math.isclose(found.range, spread)
    assert math.isclose(found.slope, spread)
    assert find_steady(rates, asked(slope="15%")) is not None
    assert find_steady(rates, asked(slope="15%")).steady  # type: ignore[union-attr]


def test_a_range_without_a_slope_is_no_steady_state_either() -> None:
    found = find_steady([100.0, 130.0, 100.0, 130.0, 100.0], asked())
    assert found is not None
    assert not found.steady
    assert math.isclose(found.slope, 0.0, abs_tol=1e-12)
    assert found.range > 0.2


def test_where_none_is_steady_the_last_windows_count() -> None:
    found = find_steady([2.0**n for n in range(8)], asked(windows=3))
    assert found is not None
    assert (found.first, found.end, found.steady) == (5, 8, False)


def test_too_few_windows_and_a_rate_of_nothing() -> None:
    assert find_steady([1.0] * 4, asked()) is None
    found = find_steady([0.0] * 5, asked())
    assert found is not None
    assert not found.steady


@given(st.lists(st.floats(1, 1e6), min_size=5, max_size=40), st.floats(0.001, 1000))
def test_the_choice_depends_on_no_unit(rates: list[float], unit: float) -> None:
    found, scaled = (find_steady([rate * u for rate in rates], asked()) for u in (1.0, unit))
    assert found is not None
    assert scaled is not None
    assert math.isclose(found.range, scaled.range, rel_tol=1e-9, abs_tol=1e-12)


def record(counts: list[int]) -> dict[str, Any]:
    """A second of ramp, then a window a second; a second without an operation leaves no interval."""
    found = [interval(0, 7, measured=False)]
    found += [interval(n, count) for n, count in enumerate(counts, start=1) if count]
    found.append({**interval(len(counts) + 1, 3), "end_ns": (len(counts) + 1) * SECOND + 1000})
    return {"intervals": found}


def interval(index: int, count: int, *, measured: bool = True) -> dict[str, Any]:
    return {
        "index": index,
        "direction": "read",
        "start_ns": index * SECOND,
        "end_ns": (index + 1) * SECOND,
        "measured": measured,
        "operations": count,
        "bytes": count * 4096,
        "short": 0,
    }


SUMMARY = {"directions": {"read": {"bytes": 1, "operations": 1, "short": 0}}, "ramp_ns": 1, "measured_ns": 2}


def test_the_steady_windows_become_the_measured_interval() -> None:
    changed, summary = measure_steady(record([50, 0, 100, 101, 99, 100]), SUMMARY, asked(windows=3))
    assert (summary["ramp_ns"], summary["measured_ns"]) == (3 * SECOND, 3 * SECOND)
    assert summary["directions"]["read"] == {"bytes": 300 * 4096, "operations": 300, "short": 0}
    assert summary["steady"]["steady"] is True
    assert [i["index"] for i in changed["intervals"] if i["measured"]] == [3, 4, 5]


def test_a_window_without_an_operation_is_a_rate_of_nothing() -> None:
    _, summary = measure_steady(record([100, 0, 100, 0, 100]), SUMMARY, asked(windows=3))
    assert summary["steady"]["steady"] is False
    assert summary["directions"]["read"]["operations"] == 200
    assert summary["ramp_ns"] == 3 * SECOND


@pytest.mark.parametrize("late_ns", [0, 100, SECOND // 2, 2 * SECOND + 7])
def test_a_last_interval_that_ends_late_counts_with_all_its_time(late_ns: int) -> None:
    """The engine's last interval ends with the last operation, and is longer where the collector was late."""
    intervals = [interval(n, 100 * 2**n) for n in range(5)]
    intervals.append({**interval(5, 900), "end_ns": 6 * SECOND + late_ns})
    changed, summary = measure_steady({"intervals": intervals}, SUMMARY, asked(windows=3))
    first = 3 + late_ns // SECOND
    assert summary["steady"]["steady"] is False
    assert summary["ramp_ns"] == first * SECOND
    assert summary["ramp_ns"] + summary["measured_ns"] == 6 * SECOND + late_ns
    counted = sum(100 * 2**n for n in range(first, 5)) + 900
    assert summary["directions"]["read"]["operations"] == counted
    assert [i["index"] for i in changed["intervals"] if i["measured"]] == list(range(first, 6))


def test_a_last_interval_longer_than_all_windows_is_the_measured_one() -> None:
    intervals = [interval(0, 10), {**interval(1, 900), "end_ns": 10 * SECOND}]
    _, summary = measure_steady({"intervals": intervals}, SUMMARY, asked(windows=3))
    assert (summary["ramp_ns"], summary["measured_ns"]) == (SECOND, 9 * SECOND)
    assert summary["directions"]["read"]["operations"] == 900


def test_windows_without_an_operation_count_at_the_end_too() -> None:
    """One operation was held up for two windows, and ended in a third that the trial's end cut short."""
    _, summary = measure_steady(record([100, 50, 200, 100, 0, 0]), SUMMARY, asked(windows=3))
    assert summary["steady"]["steady"] is False
    assert (summary["ramp_ns"], summary["measured_ns"]) == (4 * SECOND, 3 * SECOND)
    assert summary["directions"]["read"]["operations"] == 100


@pytest.mark.parametrize("counts", [[], [100, 100]])
def test_a_trial_that_is_too_short_keeps_its_interval_and_says_so(counts: list[int]) -> None:
    _, summary = measure_steady(record(counts), SUMMARY, asked())
    assert summary["measured_ns"] == SUMMARY["measured_ns"]
    assert summary["steady"] == {"steady": False, "range": None, "slope": None}
