"""Ratios and values with their confidence intervals are printed alike everywhere."""

from __future__ import annotations

from dataclasses import replace

import pytest

from leadline import units
from leadline.verdict.model import Comparison, Quantity
from leadline.verdict.sections import numbers

SLOWER = Comparison("ingest", "bandwidth", "local", "ceph", 1 / 5.06, 1 / 6.01, 1 / 4.23, 5, "slower")


@pytest.mark.parametrize(
    ("factor", "text"),
    [
        (1.0, "1.00x"),
        (1.08, "1.08x"),
        (1.3, "1.3x"),
        (1.314, "1.31x"),
        (1.996, "2.0x"),
        (5.06, "5.1x"),
        (9.96, "10x"),
        (75.3, "75x"),
        (1234, "1,200x"),
        (float("inf"), units.NO_VALUE),
    ],
)
def test_a_factor_has_the_digits_that_people_read(factor: float, text: str) -> None:
    assert units.format_times(factor) == text


def test_a_factor_and_its_interval_point_the_same_way() -> None:
    assert numbers.compared(SLOWER) == "5.1x slower (95 % CI 4.2 to 6.0, 5 blocks)"
    faster = replace(SLOWER, ratio=5.06, low=4.23, high=6.01, verdict="faster", confidence=0.9964)
    assert numbers.compared(faster) == "5.1x faster (99.64 % CI 4.2 to 6.0, 5 blocks)"


def test_what_is_neither_faster_nor_slower_keeps_the_interval_of_the_ratio() -> None:
    same = replace(SLOWER, ratio=0.99, low=0.97, high=1.02, verdict="same")
    assert numbers.compared(same) == "equivalent (95 % CI 0.970 to 1.02, 5 blocks)"
    open_ = replace(SLOWER, ratio=0.9, low=0.5, high=1.6, verdict="undecided")
    assert numbers.compared(open_) == "inconclusive (95 % CI 0.500 to 1.60, 5 blocks)"


def test_without_an_interval_the_reason_is_given() -> None:
    one = replace(SLOWER, low=None, high=None, blocks=1, verdict="undecided")
    assert numbers.compared(one) == "inconclusive (1 block: no CI)"
    noisy = replace(SLOWER, ratio=1.0, low=1e-5, high=1e5, blocks=2, verdict="undecided")
    assert numbers.compared(noisy) == "inconclusive (2 blocks: too noisy for a CI)"
    far = replace(SLOWER, ratio=0.01, low=1e-4, high=0.12)
    assert numbers.interval(far) == "95 % CI at least 8.3, 5 blocks"


@pytest.mark.parametrize(
    ("item", "text"),
    [
        (Quantity(550, "1/s", 510, 590, 5), "550 IOPS (95 % CI 510 to 590 IOPS, 5 blocks)"),
        (Quantity(2.0**20, "B/s", 2.0**19, 2.0**21, 3), "1 MiB/s (95 % CI 512 KiB/s to 2 MiB/s, 3 blocks)"),
        (Quantity(2e3, "ns", 1e3, 3e3, 3), "2.00 us (95 % CI 1.00 to 3.00 us, 3 blocks)"),
        (Quantity(550, "1/s", None, None, 1), "550 IOPS (1 block: no CI)"),
        (Quantity(550, "1/s", 1, 1e6, 2), "550 IOPS (2 blocks: too noisy for a CI)"),
        (Quantity(None, "1/s", reason="not finished in 1 s"), "not finished in 1 s"),
    ],
)
def test_a_value_has_its_interval_in_its_unit(item: Quantity, text: str) -> None:
    assert numbers.value(item) == text


def test_one_of_something_has_no_plural() -> None:
    assert [units.format_count(n, "operation") for n in (0, 1, 2, 1200)] == [
        "0 operations",
        "1 operation",
        "2 operations",
        "1,200 operations",
    ]
