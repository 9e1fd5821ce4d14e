"""What everything on a terminal is made of: text that cannot move the cursor, and tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from leadline.report import format as fmt

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

STYLES = {"VALID": "green", "DOUBTFUL": "yellow", "INVALID": "bold red", "NOT_RUN": "magenta"}


def text(value: object, style: str = "") -> Text:
    """Text that is never read as markup and never moves the cursor."""
    from rich.text import Text

    return Text(fmt.printable(value), style=style)


def new_table(title: str, *, spaced: bool = False) -> Table:
    """A table without frame; `spaced`: with room around each column."""
    from rich import box
    from rich.table import Table

    look: dict[str, Any] = {} if spaced else {"pad_edge": False, "padding": (0, 1, 0, 0), "header_style": ""}
    return Table(
        title=text(title, "bold"), title_justify="left", box=box.SIMPLE_HEAD, show_edge=False, **look
    )
