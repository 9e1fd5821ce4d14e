"""What a search measures next, from what it has measured: the one step that a lab and a simulation share.

Decides between the blocks of a search which proposal is measured next, and stores it before that.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from leadline.analysis.proposing import (
    NextProposal,
    ProposalJudged,
    ProposalSeen,
    SearchLimits,
    judge_proposals,
    next_proposal,
)
from leadline.store.own import StoredProposal, read_proposals, write_proposals
from leadline.tuning.searching.sampler import SamplerKind, TriedProposal, propose
from leadline.tuning.searching.space import SearchDimension

if TYPE_CHECKING:
    from leadline.plan.model import Plan
    from leadline.run.model import Growth, RunOptions
    from leadline.store.journal import Event
    from leadline.store.own import StoredProposal


SETTLE_S = 1.5  # to bring one state about, before one was: values, readings, a new client


class ProposalBook:
    """The proposals of a result, for the states that try them: read from the file, the only record."""

    def __init__(
        self,
        path: Path,
        advised: Mapping[str, tuple[str, str]],
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._path, self._advised, self._say = path, advised, say

    def values_of(self, state: str) -> Mapping[str, str]:
        """Of the newest proposal that is measured as this state; none of the default."""
        own = [one for one in read_proposals(self._path) if one.state == state]
        return own[-1].values if own else {}

    def ours(self, name: str) -> Sequence[str]:
        """Every value of a setting that this search has set, or may set in its proof."""
        found = [one.values[name] for one in read_proposals(self._path) if name in one.values]
        return [*found, *([self._advised[name][0]] if name in self._advised else [])]

    def ended(self, state: str, why: str) -> None:
        """Nothing more may be measured of the newest proposal of this state."""
        self._say(f"put back: {why}")
        found = list(read_proposals(self._path))
        at = max(place for place, one in enumerate(found) if one.state == state)
        found[at] = replace(found[at], ended=why)
        write_proposals(self._path, found)


@dataclass(frozen=True)
class ProofValues:
    """The states of a proof, by name; which values are ours the `book` of the search says."""

    states: Mapping[str, Mapping[str, str]]
    book: ProposalBook
    say: Callable[[str], None]

    def values_of(self, state: str) -> Mapping[str, str]:
        """None of the default."""
        return self.states.get(state, {})

    def ours(self, name: str) -> Sequence[str]:
        """As in the search."""
        return self.book.ours(name)

    def ended(self, state: str, why: str) -> None:
        """Said; the trial itself is INVALID, as its settings were not in force."""
        self.say(f"put back in the proof, in state {state}: {why}")


@dataclass(frozen=True)
class SearchTime:
    """The wall time of a search: `proof_s` of the `budget_s` are the proof's at least, and so is what a proof
    of `proof_blocks` takes, whose blocks have `states` beside the default."""

    budget_s: float
    proof_s: float
    proof_blocks: int
    states: int

    def search_s(self, block_s: float) -> float:
        """What is left for the search, where a block of two states takes so long."""
        return self.budget_s - max(self.proof_s, self.proof_blocks * block_s / 2 * (self.states + 1))


def make_search_growth(
    path: Path, course: SearchCourse, time: SearchTime, say: Callable[[str], None] = lambda _: None
) -> Growth:
    """Names the cells of the next block; none when the search's time is over, or nothing is left."""

    def grow(plan: Plan, options: RunOptions) -> Sequence[str]:
        del options
        from leadline.analysis.duration import spent_s
        from leadline.store.reader import open_result
        from leadline.verdict.searches import observe_proposals

        result = open_result(path)
        last = max((trial.block for trial in plan.trials), default=0)
        proposals, seen = observe_proposals(result, plan)
        proposals = tuple(known_blocks(one, last) for one in proposals)
        one_s = block_s(plan, result.events)
        if proposals and spent_s(result.events) + one_s > time.search_s(one_s):
            return ()
        found = next_block(course, proposals, seen, last + 1)
        if found is None:
            return ()
        write_proposals(path, found[0])
        one = next(one for one in found[0] if one.name == found[1])
        say(f"{one.name} ({one.side}): {', '.join(f'{name}={value}' for name, value in one.values.items())}")
        return [cell.id for cell in plan.cells if cell.target in ("without", one.state)]

    return grow


