"""What `check --on` and `--destroy` ask for and print: devices and directories of this host, measured."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from leadline.cli.console import echo
from leadline.cli.paths import AskedPath

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from leadline.check.facts import Fact

_COLUMNS = ("1 MiB", "64 KiB", "random 64 KiB", "random 4 KiB")
_SYNCED = ("plain", "and flush", "with FUA")


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


def print_storage(facts: Sequence[Fact]) -> None:
    """The figures of each place as a table, reads and writes, and what all of them reach at once."""
    from leadline.check.rows import words_of

    known = {(fact.subject, fact.name): fact for fact in facts}
    subjects = list(dict.fromkeys(fact.subject for fact in facts if not fact.name.endswith("_scaling")))
    for way in ("read", "write"):
        names = [f"{way}_1m_bytes_s", f"{way}_64k_bytes_s", f"rand{way}_64k_bytes_s", f"rand{way}_4k_iops"]
        _print_table(way, _COLUMNS, names, subjects, known)
    for fact in facts:
        if fact.name.endswith("_scaling") and fact.value is not None:
            pattern = fact.name.removesuffix("_scaling").replace("_", " ")
            echo(f"{fact.subject}, {pattern}: {words_of(fact.value)} of the sum of each alone")
    _print_table("a 4 KiB write", _SYNCED, ("plain_us", "flush_us", "fua_us"), subjects, known)


def _print_table(
    title: str,
    columns: Sequence[str],
    names: Sequence[str],
    subjects: Sequence[str],
    known: Mapping[tuple[str, str], Fact],
) -> None:
    """A line for each place that was asked for any of these; nothing where none was."""
    from leadline.check.rows import words_of

    asked = [subject for subject in subjects if any((subject, name) in known for name in names)]
    if not asked:
        return
    width = max(len(subject) for subject in subjects)
    echo()
    echo(f"{title:<{width + 2}}" + "".join(f"  {column:>13}" for column in columns))
    for subject in asked:
        facts = [known.get((subject, name)) for name in names]
        words = [words_of(fact.value, fact.name) if fact else "-" for fact in facts]
        echo(f"  {subject:<{width}}" + "".join(f"  {word:>13}" for word in words))
