"""Writes files that a crash leaves old or new, never in part, and that no other account can exchange."""

from __future__ import annotations

import os
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

_UNFINISHED = re.compile(r"\.leadline-[0-9a-f]{16}")


def unfinished(path: Path) -> Path:
    """Beside `path`, a name that nobody can foresee, for what gets its own name once it is whole."""
    return path.with_name(f".leadline-{secrets.token_hex(8)}")


def is_unfinished(name: str) -> bool:
    """Whether a name is of that kind."""
    return bool(_UNFINISHED.fullmatch(name))


def write_whole(path: Path, data: bytes, *, durable: bool = True) -> None:
    """Write a file so that a crash leaves the old one or the new one, never a part: see `written_whole`."""
    with written_whole(path, durable=durable) as file:
        file.write(data)


@contextmanager
def written_whole(path: Path, *, durable: bool = True) -> Iterator[BinaryIO]:
    """A file that is there, and durable, once the block ends well; after any other end all is as it was.

    It is as private as its directory. What can be made anew from other files need not be `durable`: a power
    failure can leave a part of it then, and the disk is not waited for.
    """
    partial = unfinished(path)
    try:  # around the opening, too: an interrupt can come as soon as the file is there
        with open(partial, "xb", opener=private_opener) as file:  # a new one: no link, no FIFO of others
            yield file
            file.flush()
            if durable:
                os.fsync(file.fileno())
            partial.replace(path)
    except BaseException:
        with suppress(OSError):
            partial.unlink()
        raise
    if durable:
        sync_directory(path.parent)


def private_opener(path: str, flags: int) -> int:
    """For `open`: a new file is for those only who may enter its directory; no link is followed."""
    mode = os.stat(os.path.dirname(path) or ".").st_mode & 0o666  # noqa: PTH116, PTH120 - `open` hands text
    return os.open(path, flags | os.O_NOFOLLOW, mode)


def new_file(path: Path, *, buffering: int = -1) -> BinaryIO:
    """A new file to write, as private as its directory. It replaces a plain file, and nothing else."""
    with suppress(FileNotFoundError):
        if stat.S_ISREG(path.lstat().st_mode):
            path.unlink()
    return open(path, "xb", buffering=buffering, opener=private_opener)


def sync_directory(path: Path) -> None:
    """Make a rename or a creation in this directory durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
