"""What more blocks would tell, where a comparison is undecided, and how long they take."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from leadline.analysis.statistics.means import Ratio
from leadline.analysis.statistics.power import smallest_difference
from leadline.units import format_duration
from leadline.verdict.model import Comparison, MoreBlocks, Statement

_STEPS = (6, 12, 24)
_WANTED = 0.2  # a difference that most would want to be told
LARGEST = 2.0  # differences beyond a factor of 3 need no more blocks to be seen
MOST_BLOCKS = _STEPS[-1]


def more_blocks(ratio: Ratio, level: float) -> MoreBlocks | None:
    """The fewest more blocks that tell a difference of 20 %, in four of five studies; else the most of them,
    and what these tell. None where blocks do not pair, or scatter too much.
    """
    if len(ratio.series) != 1 or not ratio.logarithms:
        return None
    variation = float(ratio.series[0].scale[0])
    found = None
    for more in _STEPS:
        tells = smallest_difference(ratio.count + more, variation, level)
        if tells is not None and tells <= LARGEST:
            found = MoreBlocks(more, tells)
        if found is not None and found.tells <= _WANTED:
            break
    return found


def more_statements(comparisons: Sequence[Comparison], block_s: float | None) -> Iterator[Statement]:
    """One sentence: what is undecided, and what it would take. `block_s` is how long a block took."""
    undecided = [one for one in comparisons if one.more is not None]
    if not undecided:
        return
    words = []
    for more in _STEPS:
        tells = [one.more.tells for one in undecided if one.more is not None and one.more.blocks == more]
        if tells:
            cost = f" in about {format_duration(60 * math.ceil(more * block_s / 60))}" if block_s else ""
            words.append(f"{more} more{cost} would tell {difference_words(max(tells))} in {len(tells)}")
    yield Statement(
        "caution",
        f"{len(undecided)} of {len(comparisons)} comparisons inconclusive, too few blocks:"
        f" {'; '.join(words)}.",
        tuple(
            f"{one.work} {one.metric}, {one.other}: {one.more.blocks} more blocks would tell"
            f" {difference_words(one.more.tells)}"
            for one in undecided
            if one.more is not None
        ),
        says="more_blocks_tell",
    )


def difference_words(difference: float) -> str:
    """Rounded up to a figure that is easily remembered: 3 %, 20 %, a factor of 2."""
    if difference > 0.95:
        return f"a factor of {math.ceil(2 * (1 + difference)) / 2:.3g}"
    step = 0.01 if difference < 0.1 else 0.05
    return f"{100 * math.ceil(difference / step - 1e-9) * step:.0f} %"
