"""What a search of settings found, from its own result and that of its proof, which is another run.

It has no cells of its own, as each of its states was many proposals.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from leadline import units
from leadline.analysis.cells import CellTable
from leadline.analysis.proposing import (
    ProposalJudged,
    ProposalSeen,
    SearchLimits,
    best_proposal,
    judge_proposals,
)
from leadline.errors import ResultError, UsageError
from leadline.plan.make import with_block
from leadline.plan.model import Plan
from leadline.store.files import PROOF
from leadline.store.own import StoredProposal, read_proposals
from leadline.store.reader import Result, open_result
from leadline.store.tables import TrialRow
from leadline.study.target import TargetFacts
from leadline.units import format_count, format_ratio_interval, quoted
from leadline.verdict.comparisons.comparisons import PRIMARY_WEIGHT, asked_metrics, weight_of
from leadline.verdict.inputs import tables_of
from leadline.verdict.kinds import metric_kind
from leadline.verdict.model import UNUSABLE, Cell, Comparison, Findings, Statement, TargetView, outcome_words
from leadline.verdict.private import private_texts
from leadline.verdict.proofs.detection import ProofFound
from leadline.verdict.proofs.messages import proof_section, side_effects
from leadline.verdict.sections.numbers import compared
from leadline.verdict.sections.section import Facts, Frame, NextStep, Section, StudyAnswer, TextTable

WITHOUT = "without"


def limits_of(manifest: Mapping[str, Any]) -> SearchLimits:
    """How far a stored search goes. Raises ResultError."""
    try:
        said = manifest["search"]["limits"]
        return SearchLimits(int(said["blocks"]), said["proposals"])
    except (KeyError, TypeError, ValueError) as error:
        raise ResultError(f"the stored search of the result is damaged: {error}", "restore it") from None


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


_STATES = {
    "open": "not finished",
    "whole": "measured",
    "stopped": "stopped: worse",
    "over": "crossed a bound",
    "ended": "ended",
}
_OTHERS = {
    "advised": "what the documents advise",
    "random": "what random search found in as many blocks",
}


def search_answer(found: SearchFound, path: str) -> StudyAnswer:
    """The first screen."""
    proof = found.proof
    text = [proved_sentence(found)]
    if proof is not None and (beside := side_effects(proof.found)):
        text.append(beside)
    against = [] if proof is None else [against_sentence(found, proof, state) for state in proof.against]
    return StudyAnswer(
        "Which values of these settings are fastest for this workload?",
        " ".join([*text, *against]),
        matrix=_gains(proof) if proof is not None else None,
        steps=tuple(_steps(found, path)),
        said=(course_sentence(found), *doubts(proof)),
    )


def search_statements(found: SearchFound) -> Iterator[Statement]:
    """Everything that is said."""
    yield Statement("headline", proved_sentence(found), says="search_proved")
    if found.proof is not None:
        for state in found.proof.against:
            yield Statement("finding", against_sentence(found, found.proof, state), says="search_against")
    yield Statement("finding", course_sentence(found), says="search_course")


def proved_sentence(found: SearchFound) -> str:
    """What may be called better: only what fresh trials proved."""
    best, proof = found.best(), found.proof
    if best is None:
        return f"None of {_proposals(found.count())} looked better than the default."
    seemed = (
        f"The best of {_proposals(found.count())}, {words_of(found, best[0].values)}, looked {_span(best[1])}"
        " than the default in the search that chose it"
    )
    if proof is None:
        return f"Not proved yet. {seemed}."
    fresh = f"In {format_count(proof.blocks, 'fresh block')}: {_listed(_rates(proof.found.comparisons))}"
    if not proof.whole:
        return f"Not proved yet. {seemed}. Its proof has not finished. {fresh}."
    if proof.holds:
        return f"Proved better than the default: {words_of(found, best[0].values)}. {fresh}."
    over = ""
    if proof.over is not None and proof.over > 1:
        over = f" It exceeded a bound {format_over(proof.over)} there."
    return f"No setting is proved better than the default. {seemed}. {fresh}.{over}"


def format_over(over: float) -> str:
    """By how much a bound was crossed."""
    return f"by {100 * (over - 1):.1f} %"


def against_sentence(found: SearchFound, proof: JudgedProof, state: str) -> str:
    """The winner against another state of its proof."""
    other = f"{_OTHERS.get(state, state)} ({words_of(found, proof.values[state])})"
    return f"Compared with {other}: {_listed(_rates(proof.against[state]))}."


def course_sentence(found: SearchFound) -> str:
    """How the search went."""
    counts = (
        (found.count("stopped"), "stopped early as worse"),
        (found.count("over"), "over a bound"),
        (found.count("ended"), "stopped for another reason"),
    )
    rest = "".join(f", {count} {what}" for count, what in counts if count)
    beside = found.count(side="random")
    chance = f", and random search {_proposals(beside)}" if beside else ""
    blocks = sum(one.seen.tried for _, one in found.proposals)
    head = f"The search measured {_proposals(found.count())}{rest}{chance}"
    took = units.format_duration(found.seconds)
    head = f"{head}, each in blocks together with the default: {format_count(blocks, 'block')} in {took}."
    return head if found.whole else f"{head} It has not finished."


def doubts(proof: JudgedProof | None) -> tuple[str, ...]:
    """How far the cells of the proof can be relied on."""
    if proof is None:
        return ()
    states = [cell.validity.state for cell in proof.cells]
    bad = [state for state in states if state != "VALID"]
    if not bad:
        return ()
    kinds = ", ".join(f"{bad.count(state)} {state}" for state in dict.fromkeys(bad))
    count = format_count(len(states), "cell")
    return (f"Of {count} of the proof {len(bad)} not VALID: {kinds}. See DIR/proof.",)


def _steps(found: SearchFound, path: str) -> Iterator[NextStep]:
    if not found.whole or (found.proof is not None and not found.proof.whole):
        yield NextStep(f"Continue it: leadline tune search --resume {quoted(path)}")
    elif found.proof is not None:
        yield NextStep(f"Show the proof: leadline show {quoted(f'{path}/proof')}")


def words_of(found: SearchFound, values: Mapping[str, str]) -> str:
    """Settings with their values; sizes as they are written, and not in bytes."""
    sizes = {one["setting"] for one in found.said["settings"] if one["unit"] == "bytes"}
    return ", ".join(
        f"{name}={units.exact_size(int(value)) if name in sizes and value.isdigit() else value}"
        for name, value in values.items()
    )


def _proposals(count: int) -> str:
    return format_count(count, "proposal")


def _span(one: ProposalJudged) -> str:
    if one.value is None or one.low is None or one.high is None:
        return "not measured"
    return f"{units.format_times(one.value)} faster (CI {format_ratio_interval(one.low, one.high)})"


def _rates(compared: Sequence[Comparison]) -> tuple[Comparison, ...]:
    return tuple(one for one in compared if weight_of(one.metric) == PRIMARY_WEIGHT)


def _listed(found: Sequence[Comparison]) -> str:
    return "; ".join(map(_one, found)) or "nothing to compare"


def _one(one: Comparison) -> str:
    if one.ratio is None or one.validity in UNUSABLE:
        return f"{one.work} {one.metric} not comparable ({one.validity})"
    return f"{one.work} {one.metric} {compared(one)}"


def _gains(proof: JudgedProof) -> TextTable:
    """The winner against each state, rates and percentiles."""
    compared = [*proof.found.comparisons, *(one for own in proof.against.values() for one in own)]
    rows = tuple(
        (
            f"winner / {'default' if one.base == 'without' else one.base}",
            one.work,
            one.metric,
            "" if one.ratio is None else f"{one.ratio:.3g}",
            "" if one.low is None or one.high is None else format_ratio_interval(one.low, one.high),
            outcome_words(one.verdict) if one.validity not in UNUSABLE else one.validity,
        )
        for one in compared
    )
    headings = ("fresh blocks", "workload", "metric", "ratio", "95 % CI", "verdict")
    return TextTable("The winner, in fresh blocks", headings, rows, right=frozenset({3}))


def search_sections(found: SearchFound) -> tuple[Section, ...]:
    """The winner's gains, the proof, and every proposal."""
    rows = tuple(
        (
            one.name,
            one.side,
            words_of(found, one.values),
            "" if judged.value is None else f"{judged.value:.3g}",
            ""
            if judged.low is None or judged.high is None
            else format_ratio_interval(judged.low, judged.high),
            str(judged.seen.tried),
            "" if judged.seen.over is None else f"{100 * judged.seen.over:.0f} %",
            _STATES[judged.state] + (f": {judged.seen.ended}" if judged.seen.ended else ""),
        )
        for one, judged in found.proposals
    )
    headings = ("proposal", "by", "values", "ratio to default", "95 % CI", "blocks", "% of bound", "state")
    proposals = TextTable("Proposals", headings, rows, right=frozenset({3, 5, 6}))
    space = {str(one["name"]): _space_words(one) for one in found.said.get("space", ())}
    parts = ([_gains(found.proof)] if found.proof else []) + [proposals]
    note = (
        "Each proposal was measured in blocks together with the default. These ratios chose the winner, so"
        " they are biased in its favour. The fresh blocks of the proof count."
    )
    section = Section(
        "search",
        "Settings searched",
        (*parts, Facts("Space", space)),
        note=note,
        json={"search": _json(found)},
        leads=True,
        in_csv=False,
    )
    proof = proof_section(found.proof.found) if found.proof is not None else None
    return (section,) if proof is None else (section, proof)


