"""What is said of several settings that are told apart: of each, of pairs that act on each other, and of what
their design cannot tell.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from leadline.units import format_ratio_interval
from leadline.verdict.comparisons.comparisons import PRIMARY_WEIGHT, weight_of
from leadline.verdict.model import (
    UNUSABLE,
    Comparison,
    FigureRow,
    FigureTable,
    Quantity,
    Statement,
    outcome_words,
    worst,
)
from leadline.verdict.proofs.detection import ProofFound, ProofOutcome
from leadline.verdict.proofs.effects import BestWay, Interaction, StatesDesign, pair_words
from leadline.verdict.sections.section import TextTable

_TIMES = "\u00d7"
_SHOWN_PAIRS = 12  # on a terminal


def interaction_sentence(one: Interaction) -> str:
    """Two settings that act on each other, or several pairs of which one does."""
    pairs = [pair_words(best.pair) for best in one.best]
    names = pairs[0] if len(pairs) == 1 else f"One of {', '.join(pairs)} (not told apart)"
    compared = one.compared
    best = "; ".join(
        f"if {pair_words(way.pair)}, {_best_words(way)}" if len(pairs) > 1 else _best_words(way)
        for way in one.best
    )
    return (
        f"{names} in {compared.work} {compared.metric}: together {_ratio_words(compared)} what each of the"
        f" two does alone, multiplied; {best}."
    )


def _best_words(way: BestWay) -> str:
    words = {0: "neither", 1: f"{'/'.join(way.on)} alone", 2: f"{' and '.join(way.on)}"}[len(way.on)]
    return f"best with {words} ({way.times:.3g} times neither)" if way.on else "best with neither"


def told_sentence(design: StatesDesign) -> str:
    """How many of all combinations were measured, and which pairs of settings that tells."""
    count, states, every = len(design.names), len(design.levels), 2 ** len(design.names)
    if not design.fraction:
        return f"{count} settings, one by one: what two of them do together was not measured."
    head = (
        f"{count} settings in {states} of {every:,} combinations: what each does is a mean over the states of"
        " the others, clear of what any two do together"
    )
    alone = sum(len(group) == 1 for group in design.told)
    pairs = sum(len(group) for group in design.told)
    if alone == pairs:
        return f"{head}; {'the pair' if pairs == 1 else f'all {pairs} pairs'} can be told."
    most = max(len(group) for group in design.told)
    return f"{head}; {alone} of {pairs} pairs can be told, the others in groups of up to {most} only."


def alias_words(design: StatesDesign) -> tuple[str, ...]:
    """Pairs that cannot be told from each other, a line for each group."""
    groups = [[pair_words(pair) for pair in group] for group in design.told if len(group) > 1]
    return tuple(f"{group[0]} cannot be told from {', '.join(group[1:])}" for group in groups)


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
    note = "Times the rate without the setting, with the interval at which it is decided"
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
    headings = ("setting", "work", "metric", "ratio", "interval", "verdict")
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
        headings = ("pair", "work", "metric", "together over alone", "interval", "act on each other")
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
    return f"{one.ratio:.3g} times{span}"
