"""Ratios of few blocks, with intervals that rest on how much all cells of the study scatter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from leadline.analysis.statistics.means import Ratio
from leadline.verdict.comparisons.pair import Pair
from leadline.verdict.kinds import metric_kind

# Below this many blocks the interval is only as good as its assumptions: nothing can test them.
FEW_BLOCKS = 6


@dataclass(frozen=True)
class Learned:
    """A ratio with what its interval rests on, in words; `unlike` the others it keeps its own interval."""

    ratio: Ratio | None
    basis: str | None = None
    unlike: bool = False


def learn(pairs: Mapping[int, Pair]) -> dict[int, Learned]:
    """Those that can be learned of, by the keys of `pairs`: paired ratios over the same few blocks.

    Rates and percentiles are learned of apart: a percentile scatters otherwise.
    """
    from leadline.analysis.statistics.moderated import BLOCKS

    groups: dict[tuple[bool, tuple[int, ...]], dict[int, tuple[Pair, Ratio]]] = {}
    for key, pair in pairs.items():
        ratio = pair.ratio
        if ratio is not None and ratio.sides and len(ratio.blocks) in BLOCKS:
            group = groups.setdefault((metric_kind(pair.metric).asked, ratio.blocks), {})
            group[key] = (pair, ratio)
    return {
        key: learned
        for group in groups.values()
        for key, learned in zip(group, _of_group(list(group.values())), strict=True)
    }


def _of_group(pairs: Sequence[tuple[Pair, Ratio]]) -> list[Learned]:
    import numpy as np

    from leadline.analysis.statistics.moderated import moderate

    cells: dict[tuple[str, str, str], tuple[float, ...]] = {}
    ratios = [ratio for _, ratio in pairs]
    for pair, ratio in pairs:
        for name, side in zip((pair.base, pair.other), ratio.sides, strict=True):
            cells[pair.work, pair.metric, name] = side
    targets, bases = [pair.other for pair, _ in pairs], [_trial(pair) for pair, _ in pairs]
    found = moderate(
        np.array([ratio.logarithms for ratio in ratios]), targets, bases, np.array(list(cells.values()))
    )
    count = len({(work, name) for work, _, name in cells})
    return [
        Learned(
            replace(ratio, series=(found.means[at],)),
            _words(ratio.count, count, found.refused, unlike=at in found.unlike),
            at in found.unlike,
        )
        for at, ratio in enumerate(ratios)
    ]


def _trial(pair: Pair) -> str:
    """The trials that a ratio shares with others: operations of a work are measured in the same ones."""
    return f"{pair.base} {pair.work}"


def _words(blocks: int, cells: int, refused: str | None, *, unlike: bool) -> str | None:
    """What the intervals of few blocks rest on; None where that is what they always rest on."""
    few = f"{blocks} blocks: " if blocks < FEW_BLOCKS else ""
    if refused:
        return f"{assumption(blocks)} ({refused})" if few else None
    if unlike:
        return f"{few}scatters unlike the other cells: its interval rests on its own blocks"
    return f"{'few blocks' if few else f'{blocks} blocks'}: spread learned from all {cells} cells"


def assumption(blocks: int) -> str | None:
    """What the interval of a ratio's own blocks rests on, where that needs saying."""
    if blocks < 2:
        return "one block gives no interval"
    if blocks < FEW_BLOCKS:
        return (
            f"{blocks} blocks: rests on the assumption that ratios are lognormal and blocks hardly correlated"
        )
    return None
