"""What is said of a proof: the first sentence, one for each mechanism, side effects, and a section."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

from leadline.units import format_ratio_interval
from leadline.verdict.comparisons.comparisons import PRIMARY_WEIGHT, weight_of
from leadline.verdict.interface import KindAnswer
from leadline.verdict.model import UNUSABLE, Comparison, Statement, Tone
from leadline.verdict.proofs.detection import Mechanism, ProofFound, ProofOutcome
from leadline.verdict.proofs.several import (
    effects_matrix,
    interaction_sentence,
    several_statements,
    several_tables,
    told_sentence,
)
from leadline.verdict.sections.section import Section, TextTable

VERDICTS: dict[ProofOutcome, str] = {
    "helps": "helps",
    "not_by_mechanism": "helps, but not by its mechanism",
    "nothing": "does nothing here",
    "harms": "harms",
    "depends": "depends on another setting",
    "undecided": "is inconclusive",
    "unusable": "cannot be judged",
}
_DID = {
    "as meant": "did",
    "the other way": "went the other way",
    "not": "did not",
    "open": "whether it did is open",
}
_TOLD = ("helps", "not_by_mechanism", "harms", "depends")


def proof_answer(found: ProofFound | None) -> KindAnswer:
    """What stands first on the screen."""
    if found is None:
        return KindAnswer()
    if found.each:
        text = " ".join(_first_of_several(found))
        return KindAnswer(text, effects_matrix(found, VERDICTS), leads=True, instead=True)
    beside = side_effects(found)
    return KindAnswer(" ".join(filter(None, (verdict_sentence(found), beside))), leads=True, instead=True)


def _first_of_several(found: ProofFound) -> Iterator[str]:
    """Those that do something with what stands beside it; of the others the names."""
    told = [one for one in found.each if one.outcome in _TOLD]
    for one in told:
        yield verdict_sentence(one)
        if beside := side_effects(one):
            yield beside
    for outcome in dict.fromkeys(one.outcome for one in found.each if one not in told):
        names = ", ".join(one.words for one in found.each if one.outcome == outcome)
        yield f"{names}: {VERDICTS[outcome]}."
    for acting in found.acting:
        yield interaction_sentence(acting)


def proof_statements(found: ProofFound | None) -> Iterator[Statement]:
    """The verdict, what stands beside it, and each mechanism; of each setting, where they are told apart."""
    if found is None:
        return
    for one in found.each or (found,):
        cells = tuple(cell.id for cell in one.cells)
        tone: Tone = "headline" if not found.each or one.outcome in _TOLD else "finding"
        yield Statement(tone, verdict_sentence(one), says="proof_verdict", cells=cells)
        if beside := side_effects(one):
            beside = f"{one.words}: {beside}" if found.each else beside
            yield Statement("caution", beside, says="proof_side_effects", cells=cells)
    if found.each:
        yield from several_statements(found)
    for moved in found.mechanisms:
        yield Statement("finding", mechanism_sentence(moved), says="proof_mechanism", cells=moved.cells)


def verdict_sentence(found: ProofFound) -> str:
    """Settings, verdict, and the ratios that it rests on; gains never without what was lost."""
    head = f"{found.words} {VERDICTS[found.outcome]}"
    if found.outcome == "unusable":
        return f"{head}: no rate of the two states can be compared."
    if found.better:
        return f"{head}: {_listed(found.better)}; {_by_what(found)}."
    if found.outcome == "harms":
        return f"{head}: {_listed(found.worse)}."
    rates = tuple(one for one in found.comparisons if weight_of(one.metric) == PRIMARY_WEIGHT)
    within = f", within {100 * rates[0].margin:.0f} %" if found.outcome == "nothing" else ""
    return f"{head}{within}: {_listed(rates)}."


def side_effects(found: ProofFound) -> str:
    """Beside a gain: every work and percentile that lost, and what is still open."""
    if not found.better:
        return ""
    rest = [one for one in found.comparisons if one not in found.better and one not in found.worse]
    lost = (
        f"It harms {_listed(found.worse)}." if found.worse else "No work and no percentile was seen to lose."
    )
    open_ = sum(one.verdict == "undecided" for one in rest)
    return f"{lost} Inconclusive: {open_} of {len(rest)} others." if open_ else lost


def mechanism_sentence(one: Mechanism) -> str:
    """Whether the figure that the setting must move did."""
    head = f"{one.setting} in {one.work}: {one.figure} must go {one.direction} and"
    if one.moved == "not seen" or one.ratio is None:
        return f"{head} was not seen in both states."
    did = _DID[one.moved]
    ratio, span = _times(one)
    times = f"{ratio} times" if one.ratio < inf else f"{ratio} to some"
    times += f", {span}" if span else ""
    return f"{head} {did}: {times} in {one.blocks} blocks."


def _times(one: Mechanism) -> tuple[str, str]:
    """The ratio and its interval; of what went from or to nothing in every block there is none."""
    if one.ratio is None:
        return "", ""
    if one.ratio == inf:
        return "from none", ""
    if one.low is None or one.high is None or one.low == one.high:
        return f"{one.ratio:.3g}", ""
    return f"{one.ratio:.3g}", format_ratio_interval(one.low, one.high)


def _by_what(found: ProofFound) -> str:
    """By which mechanism it helps, as far as that is known."""
    gained = {one.work for one in found.better}
    own = [one for one in found.mechanisms if one.work in gained]
    if not own:
        return "which counter it must move is not known to leadline"
    moved = dict.fromkeys(one.figure for one in own if one.moved == "as meant")
    if moved:
        return f"{', '.join(moved)} moved as it must"
    if all(one.moved == "not seen" for one in own):
        return "what it must move could not be seen here"
    figures = ", ".join(dict.fromkeys(one.figure for one in own if one.moved != "not seen"))
    unseen = {one.setting for one in own} - {one.setting for one in own if one.moved != "not seen"}
    if any(one.moved == "open" for one in own):
        return f"whether it is by its mechanism is open: {figures} cannot be told to have moved"
    if unseen:
        return (
            f"{figures} did not move as it must; what {', '.join(sorted(unseen))} must move could not be seen"
        )
    return f"{figures} did not move as it must"


def _listed(compared: tuple[Comparison, ...]) -> str:
    return "; ".join(_one(one) for one in compared) or "nothing"


def _one(one: Comparison) -> str:
    if one.ratio is None or one.validity in UNUSABLE:
        return f"{one.work} {one.metric} not comparable ({one.validity})"
    span = "" if one.low is None or one.high is None else f" ({format_ratio_interval(one.low, one.high)})"
    return f"{one.work} {one.metric} {one.ratio:.3g} times{span}"


def proof_section(found: ProofFound | None) -> Section | None:
    """Settings with what was before and what they cost; mechanisms."""
    if found is None:
        return None
    settings = tuple(
        (
            str(one["setting"]),
            ", ".join(dict.fromkeys(map(str, one["without"].values()))),
            str(one["value"]),
            "; ".join(f"{price['kind']}: {price['words']}" for price in one["prices"]) or "none known",
        )
        for one in found.settings
    )
    parts = [TextTable("Settings", ("setting", "without", "with", "price"), settings)]
    moved = tuple(
        (
            one.setting,
            one.work,
            f"{one.figure} {one.direction}",
            *_times(one),
            one.moved,
        )
        for one in found.mechanisms
    )
    if found.each:
        parts += several_tables(found)
    if moved:
        headings = ("setting", "work", "must move", "ratio", "interval", "moved")
        parts.append(TextTable("Mechanisms", headings, moved))
    return Section("proof", "Settings proved", tuple(parts), note=_note(found), leads=True, in_csv=False)


def _note(found: ProofFound) -> str:
    if found.each and found.design is not None:
        return told_sentence(found.design)
    return verdict_sentence(found)
