"""The figures of results, by the names that `leadline trend` knows them by."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from leadline.cli.console import complain, echo, echo_text
from leadline.cli.read.indexes import indexed_results, say_left_out
from leadline.units import printable

if TYPE_CHECKING:
    from leadline.store.index import Indexed

_CELLS_SHOWN = 8


def say_figures(directory: Path, figures: Collection[tuple[str, str]], unknown: int) -> None:
    """What `trend` can follow: cells and metrics; `unknown` is how many results have no fresh summary."""
    by_cell: dict[str, list[str]] = {}
    for cell, metric in sorted(figures):
        by_cell.setdefault(cell, []).append(metric)
    if by_cell:
        echo()
        echo(f"figures, as in: leadline trend {_example(by_cell)} {directory}")
        for cell, metrics in list(by_cell.items())[:_CELLS_SHOWN]:
            echo(printable(f"  {cell}.  {', '.join(metrics)}"))
        if len(by_cell) > _CELLS_SHOWN:
            echo(f"  and of {len(by_cell) - _CELLS_SHOWN} more cells: leadline list --figures")
    if unknown:
        words = "1 result has" if unknown == 1 else f"{unknown} results have"
        echo(f"{words} no fresh summary, and figures that are not listed here: leadline list --figures")


def _example(by_cell: Mapping[str, Sequence[str]]) -> str:
    cell, metrics = next(iter(by_cell.items()))
    return f"'{cell}.{metrics[0]}'"


def list_figures(directory: Path, *, as_json: bool) -> int:
    """Every figure below a directory, with its unit and how many results have it, those of all results."""
    rows, unreadable, notes = indexed_results(directory, lambda _figure: True)
    found: dict[str, list[Indexed]] = {}
    for item in sorted(rows, key=lambda item: item.row.created):
        found.setdefault(f"{item.row.cell}.{item.row.metric}", []).append(item)
    figures = [
        {
            "figure": name,
            "unit": points[-1].row.unit,
            "results": len({item.row.result for item in points}),
            "first": points[0].row.created,
            "last": points[-1].row.created,
        }
        for name, points in sorted(found.items())
    ]
    if as_json:
        echo_text(json.dumps({"format": "leadline.figures/1", "figures": figures}, indent=1))
    elif not figures:
        echo(f"no result below {printable(str(directory))} has figures")
    else:
        wide = max(len(str(one["figure"])) for one in figures)
        for one in figures:
            count = "1 result" if one["results"] == 1 else f"{one['results']} results"
            echo(printable(f"{one['figure']:<{wide}}  {one['unit']:<4} {count}"))
    for words in notes:
        complain(words)
    return say_left_out(unreadable.values())
