"""What would decide the undecided, and what that costs: blocks, and their time."""

from __future__ import annotations

from collections.abc import Sequence

from leadline.verdict.compared.learned import FEW_BLOCKS
from leadline.verdict.compared.more_blocks import LARGEST, MOST_BLOCKS, difference_words
from leadline.verdict.model import Comparison
from leadline.verdict.sections.answer import NextStep


def wider(undecided: Sequence[Comparison], seconds: float | None) -> NextStep | None:
    """What would decide most of it; None where nothing is undecided. `seconds` is the time of a block."""
    if not undecided:
        return None
    blocks = max(one.blocks for one in undecided)
    if blocks < 2:
        text = f"a single block has no interval: run it with --blocks {FEW_BLOCKS}"
        return NextStep(text, None if seconds is None else seconds * FEW_BLOCKS)
    ranked = sorted((one.more for one in undecided if one.more), key=lambda more: (more.tells, more.blocks))
    half = (len(undecided) - 1) // 2
    if half >= len(ranked):
        factor = difference_words(LARGEST)
        text = f"even {MOST_BLOCKS} more blocks would not detect {factor} in most inconclusive comparisons"
        return NextStep(f"{text}: first quieten what makes it vary")
    wanted = max(one.blocks for one in ranked[: half + 1]) + blocks
    text = f"to detect {difference_words(ranked[half].tells)} in most inconclusive comparisons"
    return NextStep(f"{text}: run it with --blocks {wanted}", None if seconds is None else seconds * wanted)