def _space_words(one: Mapping[str, object]) -> str:
    choices = one.get("choices")
    if isinstance(choices, list) and choices:
        return " | ".join(map(str, choices))
    return f"{one['low']:.15g} to {one['high']:.15g}" + (", by factors" if one.get("logarithmic") else "")


def _json(found: SearchFound) -> dict[str, object]:
    """The search as plain values."""
    proof = found.proof
    best = found.best()
    return {
        "winner": dict(best[0].values) if best is not None and proof is not None and proof.holds else None,
        "seemed_best": None if best is None else dict(best[0].values),
        "default": dict(found.said.get("default", {})),
        "advised": {name: one[0] for name, one in found.said.get("advised", {}).items()},
        "bounds_ns": dict(found.said.get("bounds", {})),
        "seed": found.said.get("seed"),
        "budget_s": found.said.get("budget_s"),
        "search_s": found.seconds,
        "proved": proof is not None and proof.holds,
        "outcome": None if proof is None else proof.found.outcome,
        "proof_blocks": None if proof is None else proof.blocks,
        "gains": {
            state: [_compared(one) for one in own]
            for state, own in (
                {"default": proof.found.comparisons, **proof.against} if proof is not None else {}
            ).items()
        },
        "proposals": [
            {
                "name": one.name,
                "side": one.side,
                "values": dict(one.values),
                "ratio": judged.value,
                "low": judged.low,
                "high": judged.high,
                "blocks": judged.seen.tried,
                "of_bound": judged.seen.over,
                "state": judged.state,
                "ended": judged.seen.ended,
            }
            for one, judged in found.proposals
        ],
    }


