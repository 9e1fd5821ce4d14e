"""What `leadline check` prints on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from leadline.cli.console import echo
from leadline.cli.explain.paragraphs import say

if TYPE_CHECKING:
    from leadline.check.shown import ShownCheck, ShownTable

_CELL = 13


def print_check(shown: ShownCheck, *, everything: bool) -> None:
    """All of it; `everything`: also what is as it should be."""
    echo(shown.headline)
    for one in shown.findings:
        echo()
        say(f"{one.severity.upper()}  {one.title}: {one.whom}")
        say(f"  {one.why}")
        say(f"  Do: {one.remedy}")
        say(f"  See: {one.verify}   [{one.source}]")
    if shown.changes is not None:
        echo()
        some = bool(shown.changes)
        echo(f"Otherwise than before: {len(shown.changes)}" if some else "Nothing is otherwise than before.")
        for change in shown.changes:
            say(f"  {change}")
    if shown.unknown:
        echo()
        echo("Could not be read, or not be told:")
        for line in shown.unknown:
            say(f"  {line}")
    for table in shown.tables:
        _print_table(table)
    echo()
    if not everything:
        echo(f"{len(shown.fine)} are as they should be; --all lists them.")
        return
    echo(f"As it should be ({len(shown.fine)}):")
    for subject, title, seen in shown.fine:
        say(f"  {subject}  {title}: {seen}")


def _print_table(table: ShownTable) -> None:
    names = max(len(name) for name in (table.title, *(f"  {name}" for name, _ in table.rows)))
    echo()
    echo(f"{table.title:<{names}}" + "".join(f"  {column:>{_CELL}}" for column in table.columns))
    for name, cells in table.rows:
        echo(f"{f'  {name}':<{names}}" + "".join(f"  {cell:>{_CELL}}" for cell in cells))
    for note in table.notes:
        say(f"  {note}")
