"""Removes directories of any size: in slices of time, with memory for some entries only, and nothing else.

No link is followed and no mount entered. On a target called in a worker process only: any of these calls can
hang with the file system under it.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import time
from collections.abc import Callable
from pathlib import Path

from leadline import _core
from leadline.errors import LeadlineError, TargetError

_BATCH = 1024  # entries listed at a time
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY

Chosen = Callable[[str], bool]


class _OutOfTimeError(Exception):
    """The slice is over."""


def mounted_here(path: Path) -> TargetError:
    """The refusal to go where something else is mounted."""
    return TargetError(
        f"something else is mounted on {path}: it is not leadline's and was left alone",
        f"unmount it (umount {path}), then do this again",
    )


def open_directory(path: Path) -> tuple[int, int]:
    """Descriptors of where `path` lies and of itself, which may be neither a link nor a mount."""
    parent = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
    try:
        return parent, open_in(parent, path)
    except BaseException:
        os.close(parent)
        raise


def open_in(parent: int, path: Path) -> int:
    """The same where `parent` is open already."""
    try:
        return _core.open_beneath(parent, path.name, _DIRECTORY)
    except OSError as error:
        if error.errno == errno.EXDEV:
            raise mounted_here(path) from None
        error.filename = str(path)
        raise


def remove_entries(
    directory: Path,
    slice_s: float,
    chosen: Chosen = lambda _: True,
    clock: Callable[[], float] = time.monotonic,
    opened: int | None = None,
) -> bool:
    """Remove the entries of `directory` that are `chosen` by name, with all below them.

    `opened` is its descriptor, where it has one. True when the time was over before all were gone: call it
    again. Raises OSError where one cannot be removed, TargetError at the first that something is mounted on.
    """
    descriptor = os.open(directory, _DIRECTORY | os.O_NOFOLLOW) if opened is None else os.dup(opened)
    try:
        _Removal(descriptor, clock() + slice_s, clock).empty(descriptor, directory, chosen)
    except _OutOfTimeError:
        return True
    except RecursionError:
        raise TargetError(
            f"{directory} holds directories that are nested too deeply", "remove them by hand: rm -r"
        ) from None
    finally:
        os.close(descriptor)
    return False


def remove_tree(path: Path, made: int | None = None, beneath: int | None = None) -> None:
    """Remove a directory with all below it. Raises as `remove_entries`.

    `made` is a descriptor that was kept of it: another directory that has its name by now is let be.
    `beneath` is one of the directory that it lies in, where that may have another name by now.
    """
    parent = os.open(path.parent, os.O_PATH | os.O_DIRECTORY) if beneath is None else os.dup(beneath)
    try:
        descriptor = open_in(parent, path)
        try:
            if made is not None and not os.path.samestat(os.fstat(made), os.fstat(descriptor)):
                raise TargetError(
                    f"{path} is another directory than leadline made there, and was left alone",
                    "see who may rename entries of the directory above",
                )
            remove_entries(path, float("inf"), opened=descriptor)
            os.rmdir(path.name, dir_fd=parent)
        finally:
            os.close(descriptor)
    finally:
        os.close(parent)


def discard_tree(path: Path, made: int | None = None, beneath: int | None = None) -> None:
    """The same, as far as it goes: what is not there, or cannot be removed, is let be."""
    with contextlib.suppress(OSError, LeadlineError):
        remove_tree(path, made, beneath)


class _Removal:
    """One removal: until when it lasts, and which device it stays on."""

    def __init__(self, descriptor: int, until: float, clock: Callable[[], float]) -> None:
        self._device = os.fstat(descriptor).st_dev
        self._until = until
        self._clock = clock

    def empty(self, descriptor: int, place: Path, chosen: Chosen = lambda _: True) -> None:
        """Batch after batch, as what is removed while it is listed may be listed or not."""
        before: list[tuple[str, bool]] = []
        while True:
            with os.scandir(descriptor) as listed:
                found = itertools.islice((entry for entry in listed if chosen(entry.name)), _BATCH)
                batch = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in found]
            if not batch:
                return
            if batch == before:  # a cache, or a code page: repeating would never end
                raise TargetError(
                    f"{place} still lists {batch[0][0]!r} after its removal", "see the file system's own logs"
                )
            before = batch
            for name, is_directory in batch:
                try:
                    self._remove(name, is_directory, descriptor, place / name)
                except OSError as error:
                    # Linux: only a mount keeps the name of a file, or of an empty directory, in use.
                    if error.errno in (errno.EXDEV, errno.EBUSY) and _is_mounted(name, descriptor):
                        raise mounted_here(place / name) from None
                    error.filename = str(place / name)
                    raise
            if self._clock() > self._until:
                raise _OutOfTimeError

    def _remove(self, name: str, is_directory: bool, parent: int, place: Path) -> None:
        if not is_directory:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name, dir_fd=parent)
            return
        descriptor = _core.open_beneath(parent, name, _DIRECTORY)
        try:
            if os.fstat(descriptor).st_dev != self._device:
                raise TargetError(
                    f"{place} is a device of its own, as a subvolume is, and was left alone",
                    "remove it by hand where it is not needed, then do this again",
                )
            self.empty(descriptor, place)
        finally:
            os.close(descriptor)
        os.rmdir(name, dir_fd=parent)


def _is_mounted(name: str, parent: int) -> bool:
    try:
        os.close(_core.open_beneath(parent, name, os.O_PATH))
    except OSError as error:
        return error.errno == errno.EXDEV
    return False
