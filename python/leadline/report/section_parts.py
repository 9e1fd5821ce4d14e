"""How each kind of part of a section is shown, and the walk along the sections."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from leadline.report import format as fmt
from leadline.report import texts
from leadline.report.figures import figures_markdown, has_numbers, printed_figures, show_figures, with_values
from leadline.report.texts import ANYWHERE, STYLES, markdown_text, terminal_table, terminal_text
from leadline.verdict.model import FigureTable, Findings
from leadline.verdict.sections.charts import PlacesChain, PlaceUse
from leadline.verdict.sections.section import Facts, Item, Marked, Panels, Part, Section, TextTable, Words

if TYPE_CHECKING:
    from rich.console import Console


def fact_words(value: Any) -> str:
    """A fact as a person writes it: a list with commas, nothing as a dash."""
    if value is None:
        return fmt.NO_VALUE
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return ", ".join(f"{name}={fact_words(item)}" for name, item in value.items()) or fmt.NO_VALUE
    if isinstance(value, list | tuple):
        return ", ".join(fact_words(item) for item in value) or fmt.NO_VALUE
    return str(value)


def show_words(words: Words, title: str, console: Console) -> None:
    """Print the items below their title."""
    console.print()
    console.print(terminal_text(words.title or title, "bold"))
    for item in words.items:
        for line, style in _lines(item):
            console.print(terminal_text(line, style))


def _lines(item: Item) -> Iterator[tuple[str, str]]:
    style = "yellow" if item.doubtful else ""
    if item.state is not None:
        yield f"{item.code}  {item.lead}", STYLES[item.state]
        yield f"    {item.text}", ""
    elif item.number is not None:
        yield f"[{item.number}] {fmt.sentence(item.lead)}", style
        yield f"    {item.text}", ""
    else:
        yield from [(item.lead, "bold")] if item.lead else []
        yield from [(f"    {item.text}", style)] if item.text else []
    for name, value in item.points:
        yield f"    {name} {value}" if name else f"    {value}", ""
    for line in (*item.notes, *item.details):
        yield f"    {line}", "" if item.number is not None else "dim"


def words_markdown(words: Words, title: str) -> str:
    """The items below their title, as a list."""
    lines = [f"## {markdown_text(words.title or title)}", ""]
    for item in words.items:
        lines += _item_markdown(item)
    return "\n".join(lines)


def _item_markdown(item: Item) -> Iterator[str]:
    if item.number is not None:
        yield f"{item.number}. **{markdown_text(fmt.sentence(item.lead))}.** {markdown_text(item.text)}"
    elif item.lead:
        yield f"- **{markdown_text(item.lead)}**: {markdown_text(item.text)}"
    else:
        yield f"- {markdown_text(item.text)}"
    indent = "   " if item.number is not None else "  "
    for line in (*(f"{name} {value}" for name, value in item.points), *item.notes, *item.details):
        yield f"{indent}- {markdown_text(line)}"


def show_facts(facts: Facts, title: str, console: Console) -> None:
    """Print the facts, a line each."""
    console.print()
    console.print(terminal_text(facts.title or title, "bold"))
    for name, value in facts.values.items():
        console.print(terminal_text(f"    {name}: {fact_words(value)}"))


def facts_markdown(facts: Facts, title: str) -> str:
    """The facts as a list below their title."""
    lines = [
        f"- {markdown_text(name)}: {markdown_text(fact_words(value))}" for name, value in facts.values.items()
    ]
    return "\n".join([f"## {markdown_text(facts.title or title)}", "", *lines])


_BAR = 20
_UNSEEN = "not observed"
_MARK = " < bottleneck"
_ROW = 44 + _BAR + 6  # name, bar and share beside each other
_INDENT = " " * 11
_WIDTH = 100


def place_lines(uses: Sequence[PlaceUse], width: int) -> Iterator[str]:
    """Part by part, what bounds marked by a word; what there is no room for stands in a line of its own."""
    for part in uses:
        name, bar = f"  {part.place:<8} {part.what}", f"{_bar(part)}{_MARK if part.bounds else ''}"
        said = [part.by, part.waits if part.waits != _UNSEEN else ""]
        waits = fmt.printable("; ".join(filter(None, said)))
        if width < _ROW + len(_MARK):
            yield name[:width]
            if bar.strip():
                yield f"{_INDENT}{bar.strip()}"
            yield from textwrap.wrap(waits, width, initial_indent=_INDENT, subsequent_indent=_INDENT)
            continue
        line = f"{name:<43} {bar}"
        if waits and max(len(line), _ROW) + len(waits) + 2 <= width:
            line, waits = f"{line:<{_ROW}}  {waits}", ""
        yield line.rstrip()
        yield from textwrap.wrap(waits, width, initial_indent=_INDENT, subsequent_indent=_INDENT)


def _bar(part: PlaceUse) -> str:
    if part.use is None:
        return f"{_UNSEEN if part.can_be_full else '':>{_BAR + 6}}"
    return f"{'#' * round(min(part.use, 1.0) * _BAR):.<{_BAR}} {100 * part.use:3.0f} %"


def _chains(panels: Panels) -> list[PlacesChain]:
    return [chart for row in panels.rows for chart in row if isinstance(chart, PlacesChain)]


def show_places(panels: Panels, console: Console) -> None:
    """Print the ways that are among some charts, below their title."""
    chains = _chains(panels)
    for line in filter(None, [panels.title, panels.note]) if chains else ():
        console.print()
        console.print(terminal_text(line, "bold" if line is panels.title else "dim"))
    for one in chains:
        console.print()
        console.print(terminal_text(f"{one.title}: {one.bound}"))
        for line in place_lines(one.uses, _WIDTH):
            console.print(terminal_text(line))


def places_markdown(panels: Panels) -> str:
    """The same as blocks of plain text."""
    chains = _chains(panels)
    if not chains:
        return ""
    parts = [f"## {markdown_text(panels.title)}", markdown_text(panels.note)]
    for one in chains:
        # Indented code cannot be closed from inside, as a fence can.
        drawn = "\n".join(f"    {line}" for line in place_lines(one.uses, _WIDTH))
        parts += [f"{markdown_text(one.title)}: {markdown_text(one.bound)}", drawn]
    return "\n\n".join(part for part in parts if part)


def entry_words(entry: str | Marked) -> str:
    """A text with the numbers of what is said about it: `44m [3]`."""
    if isinstance(entry, str):
        return fmt.printable(entry)
    marks = ",".join(str(number) for number in entry.numbers)
    return f"{fmt.printable(entry.text)} [{marks}]" if marks else fmt.printable(entry.text)


def note_of(table: TextTable, shown: int) -> str:
    """What stands below the table: its note, or how many rows are left out."""
    return table.note or (f"and {table.total - shown:,} more" if table.total > shown else "")


def show_texts(table: TextTable, console: Console) -> None:
    """Print the table on a terminal."""
    laid_out = terminal_table(table.title, spaced=table.spaced)
    rows = table.rows[: table.brief]
    for place, heading in enumerate(table.headings):
        justify = "right" if place in table.right else "left"
        laid_out.add_column(terminal_text(heading), justify=justify, overflow="fold")  # type: ignore[arg-type]
    for row in rows:
        laid_out.add_row(*(terminal_text(entry_words(entry), _style(entry)) for entry in row))
    console.print()
    console.print(laid_out)
    if note := note_of(table, len(rows)):
        console.print(terminal_text(f"  {note}", "dim"))


def _style(entry: str | Marked) -> str:
    return "yellow" if isinstance(entry, Marked) and entry.numbers else ""


def texts_markdown(table: TextTable) -> str:
    """The table below its title."""
    rows = table.rows[: table.brief]
    printed = [[texts.markdown_text(entry_words(entry)) for entry in row] for row in rows]
    laid_out = texts.markdown_table([*map(texts.markdown_text, table.headings)], table.right, printed)
    notes = [texts.markdown_text(note)] if (note := note_of(table, len(rows))) else []
    return "\n\n".join([f"## {texts.markdown_text(table.title)}", laid_out, *notes])


def _parts(sections: Iterable[Section]) -> Iterator[tuple[Section, Part]]:
    """Every part that is not of pages only."""
    for section in sections:
        if not section.page_only:
            yield from ((section, part) for part in section.parts)


def show_sections(
    sections: Iterable[Section], console: Console, *, whole: bool = True, word: str = ANYWHERE
) -> None:
    """Print all sections on a terminal, which has no charts but those that are made of lines of text.

    `word` is how a shell is told of the result.
    """
    for section, part in _parts(sections):
        if isinstance(part, FigureTable):
            if has_numbers(part):
                show_figures(part, console, whole=whole, word=word)
        elif isinstance(part, TextTable):
            show_texts(part, console)
        elif isinstance(part, Words):
            show_words(part, section.title, console)
        elif isinstance(part, Facts):
            show_facts(part, section.title, console)
        else:
            show_places(part, console)


def sections_markdown(findings: Findings) -> str:
    """All sections; Markdown has no other charts either."""
    found = [_markdown(section, part) for section, part in _parts(findings.sections)]
    return "\n\n".join(text for text in found if text)


def _markdown(section: Section, part: Part) -> str:
    if isinstance(part, FigureTable):
        return figures_markdown(part) if has_numbers(part) else ""
    if isinstance(part, TextTable):
        return texts_markdown(part)
    if isinstance(part, Words):
        return words_markdown(part, section.title)
    return facts_markdown(part, section.title) if isinstance(part, Facts) else places_markdown(part)


_KINDS: dict[type, str] = {TextTable: "texts", Words: "words", Facts: "facts", Panels: "panels"}


def shown_sections(sections: Iterable[Section]) -> tuple[Section, ...]:
    """The sections in their order, without those whose tables have no number."""
    return tuple(one for one in sections if not one.tables or any(map(has_numbers, one.tables)))


def section_context(sections: Sequence[Section]) -> dict[str, Any]:
    """What templates know of sections. Those that lead come first."""
    numbered = (
        part.anchor
        for section in sections
        for part in section.parts
        if isinstance(part, Words) and part.style == "numbered"
    )
    return {
        "sections": sorted(shown_sections(sections), key=lambda one: not one.leads),
        "kind_of": _kind_of,
        "printed_figures": lambda table: with_values(printed_figures(table)),
        "note_of": lambda table: note_of(table, len(table.rows)),
        "anchor": next(numbered, ""),
    }


def _kind_of(part: Part) -> str:
    if isinstance(part, FigureTable):
        return "figures" if has_numbers(part) else ""
    return _KINDS[type(part)]


def section_filters() -> dict[str, Callable[[Any], Any]]:
    """How templates print what stands in a table of words."""
    return {
        "entry": lambda entry: entry.text if isinstance(entry, Marked) else entry,
        "numbers": lambda entry: entry.numbers if isinstance(entry, Marked) else (),
    }
