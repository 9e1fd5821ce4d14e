"""What would decide the undecided, and what that costs: blocks, by the measured variation, and time."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence

from leadline.analysis.statistics.power import block_variation, smallest_difference
from leadline.store.journal import Event
from leadline.verdict.compared.learned import FEW_BLOCKS
from leadline.verdict.model import Comparison
from leadline.verdict.sections.answer import NextStep

_TRIED = (6, 12, 24)  # blocks
_TOLD = ((0.2, "a difference of 20 %"), (1.0, "a factor of 2"), (9.0, "a factor of 10"))  # small ones first


def block_seconds(events: Sequence[Event], trials_of_block: int) -> float | None:
    """How long a block took here, with all that surrounds its trials; None where no trial was finished."""
    spent_ns, done, before_ns = 0, 0, None
    for event in events:
        if event.event == "run_started":  # what lies between two sessions is nobody's time
            before_ns = event.t_ns
        if before_ns is not None:
            spent_ns, before_ns = spent_ns + max(event.t_ns - before_ns, 0), event.t_ns
        done += _finished(event)
    return spent_ns / 1e9 / done * trials_of_block if done and spent_ns else None


def finished_trials(events: Sequence[Event]) -> int:
    """How many trials came to their end."""
    return sum(map(_finished, events))


def _finished(event: Event) -> int:
    if event.event == "trials_finished":
        return len(event.details.get("trials", ()))
    return int(event.event == "trial_finished")


@functools.cache
def _needed(blocks: int, level: float) -> float:
    """How far apart two must be, in standard deviations of their log ratio, to be told apart."""
    found = smallest_difference(blocks, 1.0, level)
    return math.inf if found is None else math.log1p(found)


def blocks_that_tell(
    undecided: Sequence[Comparison], series: Mapping[Comparison, Sequence[float]]
) -> tuple[int, str] | None:
    """How many blocks tell how much in half of these comparisons: the least difference that some blocks tell.

    `series` are the log ratios of each comparison, block by block. None where even most blocks tell nothing.
    """
    known = [one for one in undecided if one in series]
    variations = sorted(found for one in known if (found := block_variation(series[one])) is not None)
    if not variations:
        return None
    variation, level = variations[len(variations) // 2], min(1 - one.confidence for one in known)
    tried = [blocks for blocks in _TRIED if blocks > max(one.blocks for one in known)]
    for difference, words in _TOLD:
        for blocks in tried:
            if _needed(blocks, round(level, 6)) * variation <= math.log1p(difference):
                return blocks, words
    return None


def more_blocks(
    undecided: Sequence[Comparison],
    series: Mapping[Comparison, Sequence[float]],
    seconds: float | None,
) -> NextStep | None:
    """What would decide what is undecided; None where nothing is. `seconds` is the time of a block."""
    if not undecided:
        return None
    blocks = max(one.blocks for one in undecided)
    if blocks < 2:
        text = f"a single block has no interval: run it with --blocks {FEW_BLOCKS}"
        return NextStep(text, None if seconds is None else seconds * FEW_BLOCKS)
    wanted = blocks_that_tell(undecided, series)
    if wanted is None:
        most = max(*_TRIED, blocks)
        text = f"even {most} blocks would tell no factor of 10 in most of what is undecided"
        return NextStep(f"{text}: first quieten what makes it vary")
    text = f"to tell {wanted[1]} in most of what is undecided: run it with --blocks {wanted[0]}"
    return NextStep(text, None if seconds is None else seconds * wanted[0])
