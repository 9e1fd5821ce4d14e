"""What is said of requirements: sentences, and a section that begins the report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from leadline.verdict.model import UNUSABLE, JudgedRequirement, RequiredFigure, Statement, outcome_words
from leadline.verdict.sections.section import Item, Section, TextTable, Words

if TYPE_CHECKING:
    from leadline.verdict.requirements.requirements import Requirements

_NOTE = (
    "Met: the whole 95 % interval fulfils what is asked; not met: none of it does. Inconclusive: it lies on"
    " both sides, there is none, or a cell is not VALID."
)
_ORDER = (False, None, True)
_NAMED = 5


def requirement_line(found: Sequence[JudgedRequirement]) -> str:
    """All of them in a sentence: how many are met, and which are not."""
    parts = []
    for met, words in ((True, "met"), (False, "not met"), (None, "inconclusive")):
        own = [one.name for one in found if one.met is met]
        if own or met:
            names = "" if met or not own else f" ({_listed(own)})"
            parts.append(f"{len(own)} {words}{names}")
    return f"Of {len(found)} requirement{'' if len(found) == 1 else 's'} {', '.join(parts)}."


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")


def requirement_statements(found: Sequence[JudgedRequirement]) -> Iterator[Statement]:
    """One of all, then one of each, those that are not met first."""
    if not found:
        return
    yield Statement("headline", requirement_line(found), says="requirements_judged")
    for met in _ORDER:
        for one in found:
            if one.met is met:
                yield _statement(one)


def _statement(one: JudgedRequirement) -> Statement:
    where = f" ({one.source})" if one.source else ""
    asked = f"Requirement {one.name}{where}, {one.asked}, is {outcome_words(one.verdict)}"
    evidence = tuple(_words(figure) for figure in one.figures) if len(one.figures) > 1 else ()
    if not one.figures:
        return Statement("caution", f"{asked}: {one.why}.", evidence, says="requirement_unmeasured")
    telling = deciding(one)
    text = f"{asked}: {_words(telling)}."
    if one.met is None:
        cells = tuple(cell for cell in telling.cells if telling.state not in UNUSABLE)
        return Statement("caution", text, evidence, says="requirement_undecided", cells=cells)
    if one.met:
        return Statement("finding", text, evidence, says="requirement_met", cells=telling.cells)
    return Statement("caution", text, evidence, says="requirement_not_met", cells=telling.cells)


def deciding(one: JudgedRequirement) -> RequiredFigure:
    """The figure that the verdict rests on first: one that is as the requirement is."""
    return next((figure for figure in one.figures if figure.met is one.met), one.figures[0])


def _words(figure: RequiredFigure) -> str:
    seen = f"{figure.figure} of {' and '.join(figure.cells)} is {figure.seen}" if figure.seen else ""
    if figure.state in UNUSABLE or figure.seen == "not measured":
        return f"{figure.figure}: {figure.why}"
    return f"{seen}{f': {figure.why}' if figure.why else ''}"


def requirements_section(asked: Requirements | None, found: Sequence[JudgedRequirement]) -> Section | None:
    """None where nothing was required."""
    if asked is None:
        return None
    rows = tuple(row for one in found for row in _rows(one))
    table = TextTable(
        asked.title or "Requirements",
        ("requirement", "verdict", "asked", "cell", "measured (95 % interval)"),
        rows,
        note=f"From: {asked.document}. {_NOTE}" if asked.document else _NOTE,
        spaced=True,
    )
    items = tuple(
        Item(
            one.source or one.asked,
            lead=f"{one.name}: {outcome_words(one.verdict)}.",
            doubtful=one.met is not True,
            details=tuple(_open(one)),
        )
        for one in found
    )
    return Section(
        "requirements",
        "Requirements",
        (table, Words(items, title="Where they come from, and what would decide them")),
        json={"requirements": {"asked": asked.as_json(), "judged": [_as_json(one) for one in found]}},
        leads=True,
    )


def _rows(one: JudgedRequirement) -> Iterator[tuple[str, ...]]:
    if not one.figures:
        yield one.name, outcome_words(one.verdict), one.asked, one.where, one.why
        return
    for place, figure in enumerate(one.figures):
        name, verdict = (one.name, outcome_words(one.verdict)) if place == 0 else ("", "")
        own = {True: "", False: "not met: ", None: "inconclusive: "}[figure.met]
        measured = figure.seen or figure.why
        yield name, verdict, figure.asked, ", ".join(figure.cells), f"{own}{measured}"


def _open(one: JudgedRequirement) -> Iterator[str]:
    """What leaves it undecided, and what would decide it."""
    if one.why:
        yield f"{one.why}; {one.decides}"
    if one.met is None:
        yield from dict.fromkeys(_why(figure) for figure in one.figures if figure.met is None)


def _why(figure: RequiredFigure) -> str:
    """With its cells, where the reason does not name them."""
    cells = ", ".join(figure.cells)
    where = "" if figure.why.startswith(figure.cells) else f"{cells}: "
    return f"{where}{figure.why}{f'; {figure.decides}' if figure.decides else ''}"


def _as_json(one: JudgedRequirement) -> dict[str, Any]:
    return {**asdict(one), "verdict": one.verdict}
