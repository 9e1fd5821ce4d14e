"""What `leadline size` prints, and its table for a spreadsheet."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import TYPE_CHECKING

from leadline.cli.console import echo
from leadline.cli.explain.paragraphs import say

if TYPE_CHECKING:
    from leadline.sizing.designs import Design
    from leadline.sizing.moved import Inputs
    from leadline.sizing.shown import ShownSizing


def print_sizing(view: ShownSizing) -> None:
    """The answer first, then each design, then what moves it."""
    say(view.asked)
    say(view.answer)
    for line in view.servers:
        say(line)
    for line in view.nearest:
        say(f"  {line}")
    if view.works:
        echo()
        say("Clients whose work a file says:")
        for line in view.works:
            say(f"  {line}")
    for one in view.designs:
        echo()
        say(one.title)
        for line in one.lines:
            say(f"  {line}")
    if view.moves:
        echo()
        say("What moves the answer, each input alone by a tenth:")
        for line in view.moves:
            say(f"  {line}")
    for line in view.refused:
        say(line)


def print_beside(
    pairs: Sequence[tuple[Design, Design]], before: Inputs, after: Inputs, what_if: str | None
) -> None:
    """Two designs in columns; of a changed input every design before and after."""
    from leadline.sizing.shown import beside

    for number, (one, other) in enumerate(pairs):
        if number:
            echo()
        ends = ("now", str(what_if)) if what_if else (one.name, other.name)
        rows = [(one.name if what_if else "", *ends), *beside(one, other, before, after)]
        widths = [max(len(row[place]) for row in rows) for place in (0, 1)]
        for row in rows:
            echo(f"{row[0]:<{widths[0]}}  {row[1]:<{widths[1]}}  {row[2]}".rstrip())


def csv_text(inputs: Inputs, front: Sequence[Design]) -> str:
    """A row a design, in base units; what is not known is empty."""
    from leadline.sizing.degraded import WORDS
    from leadline.sizing.shown import degraded_of

    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    names = ("kind", "hosts", "protection", "usable_bytes", "link_headroom", "rebuild_s_least")
    states = tuple(f"links_carry_{state}" for state in WORDS)
    costs = (f"price_{inputs.catalogue.currency}", "power_w", "rack_units")
    rows.writerow((*names, *costs, *states))
    for one in front:
        figures = (round(one.usable_bytes), one.headroom, one.rebuild_s)
        own = (one.price, one.power_w, one.rack_units)
        left = {found.state: 0.0 if found.stopped else found.carried for found in degraded_of(inputs, one)}
        carried = (left.get(state) for state in WORDS)
        rows.writerow((_text(one.kind), one.hosts, one.protection, *figures, *own, *carried))
    return text.getvalue()


def _text(value: str) -> str:
    """A name that a spreadsheet would take for a formula is text."""
    return f"'{value}" if value[:1] in "=+-@" else value
