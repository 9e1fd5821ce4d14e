"""The proof of a search's winner: fresh trials beside the default, in a result below the search's.

It is a proof as `leadline tune prove` makes it, with what the documents advise and what random search found
as further states: `leadline show DIR/proof` has all of it.

The plans of a search and of its proof: the same works, on the same files, in as many states as wanted.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from leadline.tuning.access.interface import same_value
from leadline.tuning.proving.proof import WITH, WITHOUT, as_manifest
from leadline.tuning.searching.request import SearchedSettings
from leadline.tuning.settings import SettingChange

if TYPE_CHECKING:
    from leadline.plan.model import Plan
    from leadline.run.model import RunRequest
    from leadline.store.reader import Result
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


ADVISED, RANDOM = "advised", "random"
BLOCKS_MIN, BLOCKS_MAX = 4, 16


def proof_states(result: Result, searched: SearchedSettings) -> dict[str, dict[str, str]]:
    """What is proved, by state; nothing where no proposal was seen to be better than the default.

    What would be measured twice, or is what is in force, is left out.
    """
    from leadline.analysis.proposing import best_proposal, judge_proposals
    from leadline.plan.model import Plan
    from leadline.run.session import grown_plan
    from leadline.verdict.searches import limits_of, observe_proposals

    plan = grown_plan(Plan.from_json(result.manifest["plan"]), result.events)
    proposals, seen = observe_proposals(result, plan)
    judged = judge_proposals(seen, limits_of(result.manifest))
    values = {one.name: dict(one.values) for one in proposals}
    winner = best_proposal(judged, "tpe")
    if winner is None:
        return {}
    found = {WITH: values[winner.seen.name]}
    chance = best_proposal(judged, "random")
    if chance is not None:
        found[RANDOM] = values[chance.seen.name]
    if searched.advised:
        found[ADVISED] = {**searched.default, **{name: one[0] for name, one in searched.advised.items()}}
    return {
        state: own
        for state, own in found.items()
        if state == WITH or not any(_same(own, other) for other in (found[WITH], searched.default))
    }


def _same(one: Mapping[str, str], other: Mapping[str, str]) -> bool:
    return all(same_value(value, other[name]) for name, value in one.items())


def proof_blocks(left_s: float, block_of_two_s: float, states: int) -> int:
    """As many as the time left permits, in pairs (A B B A)."""
    of_all_s = max(block_of_two_s / 2 * (states + 1), 0.1)
    return max(BLOCKS_MIN, min(BLOCKS_MAX, int(left_s / of_all_s) // 2 * 2))


def fresh_proof(
    request: RunRequest,
    manifest: Mapping[str, Any],
    searched: SearchedSettings,
    states: Mapping[str, Mapping[str, str]],
    blocks: int,
) -> tuple[RunRequest, dict[str, Any]]:
    """The run that proves it, and what its manifest says of it."""
    names = [WITHOUT, *states]
    reserve = dict.fromkeys(names, request.options.reserve_bytes[WITHOUT])
    fresh = replace(
        request,
        id=secrets.token_hex(4),
        plan=plan_of_states(request.plan, names, blocks, request.plan.seed + 1),
        facts=facts_of_states(request.facts, names),
        options=replace(request.options, reserve_bytes=reserve),
    )
    winner, proved = states[WITH], []
    for one in searched.settings:
        name = one.setting.name
        if not same_value(winner[name], searched.default[name]):
            change = SettingChange(name, one.change.place, winner[name], one.change.before)
            proved.append(replace(one, change=change))
    details = {
        **{name: manifest[name] for name in ("study", "host", "memory_bytes", "command")},
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        **as_manifest(tuple(proved)),
        "states": {state: dict(own) for state, own in states.items()},
    }
    return fresh, details
