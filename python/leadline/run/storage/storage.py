"""The storage that a study works on: what a mount holds, or what a library reaches, chosen here alone.

Called in a worker process only: any of these calls can hang with the storage behind it.
"""

from __future__ import annotations

import errno
import itertools
import os
from pathlib import Path
from typing import Protocol

from leadline import _core
from leadline.errors import TargetError
from leadline.run.storage.removal import remove_entries

_UNREADABLE = b"?"
_NAMES_MAX = 64  # enough to tell a directory that holds a mark alone


class Storage(Protocol):
    """Directories and small files by their names. Errors are OSError or TargetError."""

    foreign_remedy: str
    """What a person does about a directory that is in the way."""

    def make_directory(self, directory: str) -> None:
        """FileExistsError where it is there."""

    def put(self, path: str, data: bytes) -> None:
        """A small file, written whole and synced."""

    def get(self, path: str, limit: int) -> bytes | None:
        """A small file, its first bytes; None where there is none."""

    def is_absent(self, directory: str) -> bool:
        """True where there is certainly no such directory."""

    def may_be_named(self, directory: str, name: str) -> bool:
        """Whether the directory of a study of that name could be this one, and no link to another."""

    def holds(self, directory: str) -> set[str]:
        """Names in a directory, of very many the first; FileNotFoundError where it is certainly not there."""

    def remove_empty(self, directory: str, mark: str) -> None:
        """Remove the mark and the directory, which fails where anything else is in it."""

    def remove_files(self, directory: str, prefix: str, slice_s: float) -> bool:
        """Remove what begins with `prefix`, with all below it; True when more is left after the time."""

    def remove_directory(self, directory: str, mark: str, slice_s: float) -> bool:
        """Remove all that is in a directory, then the mark, then itself; True when more is left."""

    def space(self, directory: str) -> tuple[int, int] | None:
        """Bytes in all, and free; None where the storage does not say."""


def open_storage(location: str | None) -> Storage:
    """What the URL `location` leads to, connected; without one, what is mounted on this host."""
    return MountedStorage() if location is None else LibraryStorage(location)


class MountedStorage:
    """Mounted file systems, by paths."""

    foreign_remedy = "move it away, or name another target"

    def make_directory(self, directory: str) -> None:
        """For us alone."""
        try:
            Path(directory).mkdir(mode=0o700)
        except FileExistsError:
            raise
        except OSError as error:
            raise TargetError(
                f"cannot make a directory below {Path(directory).parent}: {error.strerror}",
                "check that the target is mounted, is not read-only and may be written by you",
            ) from None

    def put(self, path: str, data: bytes) -> None:
        """A small file, written whole and synced."""
        with Path(path).open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())

    def get(self, path: str, limit: int) -> bytes | None:
        """A small file; one that cannot be read holds what nobody wrote, unless it is empty."""
        file = Path(path)
        try:
            with file.open("rb") as opened:
                return opened.read(limit)
        except FileNotFoundError:
            return None
        except OSError:
            return b"" if file.is_file() and file.stat().st_size == 0 else _UNREADABLE

    def is_absent(self, directory: str) -> bool:
        """True where there is certainly no such directory."""
        return not Path(directory).exists()

    def may_be_named(self, directory: str, name: str) -> bool:
        """A link is none, wherever it leads."""
        return not Path(directory).is_symlink() and Path(directory).name == name

    def holds(self, directory: str) -> set[str]:
        """FileNotFoundError where it is not there."""
        with os.scandir(directory) as found:
            return {entry.name for entry in itertools.islice(found, _NAMES_MAX)}

    def remove_empty(self, directory: str, mark: str) -> None:
        """The mark first; a directory that is not empty stays, with an OSError."""
        (Path(directory) / mark).unlink(missing_ok=True)
        Path(directory).rmdir()

    def remove_files(self, directory: str, prefix: str, slice_s: float) -> bool:
        """Following no link."""
        return remove_entries(Path(directory), slice_s, lambda name: name.startswith(prefix))

    def remove_directory(self, directory: str, mark: str, slice_s: float) -> bool:
        """Following no link; the mark goes last."""
        if remove_entries(Path(directory), slice_s, lambda name: name != mark):
            return True
        self.remove_empty(directory, mark)
        return False

    def space(self, directory: str) -> tuple[int, int] | None:
        """Of the file system, for a user who is not root."""
        found = os.statvfs(directory)
        return found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize


class LibraryStorage:
    """What a library reaches by a URL. Directories begin with `/`."""

    foreign_remedy = "remove it, or name another target"

    def __init__(self, location: str) -> None:
        self._volume = _core.Volume(location)

    def make_directory(self, directory: str) -> None:
        """FileExistsError where it is there."""
        self._volume.make_directory(directory)

    def put(self, path: str, data: bytes) -> None:
        """A small file, written whole."""
        self._volume.put(path, data)

    def get(self, path: str, limit: int) -> bytes | None:
        """A small file, its first bytes; None where there is none."""
        return self._volume.get(path, limit)

    def is_absent(self, directory: str) -> bool:  # noqa: ARG002 - where directories are only names, none is
        """Nobody knows: many storages have no directories, only names that begin alike."""
        return False

    def may_be_named(self, directory: str, name: str) -> bool:
        """At the top of what the URL leads to."""
        return directory == f"/{name}"

    def holds(self, directory: str) -> set[str]:
        """Where directories are only names, what begins so; FileNotFoundError where nothing does."""
        return set(self._volume.names_in(directory, _NAMES_MAX))

    def remove_empty(self, directory: str, mark: str) -> None:
        """The mark first; a directory that is not empty stays, with an OSError."""
        self._volume.remove_directory(directory, mark)

    def remove_files(self, directory: str, prefix: str, slice_s: float) -> bool:
        """Remove what begins with `prefix`; True when time was over before all was gone."""
        return self._volume.remove_files(directory, prefix, slice_s)

    def remove_directory(self, directory: str, mark: str, slice_s: float) -> bool:
        """What is gone already is removed; the directory itself has to be, not something in it."""
        try:
            if self._volume.remove_files(directory, "", slice_s):
                return True
            self.remove_empty(directory, mark)
        except FileNotFoundError as missing:
            try:
                self.holds(directory)
            except FileNotFoundError:
                return False
            raise missing from None
        return False

    def space(self, directory: str) -> tuple[int, int] | None:  # noqa: ARG002 - of all that the URL leads to
        """Bytes in all, and free; None where the storage does not say."""
        try:
            return self._volume.space()
        except OSError as error:
            if error.errno != errno.ENOTSUP:
                raise
            return None
