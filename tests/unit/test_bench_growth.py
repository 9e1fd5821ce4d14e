"""The exponent of a growth: right for powers, whatever their factor, and refused where there is none."""

from __future__ import annotations

import math
import runpy
from pathlib import Path

import pytest

exponent = runpy.run_path(str(Path(__file__).parents[2] / "bench" / "harness.py"))["exponent"]


@pytest.mark.parametrize("power", [-1.0, 0.0, 0.5, 1.0, 2.0])
def test_a_power_has_its_exponent_whatever_its_factor(power: float) -> None:
    sizes = [10_000, 100_000, 1_000_000]
    for factor in (0.003, 1.0, 70.0):
        assert exponent(sizes, [factor * size**power for size in sizes]) == pytest.approx(power)


def test_what_is_no_power_has_the_slope_nearest_to_all_its_points() -> None:
    """By hand: sizes e^0, e^1, e^2 and costs e^0, e^2, e^2 have the slope (2 - 0) / 2 = 1."""
    assert exponent([1, math.e, math.e**2], [1, math.e**2, math.e**2]) == pytest.approx(1.0)
    assert exponent([1, math.e, math.e**2, math.e**3], [1, math.e**3, 1, 1]) == pytest.approx(-0.3)


@pytest.mark.parametrize(
    ("sizes", "costs", "why"),
    [
        ([], [], "two sizes"),
        ([5], [1], "two sizes"),
        ([5, 5], [1, 2], "two sizes"),
        ([1, 2], [0, 1], "math domain|positive"),
        ([1, 2], [1], "same number"),
    ],
)
def test_where_there_is_no_growth_none_is_claimed(sizes: list[float], costs: list[float], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        exponent(sizes, costs)
