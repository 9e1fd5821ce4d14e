"""The table of the first screen in every form that it can have, from the richest to the shortest.

A row for each work and target; or a row for each work with the targets beside each other; or two lines for
each work, its figures and below them the ratios. Where even that is too much, those works and targets stay
that differ most for certain, and the note says how many there are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from leadline.report import format as fmt
from leadline.report.screen.short import (
    comparable,
    compared,
    doubt_of,
    metric_unit,
    short_figure,
    short_ratio,
)
from leadline.report.sections.figures import printed_figures
from leadline.verdict.model import UNUSABLE, FigureTable
from leadline.verdict.sections.answer import AskedFigure, StudyAnswer
from leadline.verdict.sections.section import Marked, TextTable

WIDTH = 100
_PATH_MAX = (60, 50, 42, 34, 26)  # letters of a path in a table: its end tells more than its beginning
_MARKS = "5x+ five times faster, 5x- slower, = equivalent, ? inconclusive"
_SPREAD = "\u00b1 half the 95 % CI in %, \u00b1? 100 or more"
_DOUBT = "* DOUBTFUL"


@dataclass(frozen=True)
class ScreenTable:
    """Headings and rows of printed text; columns from `numbers` on are right-aligned. `notes` stand below.

    `cut` says how much there is besides, where works or targets are left out.
    """

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numbers: int
    notes: tuple[str, ...] = ()
    cut: str = ""

    def is_number(self, place: int) -> bool:
        """True for a column of numbers; words stand behind those of a long table."""
        words = {""} & set(self.headings)
        return self.numbers <= place < len(self.headings) - len(words)


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
    """Tables of the same figures, each shorter than the one before."""
    if isinstance(answer.matrix, TextTable):
        yield from _lists(answer.matrix)
        return
    if answer.matrix is not None:
        yield from _matrices(answer.matrix)
        return
    leading = tuple(one for one in answer.figures if one.leads)
    for figures in (answer.figures, leading) if leading != answer.figures else (leading,):
        grid = _grid(figures, answer.against)
        yield from (shape(grid) for shape in (_long, _beside))
    grid = _grid(leading, answer.against)
    held = any(one.comparison for one in grid.shown)
    shapes = (_stacked, _beside) if held else (_beside,)
    for works in range(len(grid.works), 0, -1):
        for targets in range(len(grid.targets), 0, -1) if works <= 1 else (len(grid.targets), 10, 6, 4):
            yield from (shape(_cut(grid, works, targets)) for shape in shapes)


def _grid(figures: Sequence[AskedFigure], against: str) -> _Grid:
    works = tuple(dict.fromkeys(one.work for one in figures))
    targets = tuple(dict.fromkeys(one.target for one in figures))
    return _Grid(works, targets, {(one.work, one.target): one for one in figures}, against)


def _cut(grid: _Grid, works: int, targets: int) -> _Grid:
    """The works and targets that differ most for certain, in the study's order; of equal ones the first."""
    if works >= len(grid.works) and targets >= len(grid.targets):
        return grid

    def differs(name: str, place: int) -> float:
        own = [one for one in grid.places.values() if (one.work, one.target)[place] == name]
        return max((one.comparison.least_factor for one in own if one.comparison), default=1.0)

    base = [name for name in grid.targets if all(one.comparison is None for one in _of(grid, name))]
    ranked = sorted(grid.works, key=lambda name: -differs(name, 0))[:works]
    others = sorted(
        (name for name in grid.targets if name not in base[:1]), key=lambda name: -differs(name, 1)
    )
    kept = {*base[:1], *others[: targets - len(base[:1])]}
    parts = [f"{len(ranked)} of {len(grid.works)} works"] if len(ranked) < len(grid.works) else []
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


def _long(grid: _Grid) -> ScreenTable:
    """A row for each figure, every number with all its digits."""
    several, held = len(grid.targets) > 1, any(one.comparison for one in grid.shown)
    headings = ["workload", *(["target"] if several else []), "value", "\u00b1"]
    headings += ["compared", "interval"] if held else []
    rows, before = [], ""
    for one in grid.shown:
        row = ["" if one.work == before else one.work, *([one.target] if several else [])]
        before = one.work
        rows.append((*row, *_figure(one), *(_compared(one) if held else ()), _state(one)))
    notes = [f"Compared with {grid.against}."] if held and grid.against else []
    return ScreenTable((*headings, ""), tuple(rows), 2 if several else 1, tuple(notes), grid.cut)


