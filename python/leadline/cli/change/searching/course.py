"""What a search measures next, from what it has measured: the one step that a lab and a simulation share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from leadline.analysis.proposing import (
    NextProposal,
    ProposalJudged,
    ProposalSeen,
    SearchLimits,
    judge_proposals,
    next_proposal,
)
from leadline.store.own import StoredProposal
from leadline.tuning.searching.sampler import SamplerKind, TriedProposal, propose
from leadline.tuning.searching.space import SearchDimension

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
