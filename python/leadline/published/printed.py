"""Published figures on a terminal, as Markdown and as JSON: what does not agree, the claims, the tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from leadline.errors import UsageError
from leadline.report import format as fmt
from leadline.verdict.model import Findings, PublishedClaim, PublishedEntry, PublishedTable, PublishedView

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text


def view_of(findings: Findings) -> PublishedView:
    """The document's view; UsageError where the findings are of trials."""
    if findings.published is None:
        raise UsageError("this result holds trials, not a document's figures", "use: leadline show")
    return findings.published


def entry_words(entry: PublishedEntry) -> str:
    """A figure with the numbers of its doubts: `44m [3]`."""
    marks = ",".join(str(number) for number in entry.doubts)
    return f"{fmt.printable(entry.text)} [{marks}]" if marks else fmt.printable(entry.text)


def claim_words(claim: PublishedClaim) -> str:
    """A claim with its verdict, on one line."""
    said = f"{claim.published} is claimed; " if claim.published else ""
    verdict = "" if claim.published is None else "agrees: " if claim.agrees else "DOES NOT AGREE: "
    return f"{verdict}{said}the tables give {claim.computed}"


def show_published(findings: Findings, console: Console) -> None:
    """Print a document: what does not agree first, then claims, then its tables."""
    view = view_of(findings)
    console.print(_text(findings.title, "bold"))
    console.print(
        _text(
            f"Source: {view.source}. Nothing of this was measured here." if view.source else "Published",
            "dim",
        )
    )
    console.print()
    console.print(_text(findings.statements[0].text, "bold"))
    console.print(_text(f"Tolerance: {view.tolerance}", "dim"))
    _section(console, "Doubts")
    for doubt in view.doubts:
        console.print(_text(f"[{doubt.number}] {fmt.sentence(doubt.title)}", "yellow"))
        for line in (doubt.text, *doubt.evidence):
            console.print(_text(f"    {line}"))
    _section(console, "Claims, and what they rest on")
    for claim in view.claims:
        console.print(_text(claim.text, "bold"))
        console.print(_text(f"    {claim_words(claim)}", "" if claim.agrees else "yellow"))
        for line in (*claim.notes, *(f"rests on {basis}" for basis in claim.rests_on)):
            console.print(_text(f"    {line}", "dim"))
    for table in view.tables:
        print_table(table, console)
    if view.derived:
        _section(console, "What the document lets one compute")
        for line in view.derived:
            console.print(_text(f"    {line}"))


def print_table(table: PublishedTable, console: Console) -> None:
    """One table as published, its doubtful figures marked."""
    from rich import box
    from rich.table import Table

    shown = Table(
        title=_text(table.title, "bold"), title_justify="left", box=box.SIMPLE_HEAD, show_edge=False
    )
    for heading in table.headings:
        shown.add_column(_text(heading), overflow="fold")
    for row in table.rows:
        shown.add_row(*(_text(entry_words(entry), "yellow" if entry.doubts else "") for entry in row))
    console.print()
    console.print(shown)


def _section(console: Console, title: str) -> None:
    console.print()
    console.print(_text(title, "bold"))


def _text(value: object, style: str = "") -> Text:
    from rich.text import Text

    return Text(fmt.printable(value), style=style)


def published_markdown(findings: Findings) -> str:
    """The same for a ticket or a wiki."""
    from leadline.report.renderers.markdown import (
        escape,  # which renders published figures through this module
    )

    view = view_of(findings)
    lines = [f"# {escape(findings.title)}", ""]
    lines += [f"Source: {escape(view.source)}. Nothing of this was measured here.", ""] if view.source else []
    lines += [
        f"**{escape(findings.statements[0].text)}**",
        "",
        f"Tolerance: {escape(view.tolerance)}.",
        "",
        "## Doubts",
        "",
    ]
    for doubt in view.doubts:
        lines.append(f"{doubt.number}. **{escape(fmt.sentence(doubt.title))}.** {escape(doubt.text)}")
        lines += [f"   - {escape(item)}" for item in doubt.evidence]
    lines += ["", "## Claims, and what they rest on", ""]
    for claim in view.claims:
        lines.append(f"- **{escape(claim.text)}**: {escape(claim_words(claim))}")
        lines += [f"  - {escape(item)}" for item in claim.notes]
        lines += [f"  - rests on {escape(item)}" for item in claim.rests_on]
    lines += [line for table in view.tables for line in _markdown_table(table)]
    if view.derived:
        lines += [
            "",
            "## What the document lets one compute",
            "",
            *(f"- {escape(item)}" for item in view.derived),
        ]
    return "\n".join(lines) + "\n"


def _markdown_table(table: PublishedTable) -> Iterator[str]:
    from leadline.report.renderers.markdown import escape

    yield from ("", f"## {escape(table.title)}", "")
    yield "| " + " | ".join(escape(heading) for heading in table.headings) + " |"
    yield "|" + " --- |" * len(table.headings)
    for row in table.rows:
        yield "| " + " | ".join(escape(entry_words(entry)) for entry in row) + " |"


def published_json(view: PublishedView) -> dict[str, Any]:
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
