"""Which way a figure went that a setting must move."""

from __future__ import annotations

import pytest

from leadline.analysis.statistics.means import paired_ratio
from leadline.verdict.model import Comparison
from leadline.verdict.proofs.detection import Mechanism, Moved, moved_figure, outcome_of_proof


@pytest.mark.parametrize(
    ("factor", "direction", "moved"),
    [
        (2.0, "up", "as meant"),
        (2.0, "down", "the other way"),
        (0.5, "down", "as meant"),
        (1.0, "up", "not"),
        (1.0, "down", "not"),
    ],
)
def test_a_figure_moves_as_meant_or_the_other_way_or_not(factor: float, direction: str, moved: str) -> None:
    base = [10.0, 10.1, 9.9, 10.05, 9.95]
    other = [factor * one for one in (10.1, 9.9, 10.0, 9.95, 10.05)]
    ratio = paired_ratio(base, other, (1, 2, 3, 4, 5))
    assert ratio is not None
    found = moved_figure(Mechanism("dial", "work", "figure", direction, "not seen"), ratio, 0.05, 0.05)
    assert (found.moved, found.blocks) == (moved, 5)


@pytest.mark.parametrize(
    ("other", "direction", "moved"),
    [
        ((30.0, 5.0, 20.0, 2.0), "up", "open"),  # it may have gone anywhere
        ((30.0, 5.0, 20.0, 2.0), "down", "open"),
        ((9.95, 9.7, 10.0, 9.65), "up", "not"),  # it may have gone down, and not up by more than the margin
        ((9.95, 9.7, 10.0, 9.65), "down", "open"),
    ],
)
def test_what_may_have_moved_is_open_and_not_said_to_stand(
    other: tuple[float, ...], direction: str, moved: str
) -> None:
    ratio = paired_ratio([10.0] * 4, other, (1, 2, 3, 4))
    assert ratio is not None
    found = moved_figure(Mechanism("dial", "work", "figure", direction, "not seen"), ratio, 0.05, 0.05)
    assert found.moved == moved


@pytest.mark.parametrize(
    ("moved", "outcome"),
    [
        (("not",), "not_by_mechanism"),
        (("the other way", "not seen"), "not_by_mechanism"),
        (("open",), "helps"),
        (("not", "open"), "helps"),
        (("not", "as meant"), "helps"),
        (("not seen",), "helps"),
    ],
)
def test_a_gain_is_called_beside_its_mechanism_only_where_that_is_known(
    moved: tuple[Moved, ...], outcome: str
) -> None:
    gained = Comparison("work", "iops", "without", "with", 2.0, 1.5, 2.5, 4, "faster")
    mechanisms = [Mechanism("dial", "work", "figure", "up", one) for one in moved]
    assert outcome_of_proof([gained], mechanisms) == outcome
    unseen = Mechanism("other", "work", "figure", "up", "not seen")  # of a set: it may have been this one
    assert outcome_of_proof([gained], [*mechanisms, unseen]) == "helps"
