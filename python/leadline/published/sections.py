"""The sections of a report that a document has: what does not agree, its claims, its tables."""

from __future__ import annotations

from typing import Any

from leadline.published.view import PublishedClaim, PublishedTable, PublishedView
from leadline.verdict.sections.answer import StudyAnswer
from leadline.verdict.sections.section import Borrowed, Frame, Item, Section, TextTable, Words

_CLAIMS = 6  # on the first screen


def published_frame(view: PublishedView) -> Frame:
    """How a report of somebody else's figures is laid out."""
    return Frame(
        cells=False,
        borrowed=Borrowed(view.source, view.tolerance),
        no_jobs="published figures are no fio jobs",
    )


def published_sections(view: PublishedView) -> tuple[Section, ...]:
    """Doubts first: what the tables say is read with them in mind."""
    doubts = tuple(
        Item(doubt.text, doubt.title, doubt.number, True, details=doubt.evidence) for doubt in view.doubts
    )
    nothing = "Nothing was found that does not agree."
    judged = Words(doubts, none=nothing, style="numbered", anchor="doubt")
    claims = Words(tuple(_claim(claim) for claim in view.claims), style="articles")
    derived = Words(tuple(Item(line) for line in view.derived), "What the document lets one compute")
    tables = tuple(_table(table) for table in view.tables)
    return (
        Section("doubts", "Doubts", (judged,), json={"published": _document(view)}, in_csv=False),
        Section("claims", "Claims, and what they rest on", (claims,), "Claims", json={}, in_csv=False),
        Section(
            "tables",
            "The tables as published",
            (*tables, *((derived,) if view.derived else ())),
            "Tables",
            json={},
            in_csv=False,
        ),
    )


def published_answer(title: str, head: str, view: PublishedView) -> StudyAnswer:
    """The first screen: whether the figures agree, what does not, and what the document claims.

    A document that claims nothing shows its first table.
    """
    doubts = tuple(f"[{doubt.number}] {doubt.title}: {doubt.text}" for doubt in view.doubts)
    rows = tuple(
        (claim.text, claim.published or "", claim.computed, "agrees" if claim.agrees else "DOES NOT AGREE")
        for claim in view.claims
        if claim.published is not None
    )
    heads = ("claim", "claimed", "tables give", "")
    table = TextTable("Claims", heads, rows, brief=_CLAIMS) if rows else None
    if table is None and view.tables:
        first = view.tables[0]
        table = TextTable(first.title, first.headings, first.rows, brief=_CLAIMS)
    return StudyAnswer(
        question=f"Do the figures of \u201c{title}\u201d agree with each other?",
        text=f"{head} Nothing of them was measured here.",
        said=doubts,
        matrix=table,
    )


def _claim(claim: PublishedClaim) -> Item:
    basis = tuple(f"rests on {one}" for one in claim.rests_on)
    return Item(claim_words(claim), claim.text, doubtful=not claim.agrees, notes=claim.notes, details=basis)


def _table(table: PublishedTable) -> TextTable:
    return TextTable(table.title, table.headings, table.rows, spaced=True)


def claim_words(claim: PublishedClaim) -> str:
    """A claim with its verdict, on one line."""
    said = f"{claim.published} is claimed; " if claim.published else ""
    verdict = "" if claim.published is None else "agrees: " if claim.agrees else "DOES NOT AGREE: "
    return f"{verdict}{said}the tables give {claim.computed}"


def _document(view: PublishedView) -> dict[str, Any]:
    """The key `published` of `show --json`."""
    return {
        "source": view.source,
        "tested": view.tested,
        "agreed": view.agreed,
        "tolerance": view.tolerance,
        "doubts": [
            {
                "number": d.number,
                "code": d.code,
                "title": d.title,
                "text": d.text,
                "evidence": list(d.evidence),
            }
            for d in view.doubts
        ],
        "claims": [
            {
                "text": claim.text,
                "section": claim.section,
                "published": claim.published,
                "computed": claim.computed,
                "agrees": claim.agrees if claim.published is not None else None,
                "notes": list(claim.notes),
                "rests_on": list(claim.rests_on),
            }
            for claim in view.claims
        ],
        "derived": list(view.derived),
    }
