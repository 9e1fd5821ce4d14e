"""Opens what must be this account's own: a lab's file says which processes to end and what to remove.

No link is followed to it, and nobody else may have written it, whoever runs this: root follows only root's.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from leadline.errors import LabError, UsageError

_SAFE = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK  # a FIFO in its place is not waited for
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


@contextmanager
def opened(directory: Path) -> Iterator[int]:
    """A descriptor of a directory. Raises UsageError where it is none, a link, or others may write it."""
    try:
        descriptor = os.open(directory, _SAFE | os.O_DIRECTORY)
    except FileNotFoundError as error:
        raise UsageError(f"{directory} does not exist", "`leadline lab list` shows the labs.") from error
    except OSError as error:
        if error.errno not in (errno.ENOTDIR, errno.ELOOP):
            raise _unreadable(directory, error) from error
        what = "is a link, which is not followed" if directory.is_symlink() else "is not a lab"
        raise UsageError(f"{directory} {what}", "`leadline lab list` shows the labs.") from error
    try:
        _require_own(descriptor, directory)
        yield descriptor
    finally:
        os.close(descriptor)


def read_file(directory: int, name: str, path: Path) -> str | None:
    """The text of a file in an open directory, which is at `path`; None where there is none."""
    try:
        descriptor = os.open(name, _SAFE, dir_fd=directory)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unreadable(path / name, error) from error
    with open(descriptor, "rb") as file:  # noqa: PTH123 - a descriptor
        _require_own(descriptor, path / name)
        try:
            return file.read().decode()
        except (OSError, UnicodeDecodeError) as error:
            raise _unreadable(path / name, error) from error


def _require_own(descriptor: int, path: Path) -> None:
    found = os.fstat(descriptor)
    if found.st_uid != os.geteuid():
        raise UsageError(
            f"{path} belongs to user {found.st_uid}: nothing in it is believed", "Use that account."
        )
    if found.st_mode & _OTHERS_WRITE:
        mode = stat.S_IMODE(found.st_mode)
        raise UsageError(
            f"others than its owner may write {path} (mode {mode:04o}): nothing in it is believed",
            f"See that it is as you left it, then: chmod go-w {path}",
        )


def _unreadable(path: Path, error: Exception) -> LabError:
    return LabError(f"{path} cannot be read: {error}", "Use the account that started it.")
