"""The first screen: what it says, as printed text, and how much of it there is room for.

Question, answer and what else is said, one table, doubts by code, next steps: of studies, traces, imports
and published figures alike. It fits 40 lines of 100 columns: fewer sentences, doubts and steps are named,
then the table takes a shorter form; what is left out is said with how to see it.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from leadline import units
from leadline.report import format as fmt
from leadline.report import tables
from leadline.report.placing import ANYWHERE, placed
from leadline.report.screen.layout import WIDTH, ScreenTable, forms_of
from leadline.verdict.model import Code, Findings, State
from leadline.verdict.sections.answer import NextStep, StudyAnswer

HEIGHT = 40
# Doubts, steps and sentences that are named, less and less.
_BRIEF = ((8, 3, 12), (5, 3, 9), (4, 2, 7), (3, 1, 5), (2, 1, 4), (1, 1, 2))
_GAP = 1  # between columns
_NAME_MIN, _HEADING_MIN, _HEADING_MAX = 12, 8, 16
_SHOW, _DIAGNOSE, _REPORT = "leadline show DIR --all", "leadline diagnose DIR", "leadline report DIR"
_DIAGNOSED = ("study", "trace")
Line = tuple[str, str]  # text, style


@dataclass(frozen=True)
class CodeDoubt:
    """A validity code with how many cells it is about, in a line and in a few letters."""

    state: State
    text: str
    short: str


@dataclass(frozen=True)
class PrintedScreen:
    """The screen as printed text, `table` in the form for which there was room.

    `more` has the commands that show the rest.
    """

    question: str
    answer: str
    said: tuple[str, ...]
    table: ScreenTable | None
    doubts: tuple[CodeDoubt, ...]
    more_doubts: tuple[CodeDoubt, ...]
    steps: tuple[str, ...]
    more: tuple[str, ...] = (_SHOW,)


def screen_of(
    findings: Findings, width: int = WIDTH, height: int = HEIGHT, word: str = ANYWHERE
) -> PrintedScreen | None:
    """The screen of a result; None where it has none. `word` is how a shell is told of the result."""
    answer = findings.answer
    if answer is None:
        return None
    doubts = _doubts(findings)
    steps, more = (
        tuple(placed(one, word) for one in texts) for texts in (_steps(findings, answer), _rest(findings))
    )
    for table in _tables(answer):
        for named, done, told in _BRIEF:
            found = PrintedScreen(
                fmt.printable(answer.question),
                fmt.printable(answer.text),
                _said(answer, told),
                table,
                doubts[:named],
                doubts[named:],
                steps[:done],
                more,
            )
            if _fits(found, width, height):
                return found
    return found


def _tables(answer: StudyAnswer) -> Iterator[ScreenTable | None]:
    if not answer.figures and answer.matrix is None:
        yield None
        return
    yield from forms_of(answer)


def _rest(findings: Findings) -> tuple[str, ...]:
    """The commands that show the rest; a bottleneck is looked for in what was measured or traced here."""
    found = [f"{_SHOW} (or --table METRIC)" if findings.frame.cells else _SHOW]
    if findings.host and findings.kind in _DIAGNOSED:
        found.append(_DIAGNOSE)
    return (*found, _REPORT)


def _fits(screen: PrintedScreen, width: int, height: int) -> bool:
    if screen.table is not None and _total(_widths(screen.table, _HEADING_MIN)) > width:
        return False
    return len(lines_of(screen, width)) <= height


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
            f" {len(item.cells)} of {fmt.plural(every, 'cell')}",
            f"{fmt.printable(item.code.code)} {len(item.cells)}",
        )
        for item in tables.fired(findings)
    )


def _seen(code: Code) -> CodeDoubt:
    title, name = fmt.printable(fmt.sentence(code.title)), fmt.printable(code.code)
    return CodeDoubt(code.state, f"{title} ({name}): {fmt.printable(code.evidence)}", name)


def _steps(findings: Findings, answer: StudyAnswer) -> tuple[str, ...]:
    """What to do next: what finishes or decides it, then the remedies, those of the worst codes first."""
    found = [_step(one) for one in answer.steps]
    for item in tables.fired(findings):
        if item.code.code != "few_blocks" or not answer.steps:
            found.append(f"{fmt.printable(item.code.title)}: {fmt.printable(item.code.remedy)}")
    first = len(answer.steps)  # of the remedies: each of them wants another run
    if len(found) > first and answer.run_seconds is not None:
        found[first] += f" A run takes {_time(answer.run_seconds)}."
    return tuple(found)


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
        lines += [("", ""), *_table_lines(screen.table, width)]
        notes = [*screen.table.notes, *([fmt.sentence(screen.table.cut) + "."] if screen.table.cut else [])]
        lines += [line for note in notes for line in _wrapped(fmt.printable(note), width, "dim")]
    if screen.doubts:
        lines.append(("", ""))
        for one in screen.doubts:
            lines += _wrapped(f"{one.state.replace('_', ' ')}: {one.text}", width, one.state)
        if screen.more_doubts:
            rest = f"and by cells: {', '.join(one.short for one in screen.more_doubts)}"
            brief = f"and {fmt.plural(len(screen.more_doubts), 'code')} more: --all"
            lines.append((rest if len(rest) <= width else brief, "dim"))
    lines.append(("", ""))
    lead = "Next: "
    for step in screen.steps:
        lines += _wrapped(step, width, "", lead)
        lead = " " * len(lead)
    return [*lines, *_more_lines(screen, width, lead)]


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
    """Of columns; a long heading is folded, so that a name does not make a column of numbers wide."""
    return [
        max(
            min(len(fmt.printable(heading)), heading_max),
            *(len(fmt.printable(row[place])) for row in table.rows),
        )
        for place, heading in enumerate(table.headings)
    ]


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + _GAP * (len(widths) - 1)


def _table_lines(table: ScreenTable, width: int) -> list[Line]:
    wide = _widths(table, _HEADING_MAX)
    widths = wide if _total(wide) <= width else _widths(table, _HEADING_MIN)
    over = _total(widths) - width
    if over > 0:  # no form fits: names are folded
        widths[0] = max(widths[0] - over, min(_NAME_MIN, widths[0]))

    def line(row: Sequence[str]) -> list[str]:
        folded = [
            textwrap.wrap(fmt.printable(text), max(wide, 1)) or [""]
            for text, wide in zip(row, widths, strict=True)
        ]
        found = []
        for number in range(max(map(len, folded))):
            texts = [(part[number : number + 1] or [""])[0] for part in folded]
            cells = [
                text.rjust(wide) if table.is_number(place) else text.ljust(wide)
                for place, (text, wide) in enumerate(zip(texts, widths, strict=True))
            ]
            found.append((" " * _GAP).join(cells).rstrip())
        return found

    total = min(_total(widths), width)
    head: list[Line] = [*((text, "dim") for text in line(table.headings)), ("\u2500" * total, "dim")]
    return [*head, *((text, "") for row in table.rows for text in line(row))]
