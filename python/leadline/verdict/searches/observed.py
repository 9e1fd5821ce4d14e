"""What a search has measured of its proposals, from its stored trials, for `proposing`."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from leadline.analysis.cells import CellTable
from leadline.analysis.proposing import ProposalSeen, SearchLimits
from leadline.errors import ResultError
from leadline.plan.model import Plan
from leadline.store.own import StoredProposal, read_proposals
from leadline.store.reader import Result
from leadline.store.tables import TrialRow
from leadline.verdict.comparisons.comparisons import asked_metrics
from leadline.verdict.inputs import tables_of
from leadline.verdict.kinds import metric_kind

WITHOUT = "without"


def limits_of(manifest: Mapping[str, Any]) -> SearchLimits:
    """How far a stored search goes. Raises ResultError."""
    try:
        said = manifest["search"]["limits"]
        return SearchLimits(int(said["blocks"]), said["proposals"])
    except (KeyError, TypeError, ValueError) as error:
        raise ResultError(f"what the result says of its search is damaged: {error}", "restore it") from None


def observe_proposals(
    result: Result, plan: Plan
) -> tuple[tuple[StoredProposal, ...], tuple[ProposalSeen, ...]]:
    """Every proposal as it is stored, and what was measured of it."""
    proposals, tables = read_proposals(result.path), tables_of(result, plan)
    bounds = result.manifest["search"]["bounds"]
    return proposals, tuple(_seen(one, plan, tables, bounds) for one in proposals)


def _seen(
    one: StoredProposal, plan: Plan, tables: Mapping[str, CellTable], bounds: Mapping[str, float]
) -> ProposalSeen:
    cells = [cell for cell in plan.cells if cell.target == one.state]
    tried = [block for block in one.blocks if any(_in_block(tables.get(cell.id), block) for cell in cells)]
    found = {block: gain for block in tried if (gain := _gain(one, plan, tables, block)) is not None}
    over: float | None = None
    ended = one.ended
    for metric, bound in bounds.items():
        values = [value for block in found for value in _figures(cells, tables, block, metric)]
        if values:
            over = max(over or 0.0, *(value / bound for value in values))
        elif found and not ended:
            ended = f"its {metric} was not seen: too few operations in a trial"
    return ProposalSeen(one.name, one.side, tuple(found.values()), len(tried), over, ended)


def _in_block(table: CellTable | None, block: int) -> bool:
    return table is not None and any(trial.block == block for trial in table.trials)


def _gain(one: StoredProposal, plan: Plan, tables: Mapping[str, CellTable], block: int) -> float | None:
    """The mean logarithm of what the works are asked for, proposal over default; None where one lacks."""
    found = []
    for cell in plan.cells:
        if cell.target != one.state:
            continue
        sides = [tables.get(f"{state}.{cell.work}") for state in (WITHOUT, one.state)]
        if not all(side is not None and _held(side.trials, block) for side in sides):
            return None
        for metric in asked_metrics(cell):
            values = [
                side.by_block[block].values.get(metric) for side in sides if side and block in side.by_block
            ]
            if len(values) < len(sides) or not all(values):
                return None
            gain = math.log((values[1] or 1.0) / (values[0] or 1.0))
            found.append(gain if metric_kind(metric).higher_is_better else -gain)
    return sum(found) / len(found) if found else None


def _held(trials: Sequence[TrialRow], block: int) -> bool:
    """Whether everything was in force around each trial of the block."""
    for trial in trials:
        if trial.block != block:
            continue
        said: Mapping[str, Any] = json.loads(trial.states) if trial.states else {}
        reads = [read for moment in ("before", "after") for read in said.get(moment, {}).values()]
        if trial.state != "complete" or any(read["found"] != read["wanted"] for read in reads):
            return False
    return True


def _figures(cells: Sequence[Any], tables: Mapping[str, CellTable], block: int, metric: str) -> list[float]:
    """A latency of all directions of all works; what lacks in one is in none."""
    found = []
    for cell in cells:
        table = tables.get(cell.id)
        values = table.by_block[block].values if table is not None and block in table.by_block else {}
        own = [value for name, value in values.items() if name == metric or name.endswith(f"_{metric}")]
        if not own:
            return []
        found += own
    return found


def figures_in(result: Result, plan: Plan, state: str, metric: str) -> list[float]:
    """A latency of all works in a state, in every block."""
    tables = tables_of(result, plan)
    cells = [cell for cell in plan.cells if cell.target == state]
    blocks = sorted({block for cell in cells if cell.id in tables for block in tables[cell.id].by_block})
    return [value for block in blocks for value in _figures(cells, tables, block, metric)]
