"""`leadline show`: the first screen, as far as there is room, and one figure of all cells."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from leadline import units
from leadline.errors import UsageError
from leadline.report import format as fmt
from leadline.report import metrics, tables
from leadline.report.metrics import by_operation
from leadline.report.screen_table import WIDTH, ScreenTable, forms_of, metric_unit
from leadline.report.texts import ANYWHERE, STYLES, placed, terminal_table, terminal_text, word_for
from leadline.units import unbounded
from leadline.verdict.model import Cell, Code, Comparison, Findings, Quantity, State, worst
from leadline.verdict.sections import numbers
from leadline.verdict.sections.section import AskedFigure, NextStep, StudyAnswer

if TYPE_CHECKING:
    from rich.console import Console


_RIGHT = frozenset({2, 3, 4, 5})


@dataclass(frozen=True)
class FigureOfCells:
    """Rows of printed text; columns in `right` are numbers."""

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    right: frozenset[int]
    notes: tuple[str, ...]


def figure_table(findings: Findings, figure: str) -> FigureOfCells:
    """A metric by its name in `show --json`; without an operation in front it is that of every operation.

    Raises UsageError for one that no cell has.
    """
    parts = by_operation(findings)
    source = next(
        (one for one in (parts, findings) if any(metrics.find(cell, figure) for cell in one.cells)), None
    )
    if source is None:
        known = ", ".join(metrics.all_metrics(parts.cells)) or "none: no cell has any"
        raise UsageError(f"no cell has the metric {fmt.printable(figure)!r}", f"choose one of: {known}")
    found = [(cell, *pair) for cell in source.cells if (pair := metrics.find(cell, figure))]
    names = {figure, *(name for _, name, _ in found)}
    held = {(one.work, one.other): one for one in source.comparisons if one.metric in names}
    scale = fmt.scale_for(found[0][2].unit, [item.value for _, _, item in found])
    rows = []
    for cell, _, item in found:
        one = held.get((cell.work, cell.target)) or held.get((cell.work, cell.id))
        against = ((numbers.outcome(one), numbers.bounds(one)) if one else ("", "")) if held else ()
        rows.append((cell.work, cell.target, *_printed(cell, item, scale), *against, _state(cell, one)))
    headings = ["workload", "target", metric_unit(scale.label) or "value", "95 % CI"]
    headings += [*(["compared", "95 % CI"] if held else []), "validity"]
    reasons = dict.fromkeys(item.reason for _, _, item in found if item.value is None and item.reason)
    notes = (
        *tables.comparison_notes(tuple(held.values())),
        *(f"{fmt.NO_VALUE} {why}" for why in reasons),
    )
    return FigureOfCells(tuple(headings), tuple(rows), _RIGHT if held else frozenset({2, 3}), notes)


def _printed(cell: Cell, item: Quantity, scale: fmt.Scale) -> tuple[str, str]:
    measure = tables.printed(item, scale)
    invalid = cell.validity.state == "INVALID" and item.value is not None
    narrow = item.low is not None and item.high is not None and not unbounded(item.low, item.high)
    text = f"INVALID {measure.text}" if invalid else measure.text
    return (text, measure.interval if narrow else measure.spread)


def _state(cell: Cell, one: Comparison | None) -> str:
    """The worse of the cell's state and that of what it is held against."""
    return worst([cell.validity.state, *([one.validity] if one else [])]).replace("_", " ")


HEIGHT = 40  # at the usual width; a narrower screen folds its sentences and may be longer
# Doubts, steps and sentences that are named, less and less.
_BRIEF = ((8, 3, 12), (5, 3, 9), (4, 2, 7), (3, 1, 5), (2, 1, 4), (1, 1, 2))
_GAP = 2  # between columns
_NAME_MIN, _HEADING_MIN, _HEADING_MAX = 12, 8, 40
_SHOW, _DIAGNOSE, _REPORT = "leadline show DIR --all", "leadline diagnose DIR", "leadline report DIR -o PAGE"
_DIAGNOSED = ("study", "trace")
Line = tuple[str, str]  # text, style


@dataclass(frozen=True)
class CodeDoubt:
    """A validity code with how many cells it is about, in a line and in a few letters."""

    state: State
    text: str
    short: str
    code: str = ""
    title: str = ""


