"""`leadline show`: the first screen on a terminal or a pipe, and one figure of all cells."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

from leadline.report import format as fmt
from leadline.report import metrics
from leadline.report.console import STYLES, new_table, text
from leadline.report.placing import word_for
from leadline.report.screen.figure import figure_table
from leadline.report.screen.layout import WIDTH
from leadline.report.screen.screen import lines_of, screen_of

if TYPE_CHECKING:
    from rich.console import Console

    from leadline.verdict.model import Findings


def show_screen(findings: Findings, console: Console, path: Path | None = None) -> bool:
    """Print the first screen of the result at `path`; False where there is none."""
    width = min(console.width, WIDTH)
    screen = screen_of(findings, width, word=word_for(path))
    if screen is None:
        return False
    for line, style in lines_of(screen, width):
        console.print(text(line, STYLES.get(style, style)))
    return True


def show_figure(findings: Findings, figure: str, console: Console) -> None:
    """Print one figure of every cell. Raises UsageError for one that no cell has."""
    table, width = figure_table(findings, figure), min(console.width, WIDTH)
    shown = new_table(f"{findings.title}: {metrics.heading(figure)}")
    for place, heading in enumerate(table.headings):
        shown.add_column(
            heading, justify="right" if place in table.right else "left", no_wrap=place > 1, overflow="fold"
        )
    for row in table.rows:
        shown.add_row(*map(text, row))
    console.print(shown, width=width, soft_wrap=False)
    for note in table.notes:
        for line in textwrap.wrap(fmt.printable(note), width - 2):
            console.print(text(f"  {line}", "dim"))
