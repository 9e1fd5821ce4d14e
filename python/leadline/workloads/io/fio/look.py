"""What a plan finds out about the fio of this host: values only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

PROGRAM = "fio"


@dataclass(frozen=True)
class FioLook:
    """`find` gives the version of a program that is there, or None and why it is not."""

    find: Callable[[str], tuple[str | None, str]]
