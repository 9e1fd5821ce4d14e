"""What the planned blocks can find: the part of `leadline plan` that needs statistics."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from leadline.errors import UsageError
from leadline.units import format_duration

if TYPE_CHECKING:
    from leadline.analysis.cells import CellTable
    from leadline.plan.model import Plan
    from leadline.study.study import Study
    from leadline.verdict.comparisons.stopping import PlannedLevel

# Stated, not measured: about what ratios on memory, of random and of sequential disk I/O vary by.
ASSUMED_VARIATIONS = (0.02, 0.10, 0.25)
_WANTED = 0.1  # a difference that many would want to find
_NO_USE_ABOVE = 10.0  # a difference by more than ten times is no finding of statistics


def power_lines(plan: Plan, like: Path | None, metrics: tuple[str, ...]) -> tuple[str, ...]:
    """Sentences on the smallest difference, from assumed variations or those of the result `like`."""
    if plan.blocks < 2:
        return ("one block finds no difference: there is no interval",)
    from leadline.verdict.comparisons.stopping import planned_level

    asked = planned_level(plan, metrics)
    count = asked.comparisons
    half = ", half of which differ" if count > 1 else ""
    blocks = f"{plan.blocks} blocks, {count} comparison{'' if count == 1 else 's'}{half}"
    if like is None:
        found = [
            f"{_difference(plan, v, asked)} where ratios vary by {v:.0%} from block to block"
            for v in ASSUMED_VARIATIONS
        ]
        return (
            f"smallest difference found in 4 of 5 studies ({blocks}): {'; '.join(found)}"
            " (assumed; --like RESULT takes measured variation)",
        )
    measured = _measured(plan, like, metrics)
    return (
        f"smallest difference found in 4 of 5 studies ({blocks}), with the variation of {like}:",
        *(
            f"  {work}: {_difference(plan, variation, asked)} (ratios vary by {variation:.1%};"
            f" {_blocks_for(variation, asked.level)})"
            for work, variation in measured.items()
        ),
    )


def enough_lines(study: Study) -> tuple[str, ...]:
    """When blocks are added to those that are planned."""
    if study.enough is None:
        return ()
    tells, within = study.enough.tells, format_duration(study.enough.within / 1e9)
    return (
        f"blocks are added where the {study.blocks} planned ones would not tell {tells:.0%} in most"
        f" comparisons, and as many as do end within {within}; --blocks {study.blocks} keeps it at these",
    )


def _difference(plan: Plan, variation: float, asked: PlannedLevel) -> str:
    from leadline.analysis.statistics.moderated import (
        BLOCKS,
        smallest_difference,
        smallest_learned_difference,
    )

    found = None
    if plan.blocks in BLOCKS:
        targets = len(plan.targets)
        found = smallest_learned_difference(plan.blocks, variation, asked.level, targets, asked.ratios)
    found = found or smallest_difference(plan.blocks, variation, asked.level)
    if found is None or found > _NO_USE_ABOVE:
        return f"none below {_NO_USE_ABOVE:.0f} times"
    return f"{found:.1%}" if found < 0.1 else f"{found:.0%}"


def _blocks_for(variation: float, level: float) -> str:
    from leadline.analysis.statistics.moderated import blocks_for

    found = blocks_for(_WANTED, variation, level)
    return f"{_WANTED:.0%} takes {found} blocks" if found else f"{_WANTED:.0%} takes more than 100 blocks"


def _measured(plan: Plan, like: Path, metrics: tuple[str, ...]) -> Mapping[str, float]:
    """By work: the largest variation of the ratios of what it is asked for, or of the figures themselves
    where the result has one target.
    """
    from leadline.analysis.statistics.moderated import block_variation
    from leadline.plan.model import Plan as StoredPlan
    from leadline.store.reader import open_result, require_cells

    result = open_result(like)
    require_cells(like, result.manifest)
    stored = StoredPlan.from_json(result.manifest["plan"])
    works = dict.fromkeys(cell.work for cell in plan.cells)
    found: dict[str, float] = {}
    for work, logarithms in _series(stored, like, metrics):
        variation = block_variation(logarithms)
        if work in works and variation is not None:
            found[work] = max(variation, found.get(work, 0.0))
    if not found:
        raise UsageError(
            f"--like {like}: it has no work of this study in two blocks or more",
            f"name a result with some of: {', '.join(works)}",
        )
    return found


def _series(stored: Plan, like: Path, metrics: tuple[str, ...]) -> Iterator[tuple[str, list[float]]]:
    from leadline.store.reader import open_result
    from leadline.verdict.comparisons.comparisons import asked_metrics
    from leadline.verdict.inputs import tables_of

    tables = tables_of(open_result(like), stored)
    base = stored.targets[0].name
    alone = len(stored.targets) == 1
    anchors = {cell.work: cell for cell in stored.cells if cell.target == base}
    for cell in stored.cells:
        if cell.id not in tables or (cell.target == base and not alone):
            continue
        anchor = tables.get(anchors[cell.work].id)
        for metric in asked_metrics(cell, metrics):
            own = _positive(tables[cell.id], metric)
            if alone or anchor is None:
                # Two targets that vary alike and apart from each other: their ratio varies more, by root two.
                yield cell.work, [math.sqrt(2) * math.log(value) for _, value in sorted(own.items())]
                continue
            others = _positive(anchor, metric)
            yield (
                cell.work,
                [math.log(own[block] / others[block]) for block in sorted(own) if block in others],
            )


def _positive(table: CellTable, metric: str) -> dict[int, float]:
    """By block, where there is a value to take the logarithm of."""
    found = {block: measured.values.get(metric, 0.0) for block, measured in table.by_block.items()}
    return {block: value for block, value in found.items() if value > 0}
