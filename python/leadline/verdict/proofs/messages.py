"""What is said of a proof: the first sentence, one for each mechanism, side effects, and a section.

Of several settings that are told apart: each, pairs that act on each other, and what the design cannot tell.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import inf

from leadline.units import format_count, format_ratio_interval
from leadline.verdict.comparisons.comparisons import PRIMARY_WEIGHT, weight_of
from leadline.verdict.interface import KindAnswer
from leadline.verdict.model import (
    UNUSABLE,
    Comparison,
    FigureRow,
    FigureTable,
    Quantity,
    Statement,
    Tone,
    outcome_words,
    worst,
)
from leadline.verdict.proofs.detection import Mechanism, ProofFound, ProofOutcome
from leadline.verdict.proofs.effects import BestWay, Interaction, StatesDesign, pair_words
from leadline.verdict.sections.numbers import compared
from leadline.verdict.sections.section import Section, TextTable

_TIMES = "\u00d7"
_SHOWN_PAIRS = 12  # on a terminal


def interaction_sentence(one: Interaction) -> str:
    """Two settings that act on each other, or several pairs of which one does."""
    pairs = [pair_words(best.pair) for best in one.best]
    names = pairs[0] if len(pairs) == 1 else f"One of {', '.join(pairs)} (the design cannot distinguish them)"
    compared = one.compared
    best = "; ".join(
        f"if {pair_words(way.pair)}, {_best_words(way)}" if len(pairs) > 1 else _best_words(way)
        for way in one.best
    )
    return (
        f"{names} in {compared.work} {compared.metric}: both together give {_ratio_words(compared)} the"
        f" product of their separate effects; {best}."
    )


def _best_words(way: BestWay) -> str:
    words = {0: "neither", 1: f"{'/'.join(way.on)} alone", 2: f"{' and '.join(way.on)}"}[len(way.on)]
    return f"best with {words} ({way.times:.3g}x neither)" if way.on else "best with neither"


def told_sentence(design: StatesDesign) -> str:
    """How many of all combinations were measured, and which pairs of settings that distinguishes."""
    count, states, every = len(design.names), len(design.levels), 2 ** len(design.names)
    if not design.fraction:
        return f"{count} settings, one by one: interactions of two settings were not measured."
    head = (
        f"{count} settings in {states} of {every:,} combinations: each effect is a mean over the states of"
        " the others, not confounded with interactions of two"
    )
    alone = sum(len(group) == 1 for group in design.told)
    pairs = sum(len(group) for group in design.told)
    if alone == pairs:
        return (
            f"{head}; the interaction of {'the pair' if pairs == 1 else f'all {pairs} pairs'} is estimated."
        )
    most = max(len(group) for group in design.told)
    return (
        f"{head}; {alone} of {pairs} interactions are estimated, the others only in groups of up to {most}."
    )


def alias_words(design: StatesDesign) -> tuple[str, ...]:
    """Pairs that are confounded with each other, a line for each group."""
    groups = [[pair_words(pair) for pair in group] for group in design.told if len(group) > 1]
    return tuple(f"{group[0]} is confounded with {', '.join(group[1:])}" for group in groups)


def several_statements(found: ProofFound) -> Iterator[Statement]:
    """Pairs that act on each other, and what the design tells."""
    for one in found.acting:
        cells = [cell.id for cell in found.cells if cell.work == one.compared.work]
        yield Statement("finding", interaction_sentence(one), says="proof_interaction", cells=tuple(cells))
    if found.design is not None:
        text = told_sentence(found.design)
        yield Statement("finding", text, alias_words(found.design), says="proof_design")


def effects_matrix(found: ProofFound, verdicts: Mapping[ProofOutcome, str]) -> FigureTable:
    """A row a setting, a column for each rate of each work."""
    columns = list(
        dict.fromkeys((c.work, c.metric) for c in found.comparisons if weight_of(c.metric) == PRIMARY_WEIGHT)
    )
    rows = []
    for one in found.each:
        own = {(c.work, c.metric): c for c in one.comparisons}
        shown = [own[column] for column in columns if column in own]
        values = (_quantity(own.get(column)) for column in columns)
        verdict = Quantity(None, "", text=verdicts[one.outcome])
        state = worst([c.validity for c in shown]) if shown else None
        rows.append(FigureRow((one.words,), (verdict, *values), state))
    note = "The rate with the setting over the rate without it, with the CI at which it is decided"
    if found.design is not None and found.design.fraction:
        note += "; a mean over the states of the other settings"
    names = tuple(f"{work} {metric}" for work, metric in columns)
    return FigureTable(
        "proof", "What each setting does", ("setting",), ("verdict", *names), tuple(rows), note + "."
    )


def _quantity(one: Comparison | None) -> Quantity:
    if one is None or one.ratio is None or one.validity in UNUSABLE:
        return Quantity(None, _TIMES, reason="not comparable")
    return Quantity(one.ratio, _TIMES, one.low, one.high, one.blocks)


def several_tables(found: ProofFound) -> Iterator[TextTable]:
    """Every effect, what pairs of settings do, and which settings are changed in which state."""
    effects = tuple(
        (str(one.settings[0]["setting"]), c.work, c.metric, *_cells_of(c), outcome_words(c.verdict))
        for one in found.each
        for c in one.comparisons
    )
    headings = ("setting", "workload", "metric", "ratio", "CI", "verdict")
    yield TextTable("Effects", headings, effects)
    pairs = tuple(
        (
            " or ".join(map(pair_words, one.group)),
            *(one.compared.work, one.compared.metric, *_cells_of(one.compared)),
            "yes" if one.best else "not seen to",
        )
        for one in found.interactions
    )
    if pairs:
        headings = ("pair", "workload", "metric", "together over alone", "CI", "interaction")
        yield TextTable("Pairs of settings", headings, pairs, brief=_SHOWN_PAIRS)
    if found.design is not None:
        states = tuple((state, ", ".join(on) or "none") for state, on in found.design.ordered)
        yield TextTable("States", ("state", "changed"), states, brief=_SHOWN_PAIRS)


def _cells_of(one: Comparison) -> tuple[str, str]:
    if one.ratio is None or one.validity in UNUSABLE:
        return "", one.validity
    span = "" if one.low is None or one.high is None else format_ratio_interval(one.low, one.high)
    return f"{one.ratio:.3g}", span


def _ratio_words(one: Comparison) -> str:
    span = "" if one.low is None or one.high is None else f" ({format_ratio_interval(one.low, one.high)})"
    return f"{one.ratio:.3g}x{span}"


VERDICTS: dict[ProofOutcome, str] = {
    "helps": "helps",
    "not_by_mechanism": "helps, but not by its mechanism",
    "nothing": "has no effect here",
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
        f"It harms {_listed(found.worse)}."
        if found.worse
        else "No workload or percentile is significantly worse."
    )
    open_ = sum(one.verdict == "undecided" for one in rest)
    return f"{lost} Inconclusive: {open_} of the {len(rest)} others." if open_ else lost


def mechanism_sentence(one: Mechanism) -> str:
    """Whether the metric that the setting must move did."""
    head = f"{one.setting} in {one.work}: {one.figure} must go {one.direction} and"
    if one.moved == "not seen" or one.ratio is None:
        return f"{head} was not observed in both states."
    did = _DID[one.moved]
    ratio, span = _times(one)
    times = f"ratio {ratio}" if one.ratio < inf else "from zero"
    times += f" (CI {span})" if span else ""
    return f"{head} {did}: {times} in {format_count(one.blocks, 'block')}."


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
        return "leadline does not know which counter it must move"
    moved = dict.fromkeys(one.figure for one in own if one.moved == "as meant")
    if moved:
        return f"{', '.join(moved)} moved as expected"
    if all(one.moved == "not seen" for one in own):
        return "the counter that it must move was not observed here"
    figures = ", ".join(dict.fromkeys(one.figure for one in own if one.moved != "not seen"))
    unseen = {one.setting for one in own} - {one.setting for one in own if one.moved != "not seen"}
    if any(one.moved == "open" for one in own):
        return f"the mechanism is inconclusive: {figures} did not move significantly"
    if unseen:
        settings = ", ".join(sorted(unseen))
        return f"{figures} did not move as expected; the counters of {settings} were not observed"
    return f"{figures} did not move as expected"


def _listed(found: tuple[Comparison, ...]) -> str:
    return "; ".join(_one(one) for one in found) or "nothing"


def _one(one: Comparison) -> str:
    if one.ratio is None or one.validity in UNUSABLE:
        return f"{one.work} {one.metric} not comparable ({one.validity})"
    return f"{one.work} {one.metric} {compared(one)}"


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
