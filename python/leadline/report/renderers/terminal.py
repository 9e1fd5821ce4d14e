"""`leadline show` on a terminal or a pipe: words first, then tables.

On a pipe the console is 100,000 columns wide, so nothing here fills a line: no panel, rule or expanded table.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from leadline.report import format as fmt
from leadline.report import metrics, tables
from leadline.report.screen_table import WIDTH
from leadline.report.section_parts import show_sections
from leadline.report.tables import CHAIN_HEADINGS, chain_rows, most_telling
from leadline.report.texts import (
    ANYWHERE,
    STYLES,
    changed_texts,
    placed,
    terminal_table,
    terminal_text,
    word_for,
)
from leadline.verdict.model import outcome_words

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from leadline.verdict.model import Cell, Code, Comparison, Findings, State

_OUTCOME_STYLES = {"faster": "green", "slower": "red", "same": "", "undecided": "yellow"}
_USABLE = ("VALID", "DOUBTFUL")
_SHOWN_CELLS_MAX = 4
_SHOWN_CHAINS_MAX = 12
_NAME_WIDTH_MIN = 12
_WORK_AND_STATE_WIDTH = len("DOUBTFUL") + 4


def show(findings: Findings, console: Console, *, whole: bool = True, path: Path | None = None) -> None:
    """Print the result on `console`; of long tables only the first rows where not the `whole` is wanted.

    `path` is where it is; without, commands have DIR instead.
    """
    word = word_for(path)
    if word != ANYWHERE:
        named = changed_texts(findings.sections, lambda one: placed(one, word))
        findings = replace(findings, sections=named)
    _masthead(findings, console)
    _statements(findings, console)
    for target, cells in tables.by_target(findings).items() if findings.frame.cells else ():
        _target_table(findings, target, cells, console)
    show_sections(findings.sections, console, whole=whole, word=word)
    print_comparisons(findings.comparisons, console, tables.states_of(findings))
    _chains(findings, console)
    _validity(findings, console)
    _next(findings, console, word)


def show_answer(findings: Findings, console: Console) -> None:
    """Print an answer that rests on no cell, as a prediction's: what was asked, the answer, its sections."""
    if answer := findings.answer:
        console.print(terminal_text(answer.question, "bold"))
        for words, lead in ((answer.text, ""), *((said, "- ") for said in answer.said)):
            width = min(console.width, WIDTH)
            for line in textwrap.wrap(words, width, initial_indent=lead, subsequent_indent="  "):
                console.print(terminal_text(line))
    show_sections(findings.sections, console)


def state_words(state: State) -> str:
    """A state as it is printed: NOT_RUN with a space."""
    return state.replace("_", " ")


def _result(findings: Findings) -> Text:
    from rich.text import Text

    state, style = state_words(findings.state), STYLES[findings.state]
    if not findings.frame.cells:
        return terminal_text(f"Result: {state}", style)
    tally = tables.tally(findings)
    return Text.assemble(("Result: ", ""), (state, style), (f"  ({tally})" if tally else "", ""))


def _masthead(findings: Findings, console: Console) -> None:
    frame = findings.frame
    console.print(terminal_text(findings.title, "bold"))
    if frame.borrowed is not None:
        source = frame.borrowed.source
        words = f"Source: {source}. Nothing of this was measured here." if source else "Published"
        console.print(terminal_text(words, "dim"))
        return
    about = findings.about if frame.command else " ".join(findings.about.split())
    for words in (about, *frame.made_by):
        if words:
            console.print(terminal_text(words, "dim"))
    if findings.cells:
        console.print(_result(findings))
    if not findings.complete:
        missing = f"not every planned trial was run; go on with `leadline {frame.verb} --resume`"
        console.print(terminal_text(f"INCOMPLETE: {frame.incomplete or missing}", "yellow"))


def _statements(findings: Findings, console: Console) -> None:
    if not findings.statements:
        return
    console.print()
    if findings.frame.borrowed is not None:
        console.print(terminal_text(findings.statements[0].text, "bold"))
        console.print(terminal_text(f"Tolerance: {findings.frame.borrowed.tolerance}", "dim"))
        return
    marks = {"headline": ("", "bold"), "finding": ("- ", ""), "caution": ("! ", "yellow")}
    for item in findings.statements:
        mark, style = marks[item.tone]
        console.print(terminal_text(mark + item.text, style))
        for evidence in item.evidence:
            console.print(terminal_text(f"    {evidence}", "dim"))


