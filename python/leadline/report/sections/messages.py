"""Things that are said, and facts: lists on a terminal and in Markdown."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from leadline.report import format as fmt
from leadline.report.console import text
from leadline.report.markup import escape
from leadline.verdict.sections.section import Facts, Item, Words

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
    console.print(text(words.title or title, "bold"))
    for item in words.items:
        for line, style in _lines(item):
            console.print(text(line, style))


def _lines(item: Item) -> Iterator[tuple[str, str]]:
    style = "yellow" if item.doubtful else ""
    if item.number is not None:
        yield f"[{item.number}] {fmt.sentence(item.lead)}", style
        yield f"    {item.text}", ""
    else:
        yield from [(item.lead, "bold")] if item.lead else []
        yield from [(f"    {item.text}", style)] if item.text else []
    for name, value in item.points:
        yield f"    {name} {value}", ""
    for line in (*item.notes, *item.details):
        yield f"    {line}", "" if item.number is not None else "dim"


def words_markdown(words: Words, title: str) -> str:
    """The items below their title, as a list."""
    lines = [f"## {escape(words.title or title)}", ""]
    for item in words.items:
        lines += _markdown(item)
    return "\n".join(lines)


def _markdown(item: Item) -> Iterator[str]:
    if item.number is not None:
        yield f"{item.number}. **{escape(fmt.sentence(item.lead))}.** {escape(item.text)}"
    elif item.lead:
        yield f"- **{escape(item.lead)}**: {escape(item.text)}"
    else:
        yield f"- {escape(item.text)}"
    indent = "   " if item.number is not None else "  "
    for line in (*(f"{name} {value}" for name, value in item.points), *item.notes, *item.details):
        yield f"{indent}- {escape(line)}"


def show_facts(facts: Facts, title: str, console: Console) -> None:
    """Print the facts, a line each."""
    console.print()
    console.print(text(facts.title or title, "bold"))
    for name, value in facts.values.items():
        console.print(text(f"    {name}: {fact_words(value)}"))


def facts_markdown(facts: Facts, title: str) -> str:
    """The facts as a list below their title."""
    lines = [f"- {escape(name)}: {escape(fact_words(value))}" for name, value in facts.values.items()]
    return "\n".join([f"## {escape(facts.title or title)}", "", *lines])
