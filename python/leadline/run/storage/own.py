"""Directories on a mounted target that only we may change, by one descriptor each.

Called in a worker process only: any of these calls can hang with the file system under it.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from leadline import _core
from leadline.errors import TargetError
from leadline.removal import open_directory


def require_own(descriptor: int, words: str) -> None:
    """Raises TargetError for a directory that another user made, or may change."""
    why = _core.why_not_ours(descriptor)
    if why is not None:
        raise TargetError(
            f"{words} is not leadline's alone: {why}",
            "nothing in it was touched: look into it; where it is yours, chmod go-w it and do this again",
        )


@contextlib.contextmanager
def own_directory(path: Path) -> Iterator[int]:
    """A directory of ours, open. Raises TargetError where it is another user's."""
    parent, descriptor = open_directory(path)
    os.close(parent)
    try:
        require_own(descriptor, str(path))
        yield descriptor
    finally:
        os.close(descriptor)


def make_in_own(path: Path) -> None:
    """A new directory in one of ours."""
    with own_directory(path.parent) as own:
        os.mkdir(path.name, dir_fd=own)
