"""The section of a report that says what bounds each cell: a line each, the way of some as a picture, why."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from leadline.units import format_latency, format_rate
from leadline.verdict.diagnosis.budget import LatencyBudget, bar_of, nothing_seen
from leadline.verdict.diagnosis.document import cell_json
from leadline.verdict.diagnosis.judge import CauseNamed
from leadline.verdict.diagnosis.of_result import CellDiagnosed
from leadline.verdict.diagnosis.unseen import measured_by
from leadline.verdict.sections.charts import PlacesChain
from leadline.verdict.sections.section import Item, Panels, Section, TextTable, Words

PICTURES_MAX = 6  # a result may have hundreds of cells, and most of them are bound alike
_STILL_MAX = 2
_LINES_MAX = 40  # in reports that are no page
_NOTE = (
    "By what observers saw while each cell was measured. Of it: measured, of the least that a link, the"
    " device or what is in flight allows. The share behind a cause is of a request's time, how full what is"
    " full is, or the part of the time in which it held. Present means that nothing measures how much it"
    " takes. All evidence, and what comes next: leadline diagnose DIR --cell TARGET.WORK"
)
_HEADINGS = ("Cell", "Measured", "Should be", "Of it", "Allowed by", "Bound by")
_PICTURES = (
    "From the work to the device: how much of each part was in use, and what waited there. The part that"
    " bounds is marked. What was not observed has a dashed frame."
)


def bounds_section(cells: Sequence[CellDiagnosed]) -> Section | None:
    """None where of no cell anything is named, nor known what it should reach."""
    if not any(one.found.named or one.should for one in cells):
        return None
    pictured = _pictured(cells)
    lines = TextTable(
        "Measured, and what it should be",
        _HEADINGS,
        tuple(_line(one) for one in cells),
        right=frozenset({1, 2, 3}),
        total=len(cells),
        brief=_LINES_MAX,
    )
    times = [(one, one.found.budget) for one in pictured]
    time = tuple(_time(one, budget) for one, budget in times if budget is not None)
    why = Words(tuple(_why(one) for one in pictured), title="Why")
    return Section(
        "bounds",
        "What bounds each cell",
        (
            lines,
            *_pictures(pictured, len(cells)),
            *([Words(time, title="Where the time of a request goes")] if time else []),
            *([why] if pictured else []),
        ),
        "Bounds",
        _NOTE,
        json={"bounds": {"cells": [cell_json(one) for one in cells]}},
        in_csv=False,
    )


def _pictures(pictured: Sequence[CellDiagnosed], every: int) -> tuple[Panels, ...]:
    """Without scripts the first are drawn, and the others said: to draw one takes a tenth of a second."""
    if not pictured:
        return ()
    some = f" {len(pictured)} of {every} cells: each cause is there." if len(pictured) < every else ""
    chains = tuple(_chain(place, one) for place, one in enumerate(pictured))
    first, others = chains[:_STILL_MAX], chains[_STILL_MAX:]
    drawn = Panels((first,), "The way of a cell, part by part", _PICTURES + some, still=True)
    return (drawn, *([Panels((others,), "The way of further cells")] if others else ()))


def _pictured(cells: Sequence[CellDiagnosed]) -> list[CellDiagnosed]:
    """One cell of each way to be bound, then others, in the order of the report; none without a cause."""
    named = [one for one in cells if one.found.named]
    first: dict[tuple[str, ...], CellDiagnosed] = {}
    for one in named:
        first.setdefault(tuple(cause.entry.name for cause in one.found.named), one)
    unlike = list(first.values())[:PICTURES_MAX]
    others = [one for one in named if not any(one is other for other in unlike)]
    chosen = [*unlike, *others[: PICTURES_MAX - len(unlike)]]
    return [one for one in named if any(one is other for other in chosen)]


def _line(one: CellDiagnosed) -> tuple[str, ...]:
    should, word = one.should, _word(one)
    if should is None:
        return (one.name, _measured(one), "", "", "not known", f"{word}{one.found.words}")
    least = should.ceilings[0]
    return (
        one.name,
        f"{word}{format_rate(should.measured)}",
        format_rate(least.bytes_per_s),
        f"{word}{100 * should.share:.0f} %",
        least.by,
        f"{word}{one.found.words}",
    )


def _measured(one: CellDiagnosed) -> str:
    """What was moved a second, where any of it is known; a metadata cell moves nothing."""
    rates = [rate for figures in one.found.figures if isinstance(rate := figures["bytes_per_s"], float)]
    return f"{_word(one)}{format_rate(fmean(rates))}" if any(rates) else ""


def _word(one: CellDiagnosed) -> str:
    """No figure of an INVALID cell stands without that word."""
    return "INVALID " if one.cell.validity.state == "INVALID" else ""


def _chain(place: int, one: CellDiagnosed) -> PlacesChain:
    bound = f"{_word(one)}bound by {one.found.words}"
    return PlacesChain(f"places-{place}", one.name, bound, one.found.uses, one.cell.validity.state)


def _time(one: CellDiagnosed, budget: LatencyBudget) -> Item:
    """The bar of a cell, and what its letters are."""
    whole = format_latency(budget.whole_s * 1e9)
    if words := nothing_seen(budget):
        return Item(f"{_word(one)}{whole}", one.name, details=(words,))
    letters, said, unseen = bar_of(budget)
    details = (*said, *([unseen] if unseen else []))
    return Item(f"{_word(one)}[{letters}] {whole}", one.name, details=details)


def _why(one: CellDiagnosed) -> Item:
    behind = [f"Behind it: {cause.words}: {cause.evidence}." for cause in one.found.behind[:1]]
    details = [line for cause in one.found.named for line in _of_cause(cause)]
    seen = "; ".join(
        f"{cause.evidence}, in {cause.held} of {cause.trials} trials" for cause in one.found.named
    )
    text = f"{_word(one)}bound by {one.found.words}: {seen}"
    return Item(text, one.name, details=(*details, *behind))


def _of_cause(cause: CauseNamed) -> tuple[str, ...]:
    entry = cause.entry
    return (
        entry.means,
        *([f"To measure how much it takes: {measured_by(cause)}"] if cause.share is None else []),
        *(f"Against it: {words}." for words in cause.against),
        f"To be sure: {entry.experiment}",
        f"Remedy: {entry.remedy} (price: {entry.price})",
    )
