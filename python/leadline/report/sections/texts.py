"""Tables of words: as they stand, with the numbers of the items that are about them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from leadline.report import format as fmt
from leadline.report import markup
from leadline.report.console import new_table, text
from leadline.verdict.sections.section import Marked, TextTable

if TYPE_CHECKING:
    from rich.console import Console


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
    laid_out = new_table(table.title, spaced=table.spaced)
    rows = table.rows[: table.brief]
    for place, heading in enumerate(table.headings):
        justify = "right" if place in table.right else "left"
        laid_out.add_column(text(heading), justify=justify, overflow="fold")  # type: ignore[arg-type]
    for row in rows:
        laid_out.add_row(*(text(entry_words(entry), _style(entry)) for entry in row))
    console.print()
    console.print(laid_out)
    if note := note_of(table, len(rows)):
        console.print(text(f"  {note}", "dim"))


def _style(entry: str | Marked) -> str:
    return "yellow" if isinstance(entry, Marked) and entry.numbers else ""


def texts_markdown(table: TextTable) -> str:
    """The table below its title."""
    rows = table.rows[: table.brief]
    printed = [[markup.escape(entry_words(entry)) for entry in row] for row in rows]
    laid_out = markup.table([*map(markup.escape, table.headings)], table.right, printed)
    notes = [markup.escape(note)] if (note := note_of(table, len(rows))) else []
    return "\n\n".join([f"## {markup.escape(table.title)}", laid_out, *notes])
