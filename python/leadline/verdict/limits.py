"""What a report says of limits: the highest rate that searches found under each, and whether requirements
are met.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from leadline.analysis.cells import CellTable
from leadline.analysis.search import asked_rate
from leadline.analysis.statistics.means import geometric_mean
from leadline.plan.model import PlannedCell
from leadline.study.work import Search
from leadline.units import exact_duration, format_count, format_quantity
from leadline.verdict.model import (
    UNUSABLE,
    Cell,
    FigureRow,
    FigureTable,
    JudgedRequirement,
    Quantity,
    RequiredFigure,
    Statement,
    outcome_words,
)
from leadline.verdict.sections.section import Item, Section, TextTable, Words

if TYPE_CHECKING:
    from leadline.verdict.requirements import Requirements


_NOTE = (
    "Met: the whole 95 % CI meets the requirement. Not met: no part of it does. Inconclusive: the CI lies on"
    " both sides, there is no CI, or a doubt about a cell could change the verdict."
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
    return f"Of {format_count(len(found), 'requirement')} {', '.join(parts)}."


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
        ("requirement", "verdict", "asked", "cell", "measured (95 % CI)"),
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


RATE_AT = "rate_at_"  # what the metric of a search is called begins so
_SEARCH_NOTE = (
    "Operations a second in open loop. Each block gives the highest rate that was sustained with the latency"
    " within the bound, measured from the intended start. The CI is over the blocks."
)


def searches_section(
    planned: Sequence[PlannedCell], cells: Sequence[Cell], tables: Mapping[str, CellTable]
) -> Section | None:
    """A table for each bound; None of a study without searches."""
    by_bound: dict[Search, list[tuple[PlannedCell, Cell]]] = {}
    for asked, cell in zip(planned, cells, strict=True):
        if asked.search is not None:
            bound = Search(latency=asked.search.latency, bound=_written(asked.search))
            by_bound.setdefault(bound, []).append((asked, cell))
    if not by_bound:
        return None
    parts = tuple(
        _table(place, bound, found, tables) for place, (bound, found) in enumerate(by_bound.items(), start=1)
    )
    return Section("searches", "Highest rates under a bound", parts, leads=True, in_csv=False)


def _written(search: Search) -> str:
    return exact_duration(search.bound)


def _table(
    place: int,
    bound: Search,
    found: Sequence[tuple[PlannedCell, Cell]],
    tables: Mapping[str, CellTable],
) -> FigureTable:
    latency = f"latency_{bound.latency}"
    rows = []
    for _, cell in found:
        table = tables.get(cell.id)
        rate = cell.metrics.get(bound.metric) or Quantity(None, "1/s", reason="nothing was measured")
        there = _slower(cell, latency)
        if rate.value is None:  # the latency is that of a rate which did not hold
            there = Quantity(None, "ns", reason=rate.reason)
        values = (rate, there, _unbounded(table), _held(bound.metric, table))
        rows.append(FigureRow((cell.work, cell.target), values, cell.validity.state))
    return FigureTable(
        f"searches-{place}",
        f"Highest rate with {bound.latency} <= {_written(bound)}",
        ("work", "target"),
        ("rate", f"{bound.latency} there", "as fast as it goes", "blocks that held"),
        tuple(rows),
        note=_SEARCH_NOTE,
    )


def _slower(cell: Cell, latency: str) -> Quantity:
    """Of a mixed work the slower of reads and writes: the bound holds for both."""
    found = [cell.metrics.get(f"{direction}{latency}") for direction in ("", "read_", "write_")]
    measured = [item for item in found if item is not None and item.value is not None]
    return max(
        measured, key=lambda item: item.value or 0.0, default=Quantity(None, "ns", reason="not measured")
    )


def search_statements(cells: Sequence[Cell], tables: Mapping[str, CellTable]) -> Iterator[Statement]:
    """A sentence for each bound: what each cell keeps under it."""
    by_metric: dict[str, list[tuple[str, str]]] = {}
    for cell in cells:
        if cell.validity.state in UNUSABLE:
            continue
        for metric, item in cell.metrics.items():
            if metric.startswith(RATE_AT):
                kept = format_quantity(item.value, item.unit)
                if item.value is None:
                    held, blocks = _blocks(metric, tables.get(cell.id))
                    kept = f"none in {blocks - held} of {blocks} blocks" if held else "no tested rate"
                by_metric.setdefault(metric, []).append((cell.id, kept))
    for metric, found in by_metric.items():
        latency, _, bound = metric.removeprefix(RATE_AT).partition("_")
        yield Statement(
            "headline",
            f"Highest rate with {latency} <= {bound}: {', '.join(f'{cell} {kept}' for cell, kept in found)}.",
            says="rates_under_bound",
            cells=tuple(cell for cell, _ in found),
        )


def _unbounded(table: CellTable | None) -> Quantity:
    """What the first probes, which had no rate to keep, did."""
    free = [t for t in table.trials if t.state == "complete" and asked_rate(t) is None] if table else []
    rates = [rate for t in free if table and (rate := table.probes[t.trial].values.get("iops"))]
    mean = geometric_mean(rates)
    if mean is None:
        return Quantity(None, "1/s", reason="the highest rate to try was given")
    return Quantity(mean.value, "1/s", mean.low, mean.high, mean.count)


def _held(metric: str, table: CellTable | None) -> Quantity:
    return Quantity(None, "", text="{} of {}".format(*_blocks(metric, table)))


def _blocks(metric: str, table: CellTable | None) -> tuple[int, int]:
    """In how many blocks a rate held, and how many there are."""
    blocks = table.by_block.values() if table else ()
    return sum(metric in measured.values for measured in blocks), len(blocks)
