"""`leadline undo`: removes what an interrupted run left below its targets."""

from __future__ import annotations

from pathlib import Path

import click

from leadline.cli.console import complain, echo
from leadline.cli.main import EXIT_FAILED, EXIT_GOOD, EXIT_INTERRUPTED
from leadline.cli.paths import AskedPath
from leadline.cli.trust import require_trust, trust_option


@click.command(short_help="Remove what an interrupted run left below its targets")
@click.argument("directory", type=AskedPath())
@trust_option
def command(directory: Path, trusted: bool) -> int:
    """Undo the changes that the journal of the result in DIRECTORY says are still in place.

    Only directories that carry the mark of this very result are removed; and beside the result what a
    killed command was making there.
    """
    from leadline.run.session import undo_run
    from leadline.store.making import remove_leftovers

    seen = require_trust(directory, "remove what it says it left", trusted=trusted)
    try:
        removed, left, damage = undo_run(directory, seen)
    except KeyboardInterrupt:
        complain(f"interrupted; what is left carries its mark still, go on with: leadline undo {directory}")
        return EXIT_INTERRUPTED
    if damage:
        complain(f"{damage}; so every place of the plan was looked at")
    removed += map(str, remove_leftovers(directory.absolute().parent))
    for place in removed:
        echo(f"removed: {place}")
    for place, why in left.items():
        echo(f"could not be removed: {place}: {why}", err=True)
    if not removed and not left:
        echo("nothing to undo")
    return EXIT_FAILED if left else EXIT_GOOD
