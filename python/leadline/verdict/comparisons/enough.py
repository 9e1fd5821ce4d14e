"""How many blocks a study needs to tell the difference it asks for, by how much its first ones scatter.

The first blocks are a pilot that counts: only their scatter is looked at, around their own mean, never how
far apart two targets are. So what is found later is hardly more often wrong. Source: Wittes and Brittain,
"The role of internal pilot studies in increasing the efficiency of clinical trials", Statistics in Medicine 9
(1990); what it costs here by simulation, in `docs/statistics.md`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from leadline.analysis.cells import CellTable
from leadline.analysis.statistics.multiplicity import ALPHA
from leadline.analysis.statistics.power import block_variation, blocks_for
from leadline.plan.model import Plan
from leadline.verdict.comparisons.comparisons import (
    PRIMARY_WEIGHT,
    pair_beside,
    pair_targets,
    wanted_metrics,
    weight_of,
)
from leadline.verdict.comparisons.stopping import MOST_BLOCKS
from leadline.verdict.model import State


@dataclass(frozen=True)
class PlannedLevel:
    """The level of what works are asked for where half of the comparisons differ, and how many there are:
    `comparisons` of all metrics, `ratios` of what is asked for, of each of the other targets.
    """

    level: float
    comparisons: int
    ratios: int


def planned_level(plan: Plan, metrics: Sequence[str]) -> PlannedLevel:
    """At which level a plan's comparisons will be decided, before anything is measured."""
    others = max(len(plan.targets) - 1, 1)
    cells = [cell for cell in plan.cells if cell.target == plan.targets[0].name]
    weights = [weight_of(metric) for cell in cells for metric in metrics or wanted_metrics(cell)]
    whole, count = sum(weights) * others, len(weights) * others
    level = min(ALPHA, max(weights, default=1.0) * max(count / 2, 1.0) * ALPHA / max(whole, 1.0))
    return PlannedLevel(level, count, weights.count(max(weights, default=1.0)))


def enough_blocks(
    plan: Plan, tables: Mapping[str, CellTable], base: str, metrics: Sequence[str], tells: float
) -> int | None:
    """How many blocks tell a difference of `tells` (0.2: 20 %) in half of what is asked for.

    Only the planned blocks are looked at, so that the answer stays when others have been added. None where
    nothing is compared, or more than MOST_BLOCKS would be needed.
    """
    first = {name: _first_blocks(table, plan.blocks) for name, table in tables.items()}
    states: dict[str, State] = {cell.id: "VALID" for cell in plan.cells}
    pairs = (
        *pair_targets(plan.cells, first, states, base, metrics),
        *pair_beside(plan.cells, first, states, metrics),
    )
    asked = [pair.ratio for pair in pairs if pair.ratio and (metrics or pair.weight == PRIMARY_WEIGHT)]
    variations = sorted(v for ratio in asked if (v := block_variation(ratio.logarithms)) is not None)
    if not variations:
        return None
    level = planned_level(plan, metrics).level
    return blocks_for(tells, variations[(len(variations) - 1) // 2], level, MOST_BLOCKS)


def _first_blocks(table: CellTable, blocks: int) -> CellTable:
    return replace(table, by_block={at: found for at, found in table.by_block.items() if at <= blocks})
