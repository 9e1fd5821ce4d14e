"""Which way a figure went that a setting must move."""

from __future__ import annotations

import pytest

from leadline.analysis.statistics.means import paired_ratio
from leadline.verdict.proved.found import Mechanism, _moved


@pytest.mark.parametrize(
    ("factor", "direction", "moved"),
    [(2.0, "up", "as meant"), (2.0, "down", "the other way"), (0.5, "down", "as meant"), (1.0, "up", "not")],
)
def test_a_figure_moves_as_meant_or_the_other_way_or_not(factor: float, direction: str, moved: str) -> None:
    base = [10.0, 10.1, 9.9, 10.05, 9.95]
    other = [factor * one for one in (10.1, 9.9, 10.0, 9.95, 10.05)]
    ratio = paired_ratio(base, other, (1, 2, 3, 4, 5))
    assert ratio is not None
    found = _moved(Mechanism("dial", "work", "figure", direction, "not seen"), ratio, 0.05)
    assert (found.moved, found.blocks) == (moved, 5)