def _figure(one: AskedFigure) -> tuple[str, str]:
    item = one.quantity
    if item.value is None:
        return (item.text or fmt.NO_VALUE, "")
    text = fmt.with_unit(item.value, metric_unit(item.unit))
    if one.state == "INVALID":
        return (f"INVALID {text}", "")
    return (text, fmt.spread(item).removeprefix("\u00b1"))


def _compared(one: AskedFigure) -> tuple[str, str]:
    found = one.comparison
    if found is None:
        return ("", "")
    if one.state in UNUSABLE or not comparable(found):
        return ("not comparable", "")
    return compared(found)


def _state(one: AskedFigure) -> str:
    return "" if doubt_of(one) == "VALID" else doubt_of(one).replace("_", " ")


def _beside(grid: _Grid) -> ScreenTable:
    """A row for each work; each target has a figure, and behind it the ratio with its marks."""
    rows = [
        (work, *(" ".join(filter(None, _entry(grid, work, target))) for target in grid.targets))
        for work in grid.works
    ]
    return ScreenTable(("workload", *grid.targets), tuple(rows), 1, _legend(grid, "behind"), grid.cut)


def _stacked(grid: _Grid) -> ScreenTable:
    """Two lines for each work: the figures, and the ratios with their marks."""
    rows = []
    for work in grid.works:
        pairs = [_entry(grid, work, target) for target in grid.targets]
        rows.append((work, *(pair[0] for pair in pairs)))
        rows.append(("", *(pair[1] for pair in pairs)))
    return ScreenTable(("workload", *grid.targets), tuple(rows), 1, _legend(grid, "below"), grid.cut)


def _entry(grid: _Grid, work: str, target: str) -> tuple[str, str]:
    one = grid.places.get((work, target))
    return (fmt.NO_VALUE, "") if one is None else (short_figure(one), short_ratio(one))


def _legend(grid: _Grid, where: str) -> tuple[str, ...]:
    units = dict.fromkeys(one.quantity.unit for one in grid.shown if one.quantity.value is not None)
    words = {"B/s": "B/s (M = 1024 K)", "ns": "seconds", "s": "time"}
    named = " or ".join(words.get(unit, metric_unit(unit)) for unit in units)
    figures = f"Values in {named}; {_SPREAD}; {_DOUBT}."
    if not any(one.comparison for one in grid.shown):
        return (figures,)
    return (f"{figures} Ratios {where} are to {grid.against}: {_MARKS}.",)


def _matrices(table: FigureTable) -> Iterator[ScreenTable]:
    """The rows of a table of words, fewer and fewer of them."""
    item = printed_figures(table)
    rows, headings = [], (*item.keys, *item.columns)
    for row in item.rows:
        keys = row.keys if row.first else ("",) * (len(row.keys) - 1) + row.keys[-1:]
        rows.append((*keys, *("INVALID" if bad else one.text for one, bad in row.flagged)))
    for count in range(len(rows), 0, -1):
        cut = "" if count == len(rows) else f"{count} of {len(rows)} rows; --all has the rest"
        yield ScreenTable(headings, tuple(rows[:count]), len(headings), (item.note,), cut)
    for columns in range(len(headings) - 1, len(item.keys), -1):
        cut = f"{columns - len(item.keys)} of {len(item.columns)} columns; --all has the rest"
        few = tuple(row[:columns] for row in rows[:1])
        yield ScreenTable(headings[:columns], few, columns, (item.note,), cut)


def _lists(table: TextTable) -> Iterator[ScreenTable]:
    """The first rows of a table of texts: its paths shorter and shorter, then fewer and fewer rows."""
    rows = table.rows[: table.brief]
    total = max(table.total, len(table.rows))
    forms = [(len(rows), longest) for longest in _PATH_MAX]
    for count, longest in (*forms, *((count, _PATH_MAX[-1]) for count in range(len(rows) - 1, 0, -1))):
        texts = tuple(tuple(_text(entry, longest) for entry in row) for row in rows[:count])
        cut = "" if count >= total else f"{count} of {total:,} rows; --all has more"
        first = min(table.right, default=len(table.headings))
        yield ScreenTable(table.headings, texts, first, (table.note,) if table.note else (), cut)


def _text(entry: str | Marked, longest: int) -> str:
    text = fmt.printable(entry.text if isinstance(entry, Marked) else entry)
    return text if len(text) <= longest or not text.startswith("/") else f"\u2026{text[1 - longest :]}"
