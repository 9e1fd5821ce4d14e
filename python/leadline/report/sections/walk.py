"""Along the sections of a report: each part is shown by its kind, and a new section needs nothing here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from leadline.report.placing import ANYWHERE
from leadline.report.sections.figures import figures_markdown, has_numbers, show_figures
from leadline.report.sections.messages import facts_markdown, show_facts, show_words, words_markdown
from leadline.report.sections.places import places_markdown, show_places
from leadline.report.sections.texts import show_texts, texts_markdown
from leadline.verdict.model import FigureTable, Findings
from leadline.verdict.sections.section import Facts, Part, Section, TextTable, Words

if TYPE_CHECKING:
    from rich.console import Console


def _parts(findings: Findings) -> Iterator[tuple[Section, Part]]:
    """Every part that is not of pages only."""
    for section in findings.sections:
        if not section.page_only:
            yield from ((section, part) for part in section.parts)


def show_sections(findings: Findings, console: Console, *, whole: bool, word: str = ANYWHERE) -> None:
    """Print all sections on a terminal, which has no charts but those that are made of lines of text.

    `word` is how a shell is told of the result.
    """
    for section, part in _parts(findings):
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
    found = [_markdown(section, part) for section, part in _parts(findings)]
    return "\n\n".join(text for text in found if text)


def _markdown(section: Section, part: Part) -> str:
    if isinstance(part, FigureTable):
        return figures_markdown(part) if has_numbers(part) else ""
    if isinstance(part, TextTable):
        return texts_markdown(part)
    if isinstance(part, Words):
        return words_markdown(part, section.title)
    return facts_markdown(part, section.title) if isinstance(part, Facts) else places_markdown(part)
