"""Findings of a search of settings: it has no cells of its own, as each of its states was many proposals.

What is said of a search: what was proved, against what else, how the search went, and every proposal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from leadline import units
from leadline.analysis.proposing import ProposalJudged
from leadline.errors import UsageError
from leadline.store.reader import Result
from leadline.study.target import TargetFacts
from leadline.units import format_ratio_interval, quoted
from leadline.verdict.comparisons.comparisons import PRIMARY_WEIGHT, weight_of
from leadline.verdict.model import UNUSABLE, Cell, Comparison, Findings, Statement, TargetView
from leadline.verdict.private import private_texts
from leadline.verdict.proofs.detection import ProofFound
from leadline.verdict.proofs.messages import proof_section, side_effects
from leadline.verdict.searches.detection import JudgedProof, SearchFound, find_search
from leadline.verdict.sections.answer import NextStep, StudyAnswer
from leadline.verdict.sections.section import Facts, Frame, Section, TextTable

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
        "Which values of these settings are fastest for this work?",
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
        return f"No setting was found that seemed better than the default in {_proposals(found.count())}."
    seemed = (
        f"the best of {_proposals(found.count())}, {words_of(found, best[0].values)}, seemed {_span(best[1])}"
    )
    if proof is None:
        return f"Not proved yet: {seemed} the default in the search, which chose it for that."
    fresh = f"in {proof.blocks} fresh blocks: {_listed(_rates(proof.found.comparisons))}"
    if not proof.whole:
        return f"Not proved yet: {seemed} the default in the search, and its proof has not ended, {fresh}."
    if proof.holds:
        return f"Proved better than the default {fresh}, with {words_of(found, best[0].values)}."
    over = ""
    if proof.over is not None and proof.over > 1:
        over = f" It crossed a bound {format_over(proof.over)} there."
    return f"No setting was found that is proved better than the default: {seemed} it, {fresh}.{over}"


def format_over(over: float) -> str:
    """By how much a bound was crossed."""
    return f"by {100 * (over - 1):.1f} %"


def against_sentence(found: SearchFound, proof: JudgedProof, state: str) -> str:
    """The winner against another state of its proof."""
    other = f"{_OTHERS.get(state, state)} ({words_of(found, proof.values[state])})"
    return f"Against {other}: {_listed(_rates(proof.against[state]))}."


def course_sentence(found: SearchFound) -> str:
    """How the search went."""
    counts = (
        (found.count("stopped"), "stopped early as worse"),
        (found.count("over"), "over a bound"),
        (found.count("ended"), "ended otherwise"),
    )
    rest = "".join(f", {count} {what}" for count, what in counts if count)
    beside = found.count(side="random")
    chance = f", and random search {_proposals(beside)}" if beside else ""
    blocks = sum(one.seen.tried for _, one in found.proposals)
    head = f"The search measured {_proposals(found.count())}{rest}{chance}"
    return f"{head}, in {blocks} blocks beside the default, in {units.format_duration(found.seconds)}." + (
        "" if found.whole else " It has not ended."
    )


def doubts(proof: JudgedProof | None) -> tuple[str, ...]:
    """How far the cells of the proof can be relied on."""
    if proof is None:
        return ()
    states = [cell.validity.state for cell in proof.cells]
    bad = [state for state in states if state != "VALID"]
    if not bad:
        return ()
    kinds = ", ".join(f"{bad.count(state)} {state}" for state in dict.fromkeys(bad))
    return (f"Of {len(states)} cells of the proof these are not VALID: {kinds}; see DIR/proof.",)


def _steps(found: SearchFound, path: str) -> Iterator[NextStep]:
    if not found.whole or (found.proof is not None and not found.proof.whole):
        yield NextStep(f"Go on with it: leadline tune search --resume {quoted(path)}")
    elif found.proof is not None:
        yield NextStep(f"The proof by itself: leadline show {quoted(f'{path}/proof')}")


def words_of(found: SearchFound, values: Mapping[str, str]) -> str:
    """Settings with their values; sizes as they are written, and not in bytes."""
    sizes = {one["setting"] for one in found.said["settings"] if one["unit"] == "bytes"}
    return ", ".join(
        f"{name}={units.exact_size(int(value)) if name in sizes and value.isdigit() else value}"
        for name, value in values.items()
    )


def _proposals(count: int) -> str:
    return f"{count} proposal{'' if count == 1 else 's'}"


def _span(one: ProposalJudged) -> str:
    if one.value is None or one.low is None or one.high is None:
        return "not measured"
    return f"{one.value:.3g} times ({format_ratio_interval(one.low, one.high)})"


def _rates(compared: Sequence[Comparison]) -> tuple[Comparison, ...]:
    return tuple(one for one in compared if weight_of(one.metric) == PRIMARY_WEIGHT)


def _listed(compared: Sequence[Comparison]) -> str:
    return "; ".join(map(_one, compared)) or "nothing to compare"


def _one(one: Comparison) -> str:
    if one.ratio is None or one.validity in UNUSABLE:
        return f"{one.work} {one.metric} not comparable ({one.validity})"
    span = "" if one.low is None or one.high is None else f" ({format_ratio_interval(one.low, one.high)})"
    return f"{one.work} {one.metric} {one.ratio:.3g} times{span}"


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
            one.verdict if one.validity not in UNUSABLE else one.validity,
        )
        for one in compared
    )
    headings = ("fresh blocks", "work", "metric", "ratio", "interval", "verdict")
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
    headings = ("proposal", "by", "values", "times default", "interval", "blocks", "of bound", "state")
    proposals = TextTable("Proposals", headings, rows, right=frozenset({3, 5, 6}))
    space = {str(one["name"]): _space_words(one) for one in found.said.get("space", ())}
    parts = ([_gains(found.proof)] if found.proof else []) + [proposals]
    note = (
        "Each proposal was measured in blocks beside the default. Their ratios chose the winner, and so they"
        " flatter it: what counts are the fresh blocks of the proof."
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
        (f"The proof by itself: leadline show {quoted(result.path / 'proof')}",)
        if found.proof is not None
        else ()
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
