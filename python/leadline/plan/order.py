"""The order of trials: seeded, block by block, and what stays together in a block."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

from leadline.plan.model import Plan, PlannedCell, Trial
from leadline.plan.sweeps import starting


def order_trials(cells: list[PlannedCell], blocks: int, seed: int) -> tuple[Trial, ...]:
    """Each block is one pass over all cells, in a random order of its own; a group's jobs stay together.

    Of a sweep the first block has the cells that it starts with; which follow, trials decide.
    """
    trials: list[Trial] = []
    start = starting(cells)
    for block in range(1, blocks + 1):
        own = [cell for cell in cells if cell.swept is None or (block == 1 and cell.id in start)]
        trials += _block(own, block, len(trials) + 1, seed)
    return tuple(trials)


def _block(cells: list[PlannedCell], block: int, first: int, seed: int) -> list[Trial]:
    shuffled = _units(cells)
    random.Random(f"{seed}:{block}").shuffle(shuffled)  # noqa: S311 - reproducible order, no secret
    trials = []
    for order, (cell, probe) in enumerate((one for unit in shuffled for one in unit), start=first):
        words = f"{seed}:{block}:{cell.id}" + (f":{probe}" if probe else "")
        own = random.Random(words).getrandbits(53)  # noqa: S311 - exact in JSON too
        trials.append(Trial(f"t{order:04d}", order, block, cell.id, cell.target, own, probe))
    return trials


def _units(cells: list[PlannedCell]) -> list[list[tuple[PlannedCell, int | None]]]:
    """What stays together in a block: a cell, the jobs of a group, the probes of a search."""
    found: dict[str, list[tuple[PlannedCell, int | None]]] = {}
    for cell in cells:
        unit = found.setdefault(f"group {cell.group}" if cell.group else cell.id, [])
        probes = range(1, cell.search.trials + 1) if cell.search else (None,)
        unit += [(cell, probe) for probe in probes]
    return list(found.values())


def with_block(plan: Plan, cells: Sequence[str]) -> Plan:
    """The plan with one more block, of these cells; a group runs whole. Numbers go on: ids stay unique."""
    groups = {cell.group for cell in plan.cells if cell.id in cells and cell.group}
    chosen = [cell for cell in plan.cells if cell.id in cells or cell.group in groups]
    block = max((trial.block for trial in plan.trials), default=0) + 1
    return replace(plan, trials=(*plan.trials, *_block(chosen, block, len(plan.trials) + 1, plan.seed)))
