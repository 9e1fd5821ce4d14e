"""The way of a cell from the work to the device, as lines of text: a bar each, what waits, what bounds."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from leadline.report import format as fmt
from leadline.report.console import text
from leadline.report.markup import escape
from leadline.verdict.sections.charts import PlacesChain, PlaceUse
from leadline.verdict.sections.section import Panels

if TYPE_CHECKING:
    from rich.console import Console

_BAR = 20
_UNSEEN = "not observed"
_MARK = " < bounds"
_ROW = 44 + _BAR + 6  # name, bar and share beside each other
_INDENT = " " * 11
_WIDTH = 100


def place_lines(uses: Sequence[PlaceUse], width: int) -> Iterator[str]:
    """Part by part, what bounds marked by a word; what there is no room for stands in a line of its own."""
    for part in uses:
        name, bar = f"  {part.place:<8} {part.what}", f"{_bar(part)}{_MARK if part.bounds else ''}"
        waits = fmt.printable(part.waits) if part.waits != _UNSEEN else ""
        if width < _ROW + len(_MARK):
            yield name[:width]
            if bar.strip():
                yield f"{_INDENT}{bar.strip()}"
            yield from textwrap.wrap(waits, width, initial_indent=_INDENT, subsequent_indent=_INDENT)
            continue
        line = f"{name:<43} {bar}"
        if waits and max(len(line), _ROW) + len(waits) + 2 <= width:
            line, waits = f"{line:<{_ROW}}  {waits}", ""
        yield line.rstrip()
        yield from textwrap.wrap(waits, width, initial_indent=_INDENT, subsequent_indent=_INDENT)


def _bar(part: PlaceUse) -> str:
    if part.use is None:
        return f"{_UNSEEN if part.can_be_full else '':>{_BAR + 6}}"
    return f"{'#' * round(min(part.use, 1.0) * _BAR):.<{_BAR}} {100 * part.use:3.0f} %"


def _chains(panels: Panels) -> list[PlacesChain]:
    return [chart for row in panels.rows for chart in row if isinstance(chart, PlacesChain)]


def show_places(panels: Panels, console: Console) -> None:
    """Print the ways that are among some charts, below their title."""
    chains = _chains(panels)
    for line in filter(None, [panels.title, panels.note]) if chains else ():
        console.print()
        console.print(text(line, "bold" if line is panels.title else "dim"))
    for one in chains:
        console.print()
        console.print(text(f"{one.title}: {one.bound}"))
        for line in place_lines(one.uses, _WIDTH):
            console.print(text(line))


def places_markdown(panels: Panels) -> str:
    """The same as blocks of plain text."""
    chains = _chains(panels)
    if not chains:
        return ""
    parts = [f"## {escape(panels.title)}", escape(panels.note)]
    for one in chains:
        # Indented code cannot be closed from inside, as a fence can.
        drawn = "\n".join(f"    {line}" for line in place_lines(one.uses, _WIDTH))
        parts += [f"{escape(one.title)}: {escape(one.bound)}", drawn]
    return "\n\n".join(part for part in parts if part)
