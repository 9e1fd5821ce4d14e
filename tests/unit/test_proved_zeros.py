"""Figures that a setting brings to nothing or from nothing, and what is no mechanism."""

from __future__ import annotations

import math

import pytest

from leadline.analysis.statistics.means import paired_ratio
from leadline.verdict.proofs.detection import Mechanism, _waited, moved_figure
from leadline.verdict.proofs.effects import (
    WITH,
    WITHOUT,
    StatesDesign,
    ZeroRatio,
    contrast_of_figures,
    zero_ratio,
)
from leadline.verdict.proofs.messages import mechanism_sentence

DESIGN = StatesDesign("together", {WITHOUT: frozenset(), WITH: frozenset({"dial"})}, ("dial",))
SOME, NONE = [5.0, 6.0, 5.5, 5.2], [0.0, 0.0, 0.0, 0.0]


def moved(base: list[float], other: list[float], direction: str) -> Mechanism:
    sides = [{block: {"figure": value} for block, value in enumerate(side, 1)} for side in (base, other)]
    ratio = contrast_of_figures(DESIGN, "dial", {WITHOUT: sides[0], WITH: sides[1]}, "figure")
    assert ratio is not None
    return moved_figure(Mechanism("dial", "work", "figure", direction, "not seen"), ratio, 0.05, 0.05)


@pytest.mark.parametrize(
    ("base", "other", "direction", "went", "says"),
    [
        (SOME, NONE, "down", "as meant", "did: ratio 0 (CI at most"),
        (SOME, NONE, "up", "the other way", "went the other way: ratio 0 (CI"),
        (NONE, SOME, "up", "as meant", "did: from zero in 4 blocks."),
        (NONE, SOME, "down", "the other way", "went the other way: from zero"),
        (
            [0.0, 0.1, 0.0, 0.0],
            [0.0, 0.0, 0.1, 0.0],
            "down",
            "open",
            "whether it did is open: ratio 1 (CI unbounded)",
        ),
    ],
)
def test_what_goes_to_nothing_moved(
    base: list[float], other: list[float], direction: str, went: str, says: str
) -> None:
    found = moved(base, other, direction)
    assert found.moved == went
    assert says in mechanism_sentence(found)


def test_the_interval_holds_the_ratio_of_the_means_and_shrinks_with_its_level() -> None:
    found = zero_ratio([4.0, 5.0, 6.0, 5.0], [0.0, 1.0, 2.0, 1.0])
    assert found is not None
    wide, narrow = found.estimate(0.01), found.estimate(0.2)
    assert wide.value == pytest.approx(0.2)
    assert wide.low is not None
    assert narrow.low is not None
    assert wide.low <= narrow.low <= 0.2
    assert 0 <= found.p_value() < 0.05


@pytest.mark.parametrize(
    ("base", "other"), [(NONE, NONE), ([1.0], [0.0]), ([1.0, 2.0], [0.0]), ([-1.0, 1.0], [0.0, 0.0])]
)
def test_of_nothing_and_of_what_is_no_amount_nothing_is_told(base: list[float], other: list[float]) -> None:
    assert zero_ratio(base, other) is None


def test_without_zeros_ratios_of_blocks_are_told_as_before() -> None:
    ratio = paired_ratio(SOME, SOME[::-1])
    found = moved(SOME, SOME[::-1], "up")
    assert ratio is not None
    assert found.ratio == ratio.value
    assert not isinstance(ratio, ZeroRatio)
    assert found.ratio != math.inf


def test_what_waited_is_counted_for_each_byte_so_that_a_faster_work_is_not_blamed() -> None:
    slow = _waited({"client_blocked_per_s": 100.0, "bytes_per_s": 100.0})
    fast = _waited({"client_blocked_per_s": 1000.0, "bytes_per_s": 10000.0})
    assert fast["client_blocked_per_s"] < slow["client_blocked_per_s"]
    assert _waited({"client_blocked_per_s": None, "bytes_per_s": 1.0}) == {}
