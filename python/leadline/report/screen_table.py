"""The table of the first screen, from the richest form to the shortest.

Every number has its unit, every ratio its words, and what was not measured its reason.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from leadline.report import format as fmt
from leadline.report.figures import printed_figures
from leadline.verdict.model import UNUSABLE, Comparison, FigureTable, State
from leadline.verdict.sections import numbers
from leadline.verdict.sections.section import AskedFigure, Marked, StudyAnswer, TextTable

INVALID = "INVALID"
DOUBT = "*"  # the one mark: a doubt that can change the answer


def metric_unit(label: str) -> str:
    """The unit of a metric of cells: what is done in a second are operations."""
    return "IOPS" if label == "1/s" else label


def value_words(figure: AskedFigure) -> str:
    """The value with its unit; INVALID in its place, or why there is none."""
    item = figure.quantity
    if figure.state == "INVALID" and item.value is not None:
        return INVALID
    if item.value is None or not math.isfinite(item.value):
        return fmt.printable(item.text) if item.text else absent_words(figure)
    return fmt.with_unit(item.value, metric_unit(item.unit))


def absent_words(figure: AskedFigure) -> str:
    """Why there is no value, as short as a cell of a table needs it; the whole reason stands below."""
    if figure.state == "INVALID":
        return INVALID
    if not figure.cell:
        return "not possible"
    reason = fmt.printable(figure.quantity.reason or "")
    if 0 < len(reason) <= _SHORT_REASON:
        return reason
    return "not run" if figure.state == "NOT_RUN" else "not measured"


_SHORT_REASON = 24  # letters that a cell has room for


def ci_words(figure: AskedFigure) -> str:
    """How far the confidence interval of the value reaches, or why there is none."""
    return "" if figure.state in UNUSABLE else fmt.spread(figure.quantity)


def ratio_words(figure: AskedFigure) -> str:
    """`5.1x slower`, `equivalent`, `inconclusive`; empty where nothing is compared."""
    found = figure.comparison
    if found is None or figure.state in UNUSABLE or figure.quantity.value is None:
        return ""
    if not comparable(found):
        return "not comparable"
    return f"{numbers.outcome(found)}{DOUBT if doubt_of(figure) == 'DOUBTFUL' else ''}"


def comparable(comparison: Comparison) -> bool:
    """False where one of its sides cannot be used."""
    return comparison.validity not in ("INVALID", "NOT_RUN") and comparison.ratio is not None


def doubt_of(figure: AskedFigure) -> State:
    """The state of a figure and of what it is compared with, without doubts that cannot change the answer."""
    if figure.footnoted:
        return "VALID" if figure.state == "DOUBTFUL" else figure.state
    found = figure.comparison
    doubtful = found is not None and found.validity == "DOUBTFUL" and figure.state == "VALID"
    return "DOUBTFUL" if doubtful else figure.state


WIDTH = 100
_PATH_MAX = (60, 50, 42, 34, 26)  # letters of a path in a table: its end tells more than its beginning


@dataclass(frozen=True)
class ScreenTable:
    """Headings and rows of printed text; columns in `right` are right-aligned. `notes` stand below.

    A row of one text is a line of its own. `again` are the rows that are headings once more, where a table is
    split. `cut` says how much there is besides, where workloads or targets are left out.
    """

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    right: frozenset[int]
    notes: tuple[str, ...] = ()
    cut: str = ""
    again: frozenset[int] = frozenset()

    def is_number(self, place: int) -> bool:
        """True for a column of numbers."""
        return place in self.right


@dataclass(frozen=True)
class _Grid:
    """Figures by work and target, in the order of the study."""

    works: tuple[str, ...]
    targets: tuple[str, ...]
    places: dict[tuple[str, str], AskedFigure]
    against: str
    cut: str = ""

    @property
    def shown(self) -> list[AskedFigure]:
        """Those that are in it, work by work."""
        every = ((work, target) for work in self.works for target in self.targets)
        return [self.places[place] for place in every if place in self.places]


def forms_of(answer: StudyAnswer) -> Iterator[ScreenTable]:
    """Tables of the same figures, each shorter or narrower than the one before."""
    if isinstance(answer.matrix, TextTable):
        yield from _lists(answer.matrix)
        return
    if answer.matrix is not None:
        yield from _matrices(answer.matrix)
        return
    leading = tuple(one for one in answer.figures if one.leads)
    for figures in (answer.figures, leading) if leading != answer.figures else (leading,):
        grid = _grid(figures, answer.against)
        yield from (shape(grid) for shape in (_long, _beside, _listed, _stacked))
    grid = _grid(leading, answer.against)
    held = any(one.comparison for one in grid.shown)
    entries = (_ratio_or_value,) if held else (value_words,)
    count = len(grid.targets)
    for across in range(count, 1, -1):  # beside one another, and the rest below
        yield from (_split(grid, entry, across) for entry in entries)
    for works in range(len(grid.works), 0, -1):
        for targets in range(count, 0, -1) if works <= 1 else (count, 10, 6, 4):
            smaller = _cut(grid, works, targets)
            shapes = (_long, _beside, _listed, _stacked)
            yield from (shape(smaller) for shape in shapes)
            yield from (_split(smaller, entry, across) for across in (7, 6, 5) for entry in entries)


def _grid(figures: Sequence[AskedFigure], against: str) -> _Grid:
    works = tuple(dict.fromkeys(one.work for one in figures))
    targets = tuple(dict.fromkeys(one.target for one in figures))
    return _Grid(works, targets, {(one.work, one.target): one for one in figures}, against)


def _cut(grid: _Grid, works: int, targets: int) -> _Grid:
    """The workloads and targets that differ most for certain, in the study's order; of equal ones the first.

    A workload that could not be compared stands first: what has no value may be the worst of all.
    """
    if works >= len(grid.works) and targets >= len(grid.targets):
        return grid

    def differs(name: str, place: int) -> float:
        own = [one for one in grid.places.values() if (one.work, one.target)[place] == name]
        if place == 0 and any(_is_lost(one) for one in own):
            return math.inf
        return max((one.comparison.least_factor for one in own if one.comparison), default=1.0)

    base = [name for name in grid.targets if all(one.comparison is None for one in _of(grid, name))]
    ranked = sorted(grid.works, key=lambda name: -differs(name, 0))[:works]
    others = sorted(
        (name for name in grid.targets if name not in base[:1]), key=lambda name: -differs(name, 1)
    )
    kept = {*base[:1], *others[: targets - len(base[:1])]}
    parts = [f"{len(ranked)} of {len(grid.works)} workloads"] if len(ranked) < len(grid.works) else []
    parts += [f"{len(kept)} of {len(grid.targets)} targets"] if len(kept) < len(grid.targets) else []
    by = "that differ most for certain" if any(one.comparison for one in grid.shown) else "the study's first"
    return replace(
        grid,
        works=tuple(name for name in grid.works if name in ranked),
        targets=tuple(name for name in grid.targets if name in kept),
        cut=f"{' and '.join(parts)}, {by}; --all has the rest" if parts else "",
    )


def _of(grid: _Grid, target: str) -> list[AskedFigure]:
    return [one for one in grid.places.values() if one.target == target]


def _is_lost(one: AskedFigure) -> bool:
    """It ran and has no value to use."""
    return bool(one.cell) and (one.quantity.value is None or one.state in UNUSABLE)


def _long(grid: _Grid) -> ScreenTable:
    """A row for each figure, with the intervals of value and ratio."""
    several, held = len(grid.targets) > 1, any(one.comparison for one in grid.shown)
    headings = ["workload", *(["target"] if several else []), "value", _CI]
    headings += [f"compared with {grid.against}" if grid.against else "compared", _CI] if held else []
    rows, before = [], ""
    for one in grid.shown:
        row = ["" if one.work == before else one.work, *([one.target] if several else [])]
        before = one.work
        value = f"{value_words(one)}{'' if held and one.comparison else _mark(one)}"
        rows.append((*row, value, ci_words(one), *(_compared(one) if held else ())))
    right = {2 if several else 1}
    return ScreenTable(tuple(headings), tuple(rows), frozenset(right), _notes(grid, headed=True), grid.cut)


_CI = "95 % CI"


def _mark(one: AskedFigure) -> str:
    return DOUBT if doubt_of(one) == "DOUBTFUL" else ""


def _compared(one: AskedFigure) -> tuple[str, str]:
    words = ratio_words(one)
    if not words or one.comparison is None or not comparable(one.comparison):
        return (words, "")
    return (words, numbers.bounds(one.comparison))


def _beside(grid: _Grid) -> ScreenTable:
    """A row for each workload; each target has its value, and behind it the ratio."""

    def entry(one: AskedFigure) -> str:
        return ", ".join(filter(None, (_value_with_ci(one), ratio_words(one))))

    rows = tuple(
        (work, *(_of_place(grid, work, name, entry) for name in grid.targets)) for work in grid.works
    )
    return ScreenTable(("workload", *grid.targets), rows, frozenset(), _notes(grid), grid.cut)


def _value_with_ci(one: AskedFigure) -> str:
    mark = "" if one.comparison else _mark(one)
    return " ".join(filter(None, (f"{value_words(one)}{mark}", ci_words(one))))


def _stacked(grid: _Grid) -> ScreenTable:
    """Two lines for each workload: the values, and the ratios."""
    rows = []
    for work in grid.works:
        rows.append((work, *(_of_place(grid, work, name, _marked_value) for name in grid.targets)))
        below = [_of_place(grid, work, name, ratio_words) for name in grid.targets]
        rows += [("", *below)] if any(below) else []
    return ScreenTable(("workload", *grid.targets), tuple(rows), frozenset(), _notes(grid), grid.cut)


def _marked_value(one: AskedFigure) -> str:
    return f"{value_words(one)}{'' if one.comparison else _mark(one)}"


def _listed(grid: _Grid) -> ScreenTable:
    """For a narrow terminal: a line for each workload, and below it one for each target."""
    rows: list[tuple[str, ...]] = []
    for work in grid.works:
        rows.append((work,))
        own = [one for name in grid.targets if (one := grid.places.get((work, name)))]
        for one in own:
            rows.append((f"  {one.target}", _value_with_ci(one)))
            rows += [("", words)] if (words := ratio_words(one)) else []
    return ScreenTable(("workload", "value"), tuple(rows), frozenset(), _notes(grid), grid.cut)


def _split(grid: _Grid, entry: Callable[[AskedFigure], str], across: int) -> ScreenTable:
    """One text for each workload and target, `across` targets beside one another and the others below."""
    rows: list[tuple[str, ...]] = []
    again = set()
    for first in range(0, len(grid.targets), across):
        names = grid.targets[first : first + across]
        blank = ("",) * (min(across, len(grid.targets)) - len(names))
        if first:
            again.add(len(rows))
            rows.append(("workload", *names, *blank))
        rows += [(work, *(_of_place(grid, work, one, entry) for one in names), *blank) for work in grid.works]
    headings = ("workload", *grid.targets[:across])
    return ScreenTable(headings, tuple(rows), frozenset(), _notes(grid), grid.cut, frozenset(again))


def _ratio_or_value(one: AskedFigure) -> str:
    return ratio_words(one) or _marked_value(one)


def _of_place(grid: _Grid, work: str, target: str, words: Callable[[AskedFigure], str]) -> str:
    one = grid.places.get((work, target))
    return "" if one is None else words(one)


def _notes(grid: _Grid, *, headed: bool = False) -> tuple[str, ...]:
    """What ratios are to, where no heading says it, what the mark means, and why values are missing."""
    notes = []
    if any(one.comparison for one in grid.shown) and grid.against and not headed:
        notes.append(f"Compared with {grid.against}.")
    if any(doubt_of(one) == "DOUBTFUL" for one in grid.shown):
        notes.append(f"{DOUBT} DOUBTFUL: see below.")
    reasons: dict[str, list[str]] = {}
    for one in grid.shown:
        item, why = one.quantity, one.quantity.reason or ""
        if item.value is None and not item.text and len(why) > _SHORT_REASON:
            reasons.setdefault(why, []).append(f"{one.target} in {one.work}")
    for reason, places in list(reasons.items())[:_REASONS]:
        more = f" and {len(places) - 1} more" if len(places) > 1 else ""
        notes.append(f"{places[0]}{more}: {reason}.")
    return tuple(notes)


_REASONS = 3  # why values are missing, in words


def _matrices(table: FigureTable) -> Iterator[ScreenTable]:
    """The rows of a table of words, fewer and fewer of them."""
    item = printed_figures(table)
    rows, headings = [], (*item.keys, *item.columns)
    for row in item.rows:
        keys = row.keys if row.first else ("",) * (len(row.keys) - 1) + row.keys[-1:]
        rows.append((*keys, *("INVALID" if bad else one.text for one, bad in row.flagged)))
    for count in range(len(rows), 0, -1):
        cut = "" if count == len(rows) else f"{count} of {len(rows)} rows; --all has the rest"
        yield ScreenTable(headings, tuple(rows[:count]), frozenset(), (item.note,), cut)
    for columns in range(len(headings) - 1, len(item.keys), -1):
        cut = f"{columns - len(item.keys)} of {len(item.columns)} columns; --all has the rest"
        few = tuple(row[:columns] for row in rows[:1])
        yield ScreenTable(headings[:columns], few, frozenset(), (item.note,), cut)


def _lists(table: TextTable) -> Iterator[ScreenTable]:
    """The first rows of a table of texts: its paths shorter and shorter, then fewer and fewer rows."""
    rows = table.rows[: table.brief]
    total = max(table.total, len(table.rows))
    forms = [(len(rows), longest) for longest in _PATH_MAX]
    for count, longest in (*forms, *((count, _PATH_MAX[-1]) for count in range(len(rows) - 1, 0, -1))):
        texts = tuple(tuple(_text(entry, longest) for entry in row) for row in rows[:count])
        cut = "" if count >= total else f"{count} of {total:,} rows; --all has more"
        notes = (table.note,) if table.note else ()
        yield ScreenTable(table.headings, texts, table.right, notes, cut)
        if count <= _ACROSS:
            yield _transposed(table.headings, texts, notes, cut)


_ACROSS = 6  # rows that may stand beside one another where a table is too wide


def _transposed(
    headings: tuple[str, ...], rows: tuple[tuple[str, ...], ...], notes: tuple[str, ...], cut: str
) -> ScreenTable:
    """A line for each column: of a table with more columns than a terminal is wide."""
    first, *rest = zip(headings, *rows, strict=True)
    return ScreenTable(first, tuple(rest), frozenset(), notes, cut)


def _text(entry: str | Marked, longest: int) -> str:
    text = fmt.printable(entry.text if isinstance(entry, Marked) else entry)
    return text if len(text) <= longest or not text.startswith("/") else f"\u2026{text[1 - longest :]}"
