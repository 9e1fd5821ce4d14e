"""The plans of a search and of its proof: the same works, on the same files, in as many states as wanted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from leadline.tuning.proving.proof import WITHOUT

if TYPE_CHECKING:
    from leadline.plan.model import Plan
    from leadline.study.target import TargetFacts


def plan_of_states(plan: Plan, states: Sequence[str], blocks: int, seed: int) -> Plan:
    """The works of `without` in these states: jobs know no state, so each state has the same.

    Without blocks it has no trial: they are added while it runs.
    """
    from leadline.plan.make import order_trials, states_of

    base = next(target for target in plan.targets if target.name == WITHOUT)
    own = [cell for cell in plan.cells if cell.target == WITHOUT]
    targets = tuple(replace(base, name=state, state=state) for state in states)
    cells = [
        replace(
            cell,
            id=f"{state}.{cell.id.removeprefix(f'{WITHOUT}.')}",
            target=state,
            group=None if cell.group is None else f"{state}.{cell.group.removeprefix(f'{WITHOUT}.')}",
        )
        for state in states
        for cell in own
    ]
    per_block = plan.seconds / max(plan.blocks, 1) / max(len(plan.targets), 1) * len(states)
    return replace(
        plan,
        blocks=blocks,
        seed=seed,
        targets=targets,
        cells=tuple(cells),
        trials=order_trials(cells, blocks, seed, states_of(targets)) if blocks else (),
        seconds=per_block * blocks,
        bytes_needed={state: plan.bytes_needed[WITHOUT] for state in states},
    )


def facts_of_states(facts: Mapping[str, TargetFacts], states: Sequence[str]) -> dict[str, TargetFacts]:
    """They are all the same place."""
    return dict.fromkeys(states, facts[WITHOUT])
