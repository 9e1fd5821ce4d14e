"""What rules found, as parts of a section: the same on every screen and page, whoever asked the rules."""

from __future__ import annotations

from collections.abc import Iterable

from leadline.knowledge.findings import Finding, Severity
from leadline.verdict.model import State
from leadline.verdict.sections.section import Item, Words

STATES: dict[Severity | None, State | None] = {
    "serious": "INVALID",
    "warning": "DOUBTFUL",
    "note": "DOUBTFUL",
    None: None,
}


def findings_words(found: Iterable[Finding], title: str = "", none: str = "") -> Words:
    """Each finding with its evidence, why it matters, what to do and what shows it, or that there is none."""
    items = tuple(_item(one) for one in found)
    return Words(items or ((Item(none),) if none else ()), title, style="cards" if items else "list")


def _item(one: Finding) -> Item:
    source = f"   [{one.source}]" if one.source else ""
    return Item(
        f"{one.evidence}.",
        one.title,
        points=tuple((name, words) for name, words in (("", one.means), ("Do:", one.remedy)) if words),
        details=(f"See: {one.verify}{source}",) if one.verify else (),
        code=(one.severity or "").upper(),
        state=STATES[one.severity],
    )
