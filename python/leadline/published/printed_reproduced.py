"""A document's figures beside measured and modelled ones, as tables and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from leadline.published.reproduced import Reproduction
from leadline.units import NO_VALUE
from leadline.verdict.sections.section import TextTable

_HEADINGS = ("row", "figure", "published", "measured here", "model")


def reproduction_lines(title: str, origin: str) -> tuple[str, ...]:
    """What stands above the tables; `origin` says where the measured figures are from."""
    return (
        title,
        "published: as the document prints it. model: a line to hold figures against, no figure.",
        f"measured: {origin}",
    )


def reproduction_table(table: Reproduction) -> TextTable:
    """A table with three labelled columns of figures."""
    rows = []
    for line in table.lines:
        extra = line.published == "-"  # a line that only a model has: its label is the figure's name
        models = "; ".join(value if extra else f"{value} ({label})" for label, value in line.models)
        rows.append((line.row, line.column, line.published, line.measured or NO_VALUE, models or NO_VALUE))
    note = "no cell of a study measures this table" if table.cells is None else ""
    return TextTable(table.title, _HEADINGS, tuple(rows), note=note, spaced=True)


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
