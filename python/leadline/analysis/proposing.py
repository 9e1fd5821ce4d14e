"""A search of settings from what was measured: how good each proposal is, and what is measured next.

Each block has a proposal beside the default, so that a drift falls on both; what counts is the logarithm of
their ratio, averaged over works. Few blocks tell little of how much those scatter: all proposals scatter
alike, as it is one machine and one work, so their blocks tell it together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

# Before anything is seen: as if three blocks had scattered by ten percent.
_PRIOR_SPREAD = 0.1
_PRIOR_DEGREES = 2.0
_ALPHA = 0.05

ProposalState = Literal["open", "whole", "stopped", "over", "ended"]


@dataclass(frozen=True)
class ProposalSeen:
    """What was measured of a proposal: `logarithms` of proposal/default by block, of `tried` blocks.

    `side` is who proposed it. `over` is the worst figure that is bounded as a share of its bound, over 1: it
    was crossed; None: nothing is bounded or seen. `ended` says why nothing more of it may be measured.
    """

    name: str
    side: str
    logarithms: tuple[float, ...] = ()
    tried: int = 0
    over: float | None = None
    ended: str = ""


@dataclass(frozen=True)
class ProposalJudged:
    """A proposal with the ratio to the default and its interval; None where no block was usable."""

    seen: ProposalSeen
    state: ProposalState
    value: float | None = None
    low: float | None = None
    high: float | None = None

    @property
    def usable(self) -> bool:
        """Whether it may be chosen: within bounds, not ended, and seen."""
        return self.value is not None and self.state not in ("over", "ended")


@dataclass(frozen=True)
class SearchLimits:
    """How far a search goes: blocks of one proposal, and proposals of one side; None: as time permits."""

    blocks: int
    proposals: int | None = None


def judge_proposals(seen: Sequence[ProposalSeen], limits: SearchLimits) -> tuple[ProposalJudged, ...]:
    """All proposals in their order. Who is clearly worse than the default or another is stopped."""
    margin = _margins(seen)
    spans = [_span(one, margin) for one in seen]
    lows = [span[1] for one, span in zip(seen, spans, strict=True) if span is not None and _is_feasible(one)]
    least = max([0.0, *lows])  # the default is there to be had
    newest = {one.side: one.name for one in seen}
    return tuple(
        _judged(one, span, least, limits, is_newest=newest[one.side] == one.name)
        for one, span in zip(seen, spans, strict=True)
    )


def _judged(
    seen: ProposalSeen,
    span: tuple[float, float, float] | None,
    least: float,
    limits: SearchLimits,
    *,
    is_newest: bool,
) -> ProposalJudged:
    state: ProposalState = "open" if is_newest else "stopped"
    if seen.ended:
        state = "ended"
    elif seen.over is not None and seen.over > 1:
        state = "over"
    elif seen.tried >= limits.blocks:
        state = "ended" if span is None else "whole"
    elif span is not None and span[2] < least:
        state = "stopped"
    if span is None:
        return ProposalJudged(seen, state)
    return ProposalJudged(seen, state, *(math.exp(one) for one in span))


def _is_feasible(seen: ProposalSeen) -> bool:
    return not seen.ended and (seen.over is None or seen.over <= 1)


def _span(seen: ProposalSeen, margin: float) -> tuple[float, float, float] | None:
    if not seen.logarithms:
        return None
    mean = sum(seen.logarithms) / len(seen.logarithms)
    half = margin / math.sqrt(len(seen.logarithms))
    return mean, mean - half, mean + half


def _margins(seen: Sequence[ProposalSeen]) -> float:
    """Half an interval of one block, from how blocks of one proposal scatter about their mean."""
    from leadline.analysis.statistics.special import student_quantile

    squares, degrees = _PRIOR_DEGREES * _PRIOR_SPREAD**2, _PRIOR_DEGREES
    for one in seen:
        if len(one.logarithms) > 1:
            mean = sum(one.logarithms) / len(one.logarithms)
            squares += sum((value - mean) ** 2 for value in one.logarithms)
            degrees += len(one.logarithms) - 1
    return float(student_quantile(degrees, 1 - _ALPHA / 2)) * math.sqrt(squares / degrees)


@dataclass(frozen=True)
class NextProposal:
    """What the next block measures: the proposal of this name once more, or a new one of `side`."""

    side: str
    again: str | None = None


def next_proposal(
    judged: Sequence[ProposalJudged], sides: Sequence[str], limits: SearchLimits
) -> NextProposal | None:
    """None where every side has its proposals. A side with fewer blocks behind it comes first, so that all
    get the same time and the same hours of the machine."""
    for one in judged:
        if one.state == "open":
            return NextProposal(one.seen.side, one.seen.name)
    counts = {side: sum(one.seen.side == side for one in judged) for side in sides}
    blocks = {side: sum(one.seen.tried for one in judged if one.seen.side == side) for side in sides}
    free = [side for side in sides if limits.proposals is None or counts[side] < limits.proposals]
    return NextProposal(min(free, key=lambda side: blocks[side])) if free else None


def best_proposal(judged: Sequence[ProposalJudged], side: str) -> ProposalJudged | None:
    """The one whose interval begins highest; None where none was seen to be faster than the default.

    By the lower end and not by the value: a single lucky block has a wide interval.
    """
    own = [one for one in judged if one.seen.side == side and one.usable and (one.value or 0.0) > 1]
    return max(own, key=lambda one: one.low or 0.0, default=None)
