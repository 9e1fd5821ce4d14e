"""The storage that a study works on: what a mount holds, or what a library reaches, chosen here alone."""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from leadline import _core
from leadline.errors import TargetError
from leadline.observe.mounts.mountinfo import mount_of, read_mounts
from leadline.removal import open_directory, open_in, remove_entries
from leadline.study.target import TargetFacts


class Mounted(NamedTuple):
    """Where a file system is mounted, its type, and what it was mounted from."""

    mount_point: str
    file_system: str
    source: str

    def words(self) -> str:
        """As a person reads it."""
        return f"{self.file_system} ({self.source}) mounted on {self.mount_point}"


def mounted_of(facts: TargetFacts | None) -> Mounted | None:
    """What was found when the study was planned; None for what has no mount, and of older results."""
    if facts is None or facts.mount_point is None or facts.source is None:
        return None
    return Mounted(facts.mount_point, facts.file_system, facts.source)


def require_mounted(top: Path, was: Mounted | None) -> None:
    """Raises TargetError where the target `top` is not there, or lies on something else than it did."""
    if not top.is_dir():
        raise TargetError(
            f"{top} is no directory any more: what the study left in it was not found",
            "bring it back to this place, then do this again",
        )
    mount = mount_of(os.path.realpath(top), read_mounts())
    _require(top, None if mount is None else Mounted(mount.mount_point, mount.file_system, mount.source), was)


def require_same(top: Path, found: TargetFacts, was: Mounted) -> None:
    """The same for a target that was just looked at, on another host."""
    _require(top, mounted_of(found), was)


def _require(top: Path, now: Mounted | None, was: Mounted | None) -> None:
    if was is not None and now is not None and now != was:
        raise TargetError(
            f"{top} lay on {was.words()} when the study began, and lies on {now.words()} now",
            "mount it as it was, then do this again",
        )


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


_UNREADABLE = b"?"
_OWNER_PROBE = ".leadline-owner-"  # what a look for the owner that files of ours show makes and removes
_NAMES_MAX = 1000  # of very many names, those that are looked at


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

    def remove_directory(self, directory: str, begins: Sequence[str], mark: str, slice_s: float) -> bool:
        """Remove what begins so in a directory, then the mark, then itself; True when more is left.

        Where anything else is in it, the mark and the directory stay: TargetError.
        """

    def space(self, directory: str) -> tuple[int, int] | None:
        """Bytes in all, and free; None where the storage does not say."""


def open_storage(location: str | None) -> Storage:
    """What the URL `location` leads to, connected; without one, what is mounted on this host."""
    return MountedStorage() if location is None else LibraryStorage(location)


def _require_nothing_else(directory: str, names: set[str], mark: str) -> None:
    """Raises TargetError where others put something among what is ours; our lists begin as the mark does."""
    others = sorted(name for name in names if not name.startswith(mark))
    if others:
        raise TargetError(
            f"{directory} holds {others[0]!r}, which leadline did not make: it was left alone",
            "move it elsewhere, then do this again",
        )


def _open_new(parent: int, path: Path) -> int:
    """The directory that was just made there: it is empty, or another took its name meanwhile."""
    descriptor = open_in(parent, path)
    if os.listdir(descriptor):  # noqa: PTH208 - of a descriptor
        os.close(descriptor)
        raise TargetError(
            f"{path} was exchanged for another directory while it was made: nothing in it was touched",
            f"find out who may rename entries of {path.parent}, or name another target",
        )
    return descriptor


