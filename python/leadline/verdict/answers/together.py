"""How a target does over all works taken together: one comparison, where each work alone leaves it undecided.

Works are many and blocks are few: what decides twenty comparisons at once asks more of each than one that
is asked alone. Of each block the works' logarithmic ratios are averaged, so that works of any rate count
alike; these means, one a block, are compared as any figure is (`analysis.statistics.means`). It says nothing
of any one work.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from leadline.analysis.cells import CellTable
from leadline.analysis.statistics.means import paired_ratio
from leadline.verdict.model import UNUSABLE
from leadline.verdict.sections.answer import AskedFigure

WORKS_MIN = 6
BLOCKS_MIN = 3


@dataclass(frozen=True)
class Together:
    """Over so many works `target` is better than the base, or worse; `factor` is what is certain of it."""

    target: str
    works: int
    better: bool
    factor: float


def together(
    figures: Sequence[AskedFigure], base: str, tables: Mapping[str, CellTable], alpha: float
) -> tuple[Together, ...]:
    """Each target that is told apart from `base` so, though most of its works are not by themselves.

    `alpha` is shared by the targets that are asked about.
    """
    anchors = {(one.work, one.metric): one for one in figures if one.target == base}
    rows: dict[str, list[tuple[AskedFigure, AskedFigure]]] = {}
    for one in figures:
        anchor = anchors.get((one.work, one.metric))
        if one.target != base and anchor and _counts(one) and _counts(anchor):
            rows.setdefault(one.target, []).append((anchor, one))
    asked = {target: pairs for target, pairs in rows.items() if _is_open(pairs)}
    found = [_over_all(target, pairs, tables, alpha / len(asked)) for target, pairs in asked.items()]
    return tuple(one for one in found if one)


def _counts(figure: AskedFigure) -> bool:
    return figure.leads and figure.quantity.value is not None and figure.state not in UNUSABLE


def _is_open(pairs: Sequence[tuple[AskedFigure, AskedFigure]]) -> bool:
    undecided = sum(one.comparison is None or one.comparison.verdict == "undecided" for _, one in pairs)
    return len(pairs) >= WORKS_MIN and 2 * undecided > len(pairs)


def _over_all(
    target: str,
    pairs: Sequence[tuple[AskedFigure, AskedFigure]],
    tables: Mapping[str, CellTable],
    alpha: float,
) -> Together | None:
    sides = [[_by_block(one, tables) for one in side] for side in zip(*pairs, strict=True)]
    blocks = sorted(set.intersection(*(set(values) for side in sides for values in side)))
    if len(blocks) < BLOCKS_MIN:
        return None
    means = [[_mean([values[block] for values in side]) for block in blocks] for side in sides]
    ratio = paired_ratio(means[0], means[1], blocks)
    estimate = ratio.estimate(alpha) if ratio else None
    if (
        estimate is None
        or estimate.low is None
        or estimate.high is None
        or estimate.low <= 1 <= estimate.high
    ):
        return None
    better = estimate.low > 1
    return Together(target, len(pairs), better, estimate.low if better else 1 / estimate.high)


def _by_block(figure: AskedFigure, tables: Mapping[str, CellTable]) -> dict[int, float]:
    """A cell's figure in each block, as more is better; nothing of a block without one."""
    table = tables.get(figure.cell)
    values = {
        block: measured.values[figure.metric]
        for block, measured in (table.by_block.items() if table else ())
        if measured.values.get(figure.metric, 0) > 0
    }
    return values if figure.higher_is_better else {block: 1 / value for block, value in values.items()}


def _mean(values: Sequence[float]) -> float:
    return math.exp(math.fsum(map(math.log, values)) / len(values))
