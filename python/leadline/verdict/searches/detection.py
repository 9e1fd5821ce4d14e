"""What a search of settings found: from its own result and that of its proof, which is another run."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from leadline.analysis.proposing import ProposalJudged, best_proposal, judge_proposals
from leadline.errors import ResultError
from leadline.plan.model import Plan
from leadline.plan.order import with_block
from leadline.store.files import PROOF
from leadline.store.own import StoredProposal
from leadline.store.reader import Result, open_result
from leadline.verdict.model import Cell, Comparison
from leadline.verdict.proofs.detection import ProofFound
from leadline.verdict.searches.observed import figures_in, limits_of, observe_proposals

WITH = "with"
_TPE = "tpe"


@dataclass(frozen=True)
class JudgedProof:
    """The proof: its verdict, its winner against each other state, and what of a bound was seen in it.

    `blocks` that every state has; `whole`: it came to its end; `over` as that of a proposal.
    """

    found: ProofFound
    cells: tuple[Cell, ...]
    against: Mapping[str, tuple[Comparison, ...]]
    values: Mapping[str, Mapping[str, str]]
    blocks: int
    whole: bool
    over: float | None

    @property
    def holds(self) -> bool:
        """Whether the winner may be called one: faster, and within every bound."""
        better = self.found.outcome in ("helps", "not_by_mechanism")
        return self.whole and better and (self.over is None or self.over <= 1)


@dataclass(frozen=True)
class SearchFound:
    """A search, judged. `said` is what its manifest keeps of it; `seconds` what it took without its proof."""

    said: Mapping[str, Any]
    proposals: tuple[tuple[StoredProposal, ProposalJudged], ...]
    proof: JudgedProof | None
    seconds: float
    whole: bool

    def best(self, side: str = _TPE) -> tuple[StoredProposal, ProposalJudged] | None:
        """What a side found, by the search alone: chosen, and so looking better than it is."""
        found = best_proposal([one for _, one in self.proposals], side)
        return next((pair for pair in self.proposals if pair[1] is found), None) if found else None

    def count(self, *states: str, side: str = _TPE) -> int:
        """Proposals of a side in one of these states; all of them where none is named."""
        own = [one for _, one in self.proposals if one.seen.side == side]
        return sum(not states or one.state in states for one in own)


def find_search(
    result: Result, proof_of: Callable[[Result], tuple[ProofFound | None, tuple[Cell, ...], Any]]
) -> SearchFound:
    """`proof_of` judges a proof: its verdict, its cells, and its comparisons to another base. Raises
    ResultError."""
    from leadline.analysis.duration import spent_s

    plan = Plan.from_json(result.manifest["plan"])
    for event in result.events:
        if event.event == "block_added":
            plan = with_block(plan, event.details["cells"])
    proposals, seen = observe_proposals(result, plan)
    judged = judge_proposals(seen, limits_of(result.manifest))
    said = result.manifest["search"]
    return SearchFound(
        said,
        tuple(zip(proposals, judged, strict=True)),
        _proof(result, said.get("bounds", {}), proof_of),
        spent_s(result.events),
        result.complete,
    )


def _proof(
    result: Result,
    bounds: Mapping[str, float],
    proof_of: Callable[[Result], tuple[ProofFound | None, tuple[Cell, ...], Any]],
) -> JudgedProof | None:
    if not os.path.isdir(result.path / PROOF):  # noqa: PTH112 - says False where it may not be looked at
        return None
    proof = open_result(result.path / PROOF)
    found, cells, compare = proof_of(proof)
    if found is None:
        raise ResultError(f"{proof.path} is no proof of settings", "restore it from a copy")
    values = proof.manifest.get("states", {})
    against = {
        state: tuple(one for one in compare(state) if (one.base, one.other) == (state, WITH))
        for state in values
        if state != WITH
    }
    plan = Plan.from_json(proof.manifest["plan"])
    blocks = {name: set[int]() for name in (cell.id for cell in plan.cells)}
    for trial in proof.trials():
        blocks[trial.cell].add(trial.block)
    shared = set.intersection(*blocks.values()) if blocks else set()
    over = max(
        (
            value / bound
            for metric, bound in bounds.items()
            for value in figures_in(proof, plan, WITH, metric)
        ),
        default=None,
    )
    return JudgedProof(found, cells, against, values, len(shared), proof.complete, over)