class MountedStorage:
    """Mounted file systems. A directory is opened once; all else is done by its descriptor."""

    foreign_remedy = "move it away, or name another target"

    def __init__(self) -> None:
        self._held: dict[str, tuple[int, int]] = {}

    def __del__(self) -> None:
        for held in self._held.values():
            for descriptor in held:
                os.close(descriptor)

    def _open(self, directory: str) -> tuple[int, int]:
        """Where a directory lies, and itself."""
        if directory not in self._held:
            self._held[directory] = open_directory(Path(directory))
        return self._held[directory]

    def make_directory(self, directory: str) -> None:
        """For us alone."""
        path = Path(directory)
        try:
            parent = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
            try:
                os.mkdir(path.name, 0o700, dir_fd=parent)
                self._held[directory] = parent, _open_new(parent, path)
            except BaseException:
                os.close(parent)
                raise
        except FileExistsError:
            raise
        except OSError as error:
            raise TargetError(
                f"cannot make a directory below {path.parent}: {error.strerror}",
                "check that the target is mounted, is not read-only and may be written by you",
            ) from None

    def _own(self, directory: str) -> tuple[int, int]:
        """As `_open`; TargetError for a directory that another user made, or may change."""
        held = self._open(directory)
        require_own(held[1], directory)
        return held

    def put(self, path: str, data: bytes) -> None:
        """A small file, written whole and synced; nothing is in its place."""
        directory, name = os.path.split(path)
        descriptor = self._own(directory)[1]
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        with open(_core.open_beneath(descriptor, name, flags, 0o600), "wb") as file:  # noqa: PTH123
            file.write(data)
            file.flush()
            os.fsync(file.fileno())

    def get(self, path: str, limit: int) -> bytes | None:
        """A small file of ours; one that is not as `put` makes it, or cannot be read, is nobody's."""
        directory, name = os.path.split(path)
        descriptor = self._open(directory)[1]
        try:
            opened = _core.open_beneath(descriptor, name, os.O_RDONLY | os.O_NONBLOCK)
        except FileNotFoundError:
            return None
        except OSError:
            return _UNREADABLE
        with open(opened, "rb") as file:  # noqa: PTH123
            found, own = os.fstat(opened), os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1 or found.st_uid != own.st_uid:
                return _UNREADABLE
            require_own(descriptor, directory)
            return file.read(limit)

    def is_absent(self, directory: str) -> bool:
        """True where there is certainly no such directory; of what cannot be looked at nothing is certain."""
        try:
            os.lstat(directory)
        except FileNotFoundError:
            return True
        return False

    def may_be_named(self, directory: str, name: str) -> bool:
        """A link is none, wherever it leads, nor is what we may not read."""
        try:
            self._open(directory)
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.ENOTDIR, errno.EACCES):
                return False
            raise
        return Path(directory).name == name

    def holds(self, directory: str) -> set[str]:
        """FileNotFoundError where it is not there."""
        with os.scandir(self._open(directory)[1]) as found:
            return {entry.name for entry in itertools.islice(found, _NAMES_MAX)}

    def remove_files(self, directory: str, prefix: str, slice_s: float) -> bool:
        """Following no link and entering no mount."""
        opened = self._own(directory)[1]
        return remove_entries(Path(directory), slice_s, lambda name: name.startswith(prefix), opened=opened)

    def remove_directory(self, directory: str, begins: Sequence[str], mark: str, slice_s: float) -> bool:
        """Following no link and entering no mount; the mark goes last."""
        opened = self._own(directory)[1]
        ours = (*begins, _OWNER_PROBE)

        def chosen(name: str) -> bool:
            return name != mark and name.startswith(ours)

        if remove_entries(Path(directory), slice_s, chosen, opened=opened):
            return True
        _require_nothing_else(directory, self.holds(directory), mark)
        self.remove_empty(directory, mark)
        return False

    def remove_empty(self, directory: str, mark: str) -> None:
        """The mark first; a directory that is not empty stays, with an OSError."""
        parent, opened = self._own(directory)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(mark, dir_fd=opened)
        os.rmdir(Path(directory).name, dir_fd=parent)

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

    def remove_directory(self, directory: str, begins: Sequence[str], mark: str, slice_s: float) -> bool:
        """What is gone already is removed; the directory itself has to be, not something in it."""
        try:
            # Looked at before: where there are no directories, only our own lists say what is in one.
            others = {name for name in self.holds(directory) if not name.startswith(tuple(begins))}
            _require_nothing_else(directory, others, mark)
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