def _target_table(findings: Findings, target: str, cells: tuple[Cell, ...], console: Console) -> None:
    words = next((f": {view.words}" for view in findings.targets if view.name == target and view.words), "")
    data = tables.key_table(findings, cells)
    numbers = [_number_column(data, place, spreads=True) for place in range(len(data.columns))]
    names = max((len(fmt.printable(row.cell.work)) for row in data.rows), default=0)
    if _WORK_AND_STATE_WIDTH + names + sum(len(column[0]) + 2 for column in numbers) > console.width:
        numbers = [_number_column(data, place, spreads=False) for place in range(len(data.columns))]
    table = terminal_table(f"{target}{words}")
    table.add_column("\nwork", overflow="fold", min_width=min(names, _NAME_WIDTH_MIN))
    table.add_column("\nvalidity", no_wrap=True)
    for column, lines in zip(data.columns, numbers, strict=True):
        table.add_column(f"{_column_name(column)}\n{lines[0]}", justify="right", no_wrap=True)
    for place, row in enumerate(data.rows):
        state = row.cell.validity.state
        texts = [terminal_text(lines[place + 1]) for lines in numbers]
        table.add_row(terminal_text(row.cell.work), terminal_text(state_words(state), STYLES[state]), *texts)
    console.print()
    console.print(table)
    _reasons(data, console)


def _column_name(column: tables.KeyColumn) -> str:
    return column.heading.replace("Latency ", "lat. ")


def _number_column(data: tables.KeyTable, place: int, *, spreads: bool) -> list[str]:
    """The unit, then each number with how far its interval reaches, aligned among themselves."""
    column = data.columns[place]
    items = [row.measures[place] for row in data.rows]
    unit = "" if column.heading == "IOPS" else column.scale.label
    wide = max(len(text) for text in [unit, *(item.text for item in items)])
    if not spreads:
        return [unit.rjust(wide), *(item.text.rjust(wide) for item in items)]
    halves = [item.spread for item in items]
    tail = max(map(len, ["95 % CI", *halves]))
    pairs = [(unit, "95 % CI"), *zip((item.text for item in items), halves, strict=True)]
    return [f"{text:>{wide}} {half:<{tail}}" for text, half in pairs]


def _reasons(data: tables.KeyTable, console: Console) -> None:
    """Why a number is missing, once for each reason."""
    found: dict[str, list[str]] = {}
    for row in data.rows:
        missing = {item.reason: None for item in row.measures if item.reason}
        for reason in missing:
            names = [
                _column_name(data.columns[i]) for i, item in enumerate(row.measures) if item.reason == reason
            ]
            every = "" if len(names) == len(data.columns) else f" ({', '.join(names)})"
            found.setdefault(reason, []).append(fmt.printable(row.cell.work) + every)
    for reason, places in found.items():
        console.print(terminal_text(f"  {fmt.NO_VALUE} {reason}: {_some(places)}", "dim"))
    if tables.mixed_latency(data):
        console.print(terminal_text("  latency of mixed workloads: of their reads", "dim"))


def _some(places: list[str]) -> str:
    rest = len(places) - _SHOWN_CELLS_MAX
    shown = ", ".join(places[:_SHOWN_CELLS_MAX])
    return f"{shown} and {rest} more" if rest > 0 else shown


def print_comparisons(
    comparisons: Sequence[Comparison],
    console: Console,
    states: Mapping[tuple[str, str], State] | None = None,
) -> None:
    """A table of ratios; `states` are those of the cells behind them, where known."""
    if not comparisons:
        return
    bases = list(dict.fromkeys(item.base for item in comparisons))
    table = terminal_table(
        f"Compared with {bases[0]}: ratio to it" if len(bases) == 1 else "Compared: ratio to the base"
    )
    for name in ("work", "metric", "target", *(["base"] if len(bases) > 1 else [])):
        table.add_column(name, overflow="fold")
    valued = any(item.values for item in comparisons)
    for name in ("A", "B") if valued else ():
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    table.add_column("ratio", justify="right", no_wrap=True)
    table.add_column("interval", justify="right", no_wrap=True, style="dim")
    table.add_column("validity", no_wrap=True)
    for item in comparisons:
        state = tables.comparison_state(item, states or {})
        table.add_row(
            terminal_text(item.work),
            terminal_text(metrics.heading(item.metric).replace("Latency ", "lat. ")),
            terminal_text(item.other),
            *([terminal_text(item.base)] if len(bases) > 1 else []),
            *(map(terminal_text, _values(item)) if valued else ()),
            terminal_text(outcome_words(item.verdict), _OUTCOME_STYLES[item.verdict]),
            terminal_text(fmt.number(item.ratio)),
            terminal_text(fmt.ratio_interval(item.low, item.high).replace(" to ", fmt.NO_VALUE)),
            terminal_text(state_words(state), STYLES[state]),
        )
    console.print()
    console.print(table)
    for note in tables.comparison_notes(comparisons):
        console.print(terminal_text(f"  {note}", "dim"))


