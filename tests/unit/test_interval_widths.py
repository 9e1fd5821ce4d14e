"""Half widths of intervals: what lies beyond them is what was asked, for any series."""

from __future__ import annotations

import numpy as np
import pytest

from leadline.analysis.statistics.intervals import mean_of_blocks


@pytest.mark.parametrize("alpha", [0.5, 0.05, 1e-5])
@pytest.mark.parametrize("blocks", [2, 3, 5, 30])
def test_as_much_lies_beyond_as_was_asked(blocks: int, alpha: float) -> None:
    """Of independent series, of walks, and of very large and very small values."""
    chance = np.random.default_rng(blocks)
    rows = chance.normal(100, 5, (60, blocks))
    rows[:20] = np.cumsum(rows[:20], axis=1)
    rows[20] *= 1e9
    rows[21] *= 1e-9
    found = mean_of_blocks(rows)
    assert found.beyond(found.half_width(alpha)) == pytest.approx(np.full(60, alpha), rel=1e-8)


def test_a_series_that_does_not_vary_has_no_width() -> None:
    found = mean_of_blocks([[3.0] * 5, [0.0] * 5, [1.0, 2.0, 3.0, 4.0, 5.0]])
    assert list(found.half_width(0.05)[:2]) == [0.0, 0.0]
    assert found.half_width(0.05)[2] > 0
