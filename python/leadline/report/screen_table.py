"""The table of the first screen, from the richest form to the shortest, and its numbers in two digits."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from leadline.report import format as fmt
from leadline.report.figures import printed_figures
from leadline.units import format_number
from leadline.verdict.model import UNUSABLE, Comparison, FigureTable, Outcome, Quantity, State
from leadline.verdict.sections import numbers
from leadline.verdict.sections.section import AskedFigure, Marked, StudyAnswer, TextTable

INVALID = "INVALID"
VERDICT_MARKS: dict[Outcome, str] = {"faster": "+", "slower": "-", "same": "=", "undecided": "?"}
STATE_MARKS: dict[State, str] = {"VALID": "", "DOUBTFUL": "*", "INVALID": "", "NOT_RUN": ""}
_WIDE = "\u00b1?"  # an interval that reaches as far as the figure itself

# Largest first; below the last the number itself.
_PREFIXES: dict[str, tuple[tuple[float, str], ...]] = {
    "B/s": ((2.0**40, "T"), (2.0**30, "G"), (2.0**20, "M"), (2.0**10, "K")),
    "1/s": ((1e9, "G"), (1e6, "M"), (1e3, "k")),
    "ns": ((1e9, "s"), (1e6, "m"), (1e3, "\u00b5"), (1.0, "n")),
    "s": ((60.0, "min"), (1.0, "s"), (1e-3, "ms")),
}
UNITS = {"B/s": "B/s", "1/s": "1/s", "ns": "s", "s": ""}  # what stands behind the prefix, said once a row


def metric_unit(label: str) -> str:
    """The unit of a metric of cells: what is done in a second are operations."""
    return "IOPS" if label == "1/s" else label


def short_number(value: float, unit: str) -> str:
    """`2.3G`, `480k`, `3.5µ`: two digits and a prefix."""
    for divisor, prefix in _PREFIXES.get(unit, ()):
        if abs(value) >= divisor * 0.995:
            return f"{_two(value / divisor)}{prefix}"
    return _two(value)


def _two(value: float) -> str:
    if not math.isfinite(value):
        return fmt.NO_VALUE
    if abs(value) >= 1000:
        return f"{value:.1e}".replace("e+0", "e").replace("e+", "e")
    return format_number(value, 2)


def short_figure(figure: AskedFigure) -> str:
    """The figure with half its interval in percent; INVALID in its place, and a dash where there is none."""
    item = figure.quantity
    if item.value is None or not math.isfinite(item.value):
        return fmt.NO_VALUE
    if figure.state == "INVALID":
        return INVALID
    return f"{short_number(item.value, item.unit)}{_half(item)}"


def _half(item: Quantity) -> str:
    if item.value is None or item.low is None or item.high is None or not item.value:
        return ""
    half = 100 * max(item.high - item.value, item.value - item.low) / abs(item.value)
    return f"\u00b1{half:.0f}" if half < 99.5 else _WIDE


def short_ratio(figure: AskedFigure) -> str:
    """How many times faster or slower, with the marks of verdict and doubt: `5.1x-*`; else the marks."""
    found = figure.comparison
    shown = found is not None and figure.state not in UNUSABLE and comparable(found)
    return f"{_times(found) if shown and found else ''}{short_marks(figure)}"


def short_marks(figure: AskedFigure) -> str:
    """The marks of verdict and doubt alone."""
    found = figure.comparison
    if figure.state in UNUSABLE or found is None or not comparable(found):
        return STATE_MARKS[figure.state]
    return f"{VERDICT_MARKS[found.verdict]}{STATE_MARKS[doubt_of(figure)]}"


def comparable(comparison: Comparison) -> bool:
    """False where one of its sides cannot be used."""
    return comparison.validity not in ("INVALID", "NOT_RUN") and comparison.ratio is not None


def doubt_of(figure: AskedFigure) -> State:
    """The state of a figure and of what it is held against."""
    found = figure.comparison
    doubtful = found is not None and found.validity == "DOUBTFUL" and figure.state == "VALID"
    return "DOUBTFUL" if doubtful else figure.state


def compared(found: Comparison) -> tuple[str, str]:
    """A comparison in words, and its confidence interval: `5.1x slower` and `4.2 to 6.0`.

    Of what is faster or slower the interval is of that factor, of the rest of the ratio itself.
    """
    return (numbers.outcome(found), numbers.bounds(found))


def _times(found: Comparison) -> str:
    factor = numbers.factor_of(found)
    if factor is None:
        return ""
    return ">999x" if factor >= 999.5 else f"{_two(factor)}x"


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
    return (text, fmt.spread(item).removeprefix("\u00b1 "))


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
