"""What `check --on` and `--destroy` ask for: devices and directories of this host, measured."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from leadline.cli.console import echo
from leadline.cli.paths import AskedPath

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from leadline.check.facts import Fact


def storage_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """--on and --destroy."""
    on = click.option(
        "--on",
        multiple=True,
        type=AskedPath(exists=True),
        metavar="PLACE",
        help="Measure a block device by reading it, or a directory by an unnamed file in it; again for more: "
        "each alone, and all at once.",
    )
    destroy = click.option(
        "--destroy",
        multiple=True,
        type=AskedPath(exists=True, file_okay=True, dir_okay=False),
        metavar="DEVICE",
        help="Measure a block device by writing it, too: all that is on it is lost. Refused where it has a "
        "partition, a file system, a label or a user; again for more.",
    )
    return on(destroy(command))


def measure_storage(host: str, on: Sequence[Path], destroy: Sequence[Path]) -> list[Fact]:
    """Facts of them; none where none was named."""
    from leadline.check.storage.places import places_of
    from leadline.check.storage.rounds import seconds_for, storage_facts

    if not on and not destroy:
        return []
    places = places_of(on, destroy)
    what = "1 place is" if len(places) == 1 else f"{len(places)} places are"
    echo(f"{what} measured, about {seconds_for(places):.0f} s", err=True)
    return storage_facts(host, places)
