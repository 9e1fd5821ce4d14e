"""The order of trials: seeded, block by block, and what stays together in a block."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from leadline.plan.model import Plan, PlannedCell, Trial
from leadline.plan.sweeps import starting
from leadline.study.target import Target


def order_trials(
    cells: list[PlannedCell], blocks: int, seed: int, states: Mapping[str, str] | None = None
) -> tuple[Trial, ...]:
    """Each block is one pass over all cells, in a random order of its own; a group's jobs stay together.

    `states` are those of targets by name. To enter one costs time, so the cells of a state stand together;
    every second block has the states of the one before in reverse (A B B A): a steady drift of the system
    falls on all of them alike, and two blocks meet in the same state.

    Of a sweep the first block has the cells that it starts with; which follow, trials decide.
    """
    trials: list[Trial] = []
    start = starting(cells)
    for block in range(1, blocks + 1):
        own = [cell for cell in cells if cell.swept is None or (block == 1 and cell.id in start)]
        trials += _block(own, block, len(trials) + 1, seed, states or {})
    return tuple(trials)


def state_order(states: Iterable[str], block: int, seed: int) -> list[str]:
    """The states of a block in their order: drawn for the odd ones, reversed in the even ones after them."""
    found = list(dict.fromkeys(states))
    pair = (block + 1) // 2
    random.Random(f"{seed}:states:{pair}").shuffle(found)  # noqa: S311 - reproducible order, no secret
    return found if block % 2 else found[::-1]


def _block(
    cells: list[PlannedCell], block: int, first: int, seed: int, states: Mapping[str, str]
) -> list[Trial]:
    shuffled = _units(cells)
    random.Random(f"{seed}:{block}").shuffle(shuffled)  # noqa: S311 - reproducible order, no secret
    if states:
        ranks = {state: at for at, state in enumerate(state_order(states.values(), block, seed))}
        shuffled.sort(key=lambda unit: ranks.get(states.get(unit[0][0].target, ""), -1))
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
    more = _block(chosen, block, len(plan.trials) + 1, plan.seed, states_of(plan.targets))
    return replace(plan, trials=(*plan.trials, *more))


def states_of(targets: Iterable[Target]) -> dict[str, str]:
    """The states of targets that have one, by the targets' names."""
    return {target.name: target.state for target in targets if target.state is not None}
