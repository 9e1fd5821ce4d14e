"""Removes directories of any size: in slices of time, with memory for some entries only, following no link.

Called in a worker process only: any of these calls can hang with the file system under it.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import time
from collections.abc import Callable
from pathlib import Path

_BATCH = 1024  # entries listed at a time


class _OutOfTimeError(Exception):
    """The slice is over."""


def remove_entries(
    directory: Path,
    slice_s: float,
    chosen: Callable[[str], bool] = lambda _: True,
    clock: Callable[[], float] = time.monotonic,
) -> bool:
    """Remove the entries of `directory` that are `chosen` by name, with all below them.

    True when the time was over before all were gone: then call it again. Raises OSError where one cannot be
    removed.
    """
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        _empty(descriptor, clock() + slice_s, chosen, clock)
    except _OutOfTimeError:
        return True
    finally:
        os.close(descriptor)
    return False


def _empty(descriptor: int, until: float, chosen: Callable[[str], bool], clock: Callable[[], float]) -> None:
    """Batch after batch, as what is removed while it is listed may be listed or not."""
    while True:
        with os.scandir(descriptor) as listed:
            found = itertools.islice((entry for entry in listed if chosen(entry.name)), _BATCH)
            batch = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in found]
        if not batch:
            return
        for name, is_directory in batch:
            if is_directory:
                _remove_directory(name, descriptor, until, clock)
            else:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(name, dir_fd=descriptor)
        if clock() > until:
            raise _OutOfTimeError


def _remove_directory(name: str, parent: int, until: float, clock: Callable[[], float]) -> None:
    descriptor = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=parent)
    try:
        _empty(descriptor, until, lambda _: True, clock)
    finally:
        os.close(descriptor)
    os.rmdir(name, dir_fd=parent)
