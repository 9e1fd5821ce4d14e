"""What the page's template needs to show sections: their order, and each part as printed text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from leadline.report.sections.figures import has_numbers, printed_figures
from leadline.report.sections.texts import note_of
from leadline.verdict.model import FigureTable, Findings
from leadline.verdict.sections.section import Facts, Marked, Panels, Part, Section, TextTable, Words

_KINDS: dict[type, str] = {TextTable: "texts", Words: "words", Facts: "facts", Panels: "panels"}


def shown_sections(findings: Findings) -> tuple[Section, ...]:
    """The sections in their order, without those whose tables have no number."""
    return tuple(one for one in findings.sections if not one.tables or any(map(has_numbers, one.tables)))


def section_context(findings: Findings) -> dict[str, Any]:
    """What templates know of sections. Those that lead come first."""
    numbered = (
        part.anchor
        for section in findings.sections
        for part in section.parts
        if isinstance(part, Words) and part.style == "numbered"
    )
    return {
        "sections": sorted(shown_sections(findings), key=lambda one: not one.leads),
        "kind_of": _kind_of,
        "printed_figures": printed_figures,
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
