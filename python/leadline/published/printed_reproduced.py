"""Prints a document's figures beside measured and modelled ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from leadline.published.reproduced import Reproduction
from leadline.report import format as fmt

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text


def show_reproduction(title: str, origin: str, tables: Sequence[Reproduction], console: Console) -> None:
    """Each table with three labelled columns; `origin` says where the measured ones are from."""
    console.print(_text(title, "bold"))
    console.print(
        _text("published: as the document prints it. model: a line to hold figures against, no figure.")
    )
    console.print(_text(f"measured: {origin}"))
    for table in tables:
        _table(table, console)


def _table(table: Reproduction, console: Console) -> None:
    from rich import box
    from rich.table import Table

    shown = Table(
        title=_text(table.title, "bold"), title_justify="left", box=box.SIMPLE_HEAD, show_edge=False
    )
    for heading in ("row", "figure", "published", "measured here", "model"):
        shown.add_column(heading, overflow="fold")
    for line in table.lines:
        extra = line.published == "-"  # a line that only a model has: its label is the figure's name
        models = "; ".join(value if extra else f"{value} ({label})" for label, value in line.models)
        cells = (line.row, line.column, line.published, line.measured or fmt.NO_VALUE, models or fmt.NO_VALUE)
        shown.add_row(*(_text(cell) for cell in cells))
    console.print()
    console.print(shown)
    if table.cells is None:
        console.print(_text("  no cell of a study measures this table"))


def _text(value: object, style: str = "") -> Text:
    from rich.text import Text

    return Text(fmt.printable(value), style=style)


def reproduction_json(title: str, origin: str, tables: Sequence[Reproduction]) -> dict[str, Any]:
    """Format leadline.reproduce/1."""
    return {
        "format": "leadline.reproduce/1",
        "title": title,
        "measured": origin,
        "tables": [
            {
                "name": table.name,
                "title": table.title,
                "cells": table.cells,
                "lines": [
                    {
                        "row": line.row,
                        "figure": line.column,
                        "published": None if line.published == "-" else line.published,
                        "measured": line.measured,
                        "models": [{"label": label, "value": value} for label, value in line.models],
                    }
                    for line in table.lines
                ],
            }
            for table in tables
        ],
    }
