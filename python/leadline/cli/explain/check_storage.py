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
        help="Measure a block device by reads, or a directory by an unnamed file. Repeat for several: "
        "each alone, then all at once.",
    )
    destroy = click.option(
        "--destroy",
        multiple=True,
        type=AskedPath(exists=True, file_okay=True, dir_okay=False),
        metavar="DEVICE",
        help="Also measure a block device by writes: its contents are LOST. Refused if it has a "
        "partition, a file system, a label or a user. Repeat for several.",
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
