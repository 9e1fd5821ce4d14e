"""`leadline undo`: removes what an interrupted run left below its targets."""

from __future__ import annotations

from pathlib import Path

import click

from leadline.cli.main import EXIT_FAILED, EXIT_GOOD
from leadline.cli.paths import AskedPath


@click.command(short_help="Remove what an interrupted run left below its targets")
@click.argument("directory", type=AskedPath())
def command(directory: Path) -> int:
    """Undo the changes that the journal of the result in DIRECTORY says are still in place.

    Only directories that carry the mark of this very result are removed.
    """
    from leadline.run.session import undo_run

    removed, left = undo_run(directory)
    for place in removed:
        click.echo(f"removed: {place}")
    for place in left:
        click.echo(f"could not be removed: {place}", err=True)
    if not removed and not left:
        click.echo("nothing to undo")
    return EXIT_FAILED if left else EXIT_GOOD
