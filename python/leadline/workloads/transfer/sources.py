"""The user's files that a transfer sends: what is known of them before the plan, and how they are shared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

FILES_MAX = 1_024  # each stands in the plan by its name


@dataclass(frozen=True)
class SourceFile:
    """A file that is sent."""

    path: str
    bytes: int


@dataclass(frozen=True)
class SourceLook:
    """Finds the files at a path on this host, in the order of their names.

    Raises TargetError where there is none, or more than FILES_MAX.
    """

    find: Callable[[str], Sequence[SourceFile]]


def largest_share(files: Sequence[SourceFile], writers: int) -> int:
    """Bytes of the stream that has most, where the files are dealt out one after another."""
    return max(sum(file.bytes for file in files[first::writers]) for first in range(min(writers, len(files))))
