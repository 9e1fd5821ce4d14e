"""Which rows are one process: a source has a row an image, and an exec begins an image, not a process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, TypeVar

# What a process row is called that stands for files which all processes share.
ALL_RANKS = "all ranks"


class Image(Protocol):
    """What tells images apart: a row of table `processes`, or what is shown of it."""

    @property
    def copy(self) -> int: ...
    @property
    def process(self) -> int: ...
    @property
    def pid(self) -> int: ...
    @property
    def end(self) -> str: ...
    @property
    def command(self) -> str: ...


Place = tuple[int, int]
_Row = TypeVar("_Row", bound=Image)


def lives(rows: Sequence[Image]) -> dict[Place, int]:
    """Of each image (copy, number) the number of the first image of its process.

    A pid's next image goes on with the process where the one before ended by an exec; else the kernel gave
    the number away again.
    """
    found: dict[Place, int] = {}
    latest: dict[Place, Image] = {}
    for row in sorted(rows, key=_place):
        before = latest.get((row.copy, row.pid))
        goes_on = before is not None and before.end == "exec"
        found[_place(row)] = found[_place(before)] if goes_on and before is not None else row.process
        latest[row.copy, row.pid] = row
    return found


def by_life(rows: Sequence[_Row]) -> list[list[_Row]]:
    """The images of each process, in their order; without the row of what all ranks share."""
    first = lives(rows)
    found: dict[Place, list[_Row]] = {}
    for row in sorted(rows, key=_place):
        if row.command != ALL_RANKS:
            found.setdefault((row.copy, first[_place(row)]), []).append(row)
    return list(found.values())


def ranks_behind(rows: Sequence[Image]) -> Mapping[Place, int]:
    """How many processes each row stands for: what all ranks share stands for all of its copy's."""
    ranks: dict[int, int] = {}
    for images in by_life(rows):
        ranks[images[0].copy] = ranks.get(images[0].copy, 0) + 1
    return {_place(row): ranks.get(row.copy, 1) if row.command == ALL_RANKS else 1 for row in rows}


def _place(row: Image) -> Place:
    """Some sources number the images of each copy from 0."""
    return row.copy, row.process