@dataclass(frozen=True)
class PrintedScreen:
    """The screen as printed text, `table` in the form for which there was room.

    `footnotes` are doubts that cannot change the answer. `more` has the commands that show the rest.
    """

    question: str
    answer: str
    said: tuple[str, ...]
    table: ScreenTable | None
    doubts: tuple[CodeDoubt, ...]
    more_doubts: tuple[CodeDoubt, ...]
    steps: tuple[str, ...]
    more: tuple[str, ...] = (_SHOW,)
    footnotes: tuple[CodeDoubt, ...] = ()


def screen_of(
    findings: Findings, width: int = WIDTH, height: int = HEIGHT, word: str = ANYWHERE
) -> PrintedScreen | None:
    """The screen of a result; None where it has none. `word` is how a shell is told of the result."""
    answer = findings.answer
    if answer is None:
        return None
    every = _doubts(findings)
    footnotes = tuple(one for one in every if one.state == "DOUBTFUL" and one.code in answer.footnotes)
    doubts = tuple(one for one in every if one not in footnotes)
    steps, more = (
        tuple(placed(one, word) for one in texts) for texts in (_steps(findings, answer), _rest(findings))
    )
    height = max(height, height * WIDTH // width)
    more = tuple(one for one in more if not steps or not steps[0].endswith(one))
    screens = [
        PrintedScreen(
            fmt.printable(answer.question),
            fmt.printable(answer.text),
            _said(answer, told),
            None,
            doubts[:named],
            doubts[named:],
            steps[: 1 if findings.frame.cells else done],
            more,
            footnotes,
        )
        for named, done, told in _BRIEF
    ]
    without = [len(lines_of(one, width)) for one in screens]
    table = None
    for table in _tables(answer):
        if table is not None and (len(table.rows) > height or _narrowest(table) > width):
            continue
        rows = 0 if table is None else len(_with_notes(table, width))
        for one, others in zip(screens, without, strict=True):
            if rows + others <= height:
                return replace(one, table=table)
    return replace(screens[-1], table=table)


def _tables(answer: StudyAnswer) -> Iterator[ScreenTable | None]:
    if not answer.figures and answer.matrix is None:
        yield None
        return
    yield from forms_of(answer)


def _rest(findings: Findings) -> tuple[str, ...]:
    """The commands that show the rest; a bottleneck is looked for in what was measured or traced here."""
    found = [_DIAGNOSE] if findings.host and findings.kind in _DIAGNOSED else []
    return (*found, _SHOW, _REPORT)


def _said(answer: StudyAnswer, count: int) -> tuple[str, ...]:
    rest = len(answer.said) - count
    more = (f"and {rest} more: --all",) if rest > 0 else ()
    return (*map(fmt.printable, answer.said[:count]), *more)


def _doubts(findings: Findings) -> tuple[CodeDoubt, ...]:
    """A line a code with its cells; of a single cell that has no row of its own, with what was seen."""
    every = len(findings.cells)
    if every == 1 and not findings.frame.cells:
        codes = findings.cells[0].validity.codes
        found = tuple(_seen(one) for one in codes)
        sound = findings.answer.sound if findings.answer else ""
        return found or ((CodeDoubt("VALID", sound, ""),) if sound else ())
    return tuple(
        CodeDoubt(
            item.code.state,
            f"{fmt.printable(fmt.sentence(item.code.title))} ({fmt.printable(item.code.code)}):"
            f" {count} of {fmt.plural(every, 'cell')}",
            f"{fmt.printable(item.code.code)} {count}",
            item.code.code,
            f"{fmt.printable(item.code.title)} ({count})",
        )
        for item in tables.fired(findings)
        for count in (len({name for name, _ in item.cells}),)  # a code may fire twice in a cell
    )


def _seen(code: Code) -> CodeDoubt:
    title, name = fmt.printable(fmt.sentence(code.title)), fmt.printable(code.code)
    return CodeDoubt(code.state, f"{title} ({name}): {fmt.printable(code.evidence)}", name)


def _steps(findings: Findings, answer: StudyAnswer) -> tuple[str, ...]:
    """What to do next, what helps most first: what finishes it, makes it valid, decides or explains it,
    then the remedies of doubts that can change the answer.
    """
    unfinished = [one for one in answer.steps if one.first]
    decide = [one for one in answer.steps if not one.first]
    fired = [item for item in tables.fired(findings) if item.code.code not in answer.footnotes]
    lost = [_remedy(item) for item in fired if item.code.state == "INVALID"]
    doubtful = [_remedy(item) for item in fired if item.code.state != "INVALID" and _asks(item.code, answer)]
    if answer.run_seconds is not None and (remedies := lost or doubtful):
        remedies[0] += f" A run takes {_time(answer.run_seconds)}."
    explains, decides = [*_explained(findings, answer)], [*map(_step, decide)]
    verdicts = [one.comparison.verdict for one in answer.figures if one.leads and one.comparison]
    mostly_open = 2 * verdicts.count("undecided") > len(verdicts)
    later = (*decides, *explains) if mostly_open else (*explains, *decides)
    return (*map(_step, unfinished), *lost, *later, *doubtful)


def _explained(findings: Findings, answer: StudyAnswer) -> Iterator[str]:
    """Where something is slower, what limits it is the next question."""
    slower = [one for one in answer.figures if one.comparison and one.comparison.verdict == "slower"]
    if slower and findings.host and findings.kind in _DIAGNOSED:
        names = fmt.printable(max(slower, key=_certain).target)
        yield f"find what limits {names}: {_DIAGNOSE}"


def _certain(one: AskedFigure) -> float:
    return one.comparison.least_factor if one.comparison else 1.0


def _asks(code: Code, answer: StudyAnswer) -> bool:
    """Few blocks have their own step where that is known."""
    return code.code != "few_blocks" or not answer.steps


def _remedy(item: tables.Fired) -> str:
    return f"{fmt.printable(item.code.title)}: {fmt.printable(item.code.remedy)}"


def _step(step: NextStep) -> str:
    text = fmt.printable(step.text)
    return text if step.seconds is None else f"{text} ({_time(step.seconds)})"


def _time(seconds: float) -> str:
    """To minutes, or of short times to seconds: it is an estimate."""
    rounded = round(seconds / 60) * 60 if seconds >= 120 else round(seconds)
    return f"about {units.format_duration(float(rounded))}"


def lines_of(screen: PrintedScreen, width: int = WIDTH) -> list[Line]:
    """The screen line by line, none wider than `width`."""
    lines = [*_wrapped(screen.question, width, "bold"), *_wrapped(screen.answer, width, "")]
    for text in screen.said:
        lines += _wrapped(text, width, "", "- ")
    if screen.table is not None:
        lines += _with_notes(screen.table, width)
    if screen.doubts:
        lines.append(("", ""))
        for one in screen.doubts:
            lines += _wrapped(f"{one.state.replace('_', ' ')}: {one.text}", width, one.state)
        if screen.more_doubts:
            rest = f"and by cells: {', '.join(one.short for one in screen.more_doubts)}"
            brief = f"and {fmt.plural(len(screen.more_doubts), 'code')} more: --all"
            lines.append((rest if len(rest) <= width else brief, "dim"))
    if screen.footnotes:
        lines += [] if screen.doubts else [("", "")]
        names = ", ".join(one.title for one in screen.footnotes)
        lines += _wrapped(f"Doubts that cannot change the answer, by cells: {names}.", width, "dim")
    lines.append(("", ""))
    lead = "Next: "
    for step in screen.steps:
        lines += _wrapped(step, width, "", lead)
        lead = " " * len(lead)
    return [*lines, *_more_lines(screen, width, lead)]


def _with_notes(table: ScreenTable, width: int) -> list[Line]:
    notes = " ".join([*table.notes, *([fmt.sentence(table.cut) + "."] if table.cut else [])])
    below = _wrapped(fmt.printable(notes), width, "dim") if notes else []
    return [("", ""), *_table_lines(table, width), *below]


def _more_lines(screen: PrintedScreen, width: int, lead: str) -> list[Line]:
    """The commands that show the rest: in one line, or else in a line each, which a terminal may fold."""
    whole = f"{lead}more: {'; '.join(screen.more)}"
    if len(whole) <= width:
        return [(whole, "")]
    gap = " " * (len(lead) + len("more: "))
    return [(f"{gap if place else lead + 'more: '}{one}", "") for place, one in enumerate(screen.more)]


def _wrapped(text: str, width: int, style: str, lead: str = "") -> list[Line]:
    found = textwrap.wrap(
        text, width, initial_indent=lead, subsequent_indent=" " * len(lead), break_on_hyphens=False
    )
    return [(line, style) for line in found or [lead.rstrip()]]


def _widths(table: ScreenTable, heading_max: int) -> list[int]:
    """Of columns; a long heading is folded between words, so that numbers keep a narrow column."""
    rows = [row for row in table.rows if len(row) > 1]
    return [
        max(
            min(len(fmt.printable(heading)), max(heading_max, _longest_word(heading))),
            *(len(fmt.printable(row[place])) for row in rows if place < len(row)),
            1,
        )
        for place, heading in enumerate(table.headings)
    ]


def _longest_word(heading: str) -> int:
    return max(map(len, fmt.printable(heading).split()), default=0)


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + _GAP * (len(widths) - 1)


def _narrowest(table: ScreenTable) -> int:
    return _total(_widths(table, _HEADING_MIN))


def _table_lines(table: ScreenTable, width: int) -> list[Line]:
    folds = (_HEADING_MAX, 2 * _HEADING_MIN, _HEADING_MIN)
    every = [_widths(table, one) for one in folds]
    widths = next((one for one in every if _total(one) <= width), every[-1])
    over = _total(widths) - width
    if over > 0:  # no form fits: names are folded
        widths[0] = max(widths[0] - over, min(_NAME_MIN, widths[0]))

    def line(row: Sequence[str]) -> list[str]:
        if len(row) == 1:
            return textwrap.wrap(fmt.printable(row[0]), width)
        texts = [fmt.printable(text) for text in row]
        folded = [
            [text] if len(text) <= wide else textwrap.wrap(text, max(wide, 1)) or [""]
            for text, wide in zip(texts, widths, strict=False)
        ]
        found = []
        for number in range(max(map(len, folded))):
            texts = [(part[number : number + 1] or [""])[0] for part in folded]
            cells = [
                text.rjust(wide) if table.is_number(place) else text.ljust(wide)
                for place, (text, wide) in enumerate(zip(texts, widths, strict=False))
            ]
            found.append((" " * _GAP).join(cells).rstrip())
        return found

    total = min(_total(widths), width)
    head: list[Line] = [*((text, "dim") for text in line(table.headings)), ("\u2500" * total, "dim")]
    found = list(head)
    for place, row in enumerate(table.rows):
        found += [(text, "dim" if place in table.again else "") for text in line(row)]
    return found


def show_screen(findings: Findings, console: Console, path: Path | None = None) -> bool:
    """Print the first screen of the result at `path`; False where there is none."""
    width = console.width if console.is_terminal else min(console.width, WIDTH)
    screen = screen_of(findings, width, word=word_for(path))
    if screen is None:
        return False
    for line, style in lines_of(screen, width):
        console.print(terminal_text(line, STYLES.get(style, style)))
    return True


def show_figure(findings: Findings, figure: str, console: Console) -> None:
    """Print one figure of every cell. Raises UsageError for one that no cell has."""
    table, width = figure_table(findings, figure), min(console.width, WIDTH)
    title = f"{findings.title}: {metrics.heading(figure)}"
    screen = ScreenTable(table.headings, table.rows, table.right)
    if _total(_widths(screen, _HEADING_MAX)) > width:
        console.print(terminal_text(title, "bold"))
        for line in _narrow_lines(table, width):
            console.print(terminal_text(line))
    else:
        shown = terminal_table(title)
        for place, heading in enumerate(table.headings):
            shown.add_column(heading, justify="right" if place in table.right else "left", no_wrap=True)
        for row in table.rows:
            shown.add_row(*map(terminal_text, row))
        console.print(shown, width=width, soft_wrap=False)
    for note in table.notes:
        for line in textwrap.wrap(fmt.printable(note), width - 2):
            console.print(terminal_text(f"  {line}", "dim"))


def _narrow_lines(table: FigureOfCells, width: int) -> Iterator[str]:
    """A workload in a line, and below it a target with all that its row has: no column is cut."""
    before = ""
    for work, target, *rest in table.rows:
        if work != before:
            yield from textwrap.wrap(fmt.printable(work), width)
        before = work
        named = zip(table.headings[2:], rest, strict=True)
        said = [f"{heading} {text}" for heading, text in named if text]
        yield from textwrap.wrap(
            fmt.printable(f"{target}: {', '.join(said)}"),
            width,
            initial_indent="  ",
            subsequent_indent="    ",
        )