def known_blocks(one: StoredProposal, last: int) -> StoredProposal:
    """Without a block that was stored just before a crash, and never began."""
    return replace(one, blocks=tuple(block for block in one.blocks if block <= last))


def block_s(plan: Plan, events: Sequence[Event]) -> float:
    """How long a block of two states takes: as the blocks until now, the first as planned."""
    begun = [event.t_ns / 1e9 for event in events if event.event == "block_added"]
    if len(begun) > 1:
        return median(after - before for before, after in itertools.pairwise(begun))
    return planned_block_s(plan)


def planned_block_s(plan: Plan) -> float:
    """What one block of the default and one proposal takes, by the plan."""
    from leadline.plan.model import TRIAL_OVERHEAD_S

    one = sum(cell.seconds + TRIAL_OVERHEAD_S for cell in plan.cells if cell.target == "without")
    return 2 * (one + SETTLE_S)


# Two states in turns: proposals that follow each other differ in their state's name, so that it is entered.
STATES = ("odd", "even")
SIDES: tuple[SamplerKind, ...] = ("tpe", "random")


@dataclass(frozen=True)
class SearchCourse:
    """What a search was asked for, as far as its course depends on it. `sides`: whose samplers propose."""

    space: tuple[SearchDimension, ...]
    default: Mapping[str, str]
    sides: tuple[SamplerKind, ...]
    limits: SearchLimits
    seed: int

    def as_json(self) -> dict[str, Any]:
        """What the manifest keeps beside the settings."""
        limits = {"blocks": self.limits.blocks, "proposals": self.limits.proposals}
        return {"sides": list(self.sides), "limits": limits, "seed": self.seed}


def next_block(
    course: SearchCourse, proposals: Sequence[StoredProposal], seen: Sequence[ProposalSeen], block: int
) -> tuple[tuple[StoredProposal, ...], str] | None:
    """All proposals with what block `block` measures, and the name of that; None where nothing is left."""
    judged = judge_proposals(seen, course.limits)
    sides = list(course.sides)
    while sides and (wanted := next_proposal(judged, sides, course.limits)) is not None:
        if wanted.again is not None:
            found = tuple(
                replace(one, blocks=(*one.blocks, block)) if one.name == wanted.again else one
                for one in proposals
            )
            return found, wanted.again
        if (made := _made(course, proposals, judged, wanted, block)) is not None:
            return (*proposals, made), made.name
        sides.remove(wanted.side)  # type: ignore[arg-type]
    return None


def _made(
    course: SearchCourse,
    proposals: Sequence[StoredProposal],
    judged: Sequence[ProposalJudged],
    wanted: NextProposal,
    block: int,
) -> StoredProposal | None:
    """A new proposal; None where the space has none left. Each side knows its own proposals alone."""
    own = [
        tried_of(one, of) for one, of in zip(proposals, judged, strict=True) if of.seen.side == wanted.side
    ]
    kind: SamplerKind = "random" if wanted.side == "random" else "tpe"
    values = propose(course.space, course.default, own, kind, course.seed)
    if values is None:
        return None
    number = len(proposals) + 1
    return StoredProposal(f"p{number:02d}", wanted.side, STATES[(number + 1) % 2], values, (block,))


def tried_of(proposal: StoredProposal, judged: ProposalJudged) -> TriedProposal:
    """As a sampler is told of it: what ended, or crossed a bound, is no place to go on from."""
    import math

    broken = 1.0 if judged.state == "ended" else 0.0
    if judged.seen.over is not None and not broken:
        broken = math.log(max(judged.seen.over, 1e-6))
    return TriedProposal(proposal.values, None if judged.value is None else math.log(judged.value), broken)