def _compared(one: Comparison) -> dict[str, object]:
    names = ("work", "metric", "ratio", "low", "high", "verdict", "validity")
    return {name: getattr(one, name) for name in names}


_WITHOUT = "without"


def search_findings(
    result: Result,
    proof_of: Callable[[Result], tuple[ProofFound | None, tuple[Cell, ...], Any]],
    base: str | None,
) -> Findings:
    """Everything that can be said of a search and of its proof. Raises ResultError, UsageError."""
    if base is not None:
        raise UsageError("a search has one base, the default", f"name one of its proof: {result.path}/proof")
    manifest = result.manifest
    found = find_search(result, proof_of)
    facts = TargetFacts.from_json(manifest["targets"][_WITHOUT])
    url = next(one["url"] for one in manifest["plan"]["targets"] if one["name"] == _WITHOUT)
    state = "VALID"
    if found.proof is not None:
        from leadline.verdict.model import worst

        state = worst([cell.validity.state for cell in found.proof.cells])
    steps = (
        (f"Show the proof: leadline show {quoted(result.path / 'proof')}",) if found.proof is not None else ()
    )
    return Findings(
        id=str(manifest["id"]),
        kind=str(manifest["kind"]),
        title=str(manifest["plan"].get("title") or manifest["plan"].get("study", "")),
        about=str(manifest["plan"].get("about", "")),
        created=str(manifest.get("created", "")),
        state=state,  # type: ignore[arg-type]
        targets=(TargetView(_WITHOUT, url, facts.access, facts.words, facts.as_json()),),
        cells=(),
        comparisons=(),
        statements=tuple(search_statements(found)),
        host={str(name): str(value) for name, value in manifest.get("host", {}).items()},
        study=manifest["study"],
        reproduce=(" ".join(map(str, manifest.get("command", ()))),),
        version=str(manifest.get("version", "")),
        complete=result.complete,
        sections=search_sections(found),
        private=private_texts(manifest),
        frame=Frame(cells=False, steps=steps, no_jobs="a search has a job for each proposal"),
        answer=search_answer(found, str(result.path)),
    )