def _values(item: Comparison) -> tuple[str, str]:
    """Both figures with their units."""
    found = [
        fmt.NO_VALUE if value.value is None else fmt.with_unit(value.value, value.unit)
        for value in item.values
    ]
    return (found[0], found[1]) if found else ("", "")


def _chains(findings: Findings, console: Console) -> None:
    rows = chain_rows(findings)
    if not rows:
        return
    table = terminal_table("Where the bytes came from, how far they got")
    for name in CHAIN_HEADINGS[:4]:
        table.add_column(name.lower(), overflow="fold")
    table.add_column("stored (model)", justify="right", no_wrap=True)
    for row in most_telling(rows)[:_SHOWN_CHAINS_MAX]:
        state = row.cell.validity.state
        kind = "read" if row.chain.direction == "read" else "written"
        stored = row.stored if row.model == fmt.NO_VALUE else f"{row.stored} ({row.model})"
        places = f"INVALID {row.places}" if state == "INVALID" else row.places
        table.add_row(
            terminal_text(row.cell.work),
            terminal_text(row.cell.target),
            terminal_text(kind),
            terminal_text(places, STYLES[state]),
            terminal_text(stored),
        )
    console.print()
    console.print(table)
    if len(rows) > _SHOWN_CHAINS_MAX:
        console.print(
            terminal_text(f"  and {len(rows) - _SHOWN_CHAINS_MAX} more: leadline report --format md", "dim")
        )


def _validity(findings: Findings, console: Console) -> None:
    found = tables.fired(findings)
    if not found or findings.frame.borrowed is not None:
        return
    console.print()
    if not findings.frame.cells:
        _codes(findings, console)
        return
    console.print(terminal_text("Validity", "bold"))
    for item in found:
        _code_line(item.code, console)
        for cell, evidence in item.cells[:_SHOWN_CELLS_MAX]:
            console.print(terminal_text(f"    {cell}: {evidence}"))
        if len(item.cells) > _SHOWN_CELLS_MAX:
            console.print(terminal_text(f"    and {len(item.cells) - _SHOWN_CELLS_MAX} more cells"))
        console.print(terminal_text(f"    remedy: {item.code.remedy}"))


def _codes(findings: Findings, console: Console) -> None:
    """What fired, where no cell needs to be named."""
    for code in (code for cell in findings.cells for code in cell.validity.codes):
        _code_line(code, console)
        console.print(terminal_text(f"    {code.evidence}"))
        console.print(terminal_text(f"    remedy: {code.remedy}"))


def _code_line(code: Code, console: Console) -> None:
    words = f"{state_words(code.state)}: {fmt.sentence(code.title)} ({code.code})"
    console.print(terminal_text(words, STYLES[code.state]))


def next_steps(findings: Findings) -> tuple[str, ...]:
    """What to do now, the most urgent first: the remedies, then what helps any result."""
    if findings.frame.steps:
        return findings.frame.steps
    general = general_steps(findings)
    remedies = [f"{fmt.sentence(item.code.title)}: {item.code.remedy}" for item in tables.fired(findings)]
    charts = "For charts: leadline report DIR --format html -o report.html"
    return tuple(dict.fromkeys([*general[:1], *remedies, *general[1:], charts]))


def general_steps(findings: Findings) -> tuple[str, ...]:
    """What to do that no validity code says."""
    steps = []
    if not findings.complete:
        steps.append(f"Finish the study: leadline {findings.frame.verb} --resume DIR")
    states = tables.states_of(findings)
    usable = [item for item in findings.comparisons if tables.comparison_state(item, states) in _USABLE]
    if any(item.verdict == "undecided" and item.ratio is not None for item in usable):
        steps.append("Some comparisons are inconclusive: narrow their CIs (--blocks N, or --until 3%).")
    return tuple(steps)


def _next(findings: Findings, console: Console, word: str) -> None:
    if findings.frame.borrowed is not None:
        return
    if findings.frame.cells or not tables.fired(findings):
        console.print()
    console.print(terminal_text("Next", "bold"))
    for step in next_steps(findings):
        console.print(terminal_text(f"- {placed(step, word)}"))
