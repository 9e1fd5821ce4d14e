"""One way to a file system as a writer or a reader of a few small files uses it: by paths, or by a library.

Called in a worker process only: any of these calls can hang with the storage behind it.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from pathlib import Path
from typing import Literal, Protocol

from leadline import _core
from leadline.errors import TargetError
from leadline.run.storage import own_directory

_READ_BYTES_MAX = 64 << 20
Ability = Literal["keep_open", "link", "lock", "write_parts"]
_GONE = (errno.ENOENT, errno.ESTALE)
_REFUSED = (errno.EAGAIN, errno.EACCES, errno.EWOULDBLOCK)


_LACKS: dict[Ability, str] = {
    "keep_open": "a file cannot be kept open",
    "link": "leadline makes no hard link",
    "lock": "leadline takes no lock",
    "write_parts": "leadline writes whole files only",
}


class NotPossibleError(TargetError):
    """What this way cannot be asked; the message says why."""


class Way(Protocol):
    """Files by name in one directory. What is not there is None, every other trouble is an OSError."""

    def require(self, ability: Ability) -> None:
        """Raises NotPossibleError where this way lacks it."""

    def create(self, name: str, data: bytes) -> None:
        """A new file, written and closed."""

    def overwrite(self, name: str, data: bytes, *, close: bool, at: int = 0) -> None:
        """New bytes over a file's, or behind them; without `close` the file stays open."""

    def size(self, name: str) -> int | None:
        """Bytes of the file, by its name."""

    def read(self, name: str) -> bytes | None:
        """The file, opened anew."""

    def hold(self, name: str) -> None:
        """Opens the file and keeps it open."""

    def read_held(self) -> bytes:
        """What the file that is held open has now."""

    def rename(self, name: str, new: str) -> None:
        """Within the directory."""

    def unlink(self, name: str) -> None:
        """Removes a file."""

    def link(self, name: str, new: str) -> None:
        """A second name."""

    def links(self, name: str) -> int | None:
        """How many names the file has."""

    def lock(self, name: str, kind: str) -> bool:
        """An exclusive lock, without waiting; False where another holds it."""

    def write_blocks(self, name: str, blocks: list[tuple[int, bytes]]) -> None:
        """Each block at its offset, then synced and closed."""

    def release(self) -> None:
        """Closes what is open, and with it gives up locks."""


class PathWay:
    """A directory of a mounted file system."""

    def __init__(self, directory: str) -> None:
        with own_directory(Path(directory)) as own:
            self._directory = os.dup(own)
        self._open: list[int] = []
        self._held = -1

    def require(self, ability: Ability) -> None:
        """Nothing is lacking."""

    def _descriptor(self, name: str, flags: int) -> int:
        return os.open(name, flags | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600, dir_fd=self._directory)

    def create(self, name: str, data: bytes) -> None:
        """A new file, written and closed."""
        descriptor = self._descriptor(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        try:
            _write_all(descriptor, data, 0)
        finally:
            os.close(descriptor)

    def overwrite(self, name: str, data: bytes, *, close: bool, at: int = 0) -> None:
        """New bytes over a file's, or behind them; without `close` the file stays open."""
        descriptor = self._descriptor(name, os.O_WRONLY)
        try:
            _write_all(descriptor, data, at)
        except BaseException:
            os.close(descriptor)
            raise
        if close:
            os.close(descriptor)
        else:
            self._open.append(descriptor)

    def size(self, name: str) -> int | None:
        """Bytes of the file, by its name."""
        found = self._stat(name)
        return None if found is None else found.st_size

    def links(self, name: str) -> int | None:
        """How many names the file has."""
        found = self._stat(name)
        return None if found is None else found.st_nlink

    def _stat(self, name: str) -> os.stat_result | None:
        try:
            return os.stat(name, dir_fd=self._directory, follow_symlinks=False)
        except OSError as error:
            if error.errno in _GONE:
                return None
            raise

    def read(self, name: str) -> bytes | None:
        """The file, opened anew."""
        try:
            descriptor = self._descriptor(name, os.O_RDONLY)
        except OSError as error:
            if error.errno in _GONE:
                return None
            raise
        try:
            return _read_all(descriptor)
        finally:
            os.close(descriptor)

    def hold(self, name: str) -> None:
        """Opens the file and keeps it open."""
        self._held = self._descriptor(name, os.O_RDONLY)
        self._open.append(self._held)

    def read_held(self) -> bytes:
        """What the file that is held open has now."""
        return _read_all(self._held)

    def rename(self, name: str, new: str) -> None:
        """Within the directory."""
        os.rename(name, new, src_dir_fd=self._directory, dst_dir_fd=self._directory)

    def unlink(self, name: str) -> None:
        """Removes a file."""
        os.unlink(name, dir_fd=self._directory)

    def link(self, name: str, new: str) -> None:
        """A second name."""
        os.link(name, new, src_dir_fd=self._directory, dst_dir_fd=self._directory)

    def lock(self, name: str, kind: str) -> bool:
        """An exclusive lock, without waiting; False where another holds it."""
        descriptor = self._descriptor(name, os.O_RDWR)
        how = fcntl.LOCK_EX | fcntl.LOCK_NB
        try:
            (fcntl.lockf if kind == "lock_fcntl" else fcntl.flock)(descriptor, how)
        except OSError as error:
            os.close(descriptor)
            if error.errno in _REFUSED:
                return False
            raise
        self._open.append(descriptor)
        return True

    def write_blocks(self, name: str, blocks: list[tuple[int, bytes]]) -> None:
        """Each block at its offset, then synced and closed."""
        descriptor = self._descriptor(name, os.O_RDWR)
        try:
            for offset, data in blocks:
                _write_all(descriptor, data, offset)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def release(self) -> None:
        """Closes what is open, and with it gives up locks."""
        self._held = -1
        for descriptor in self._open:
            with contextlib.suppress(OSError):
                os.close(descriptor)
        self._open.clear()


class VolumeWay:
    """A directory where a library reaches it: whole files by name, rename and unlink."""

    def __init__(self, location: str, directory: str) -> None:
        self._volume, self._directory = _core.Volume(location), directory

    def require(self, ability: Ability) -> None:
        """Raises for all of it: whole files by name are what it has."""
        raise _not_possible(_LACKS[ability])

    def _path(self, name: str) -> str:
        return f"{self._directory}/{name}"

    def create(self, name: str, data: bytes) -> None:
        """A new file, written and closed."""
        self._volume.put(self._path(name), data)

    def overwrite(self, name: str, data: bytes, *, close: bool, at: int = 0) -> None:
        """New bytes over a file's, or behind them: the file is written anew as a whole."""
        if not close:
            self.require("keep_open")
        before = self._volume.get(self._path(name), _READ_BYTES_MAX) or b""
        self._volume.put(self._path(name), before[:at] + data)

    def size(self, name: str) -> int | None:
        """Bytes of the file, by reading it."""
        found = self.read(name)
        return None if found is None else len(found)

    def read(self, name: str) -> bytes | None:
        """The file, opened anew."""
        try:
            return self._volume.get(self._path(name), _READ_BYTES_MAX)
        except OSError as error:  # gone between its name's look-up and its opening
            if error.errno in _GONE:
                return None
            raise

    def hold(self, name: str) -> None:  # noqa: ARG002
        """Not possible."""
        self.require("keep_open")

    def read_held(self) -> bytes:
        """Not possible."""
        raise _not_possible(_LACKS["keep_open"])

    def rename(self, name: str, new: str) -> None:
        """Within the directory."""
        self._volume.rename(self._directory, name, new)

    def unlink(self, name: str) -> None:
        """Removes a file."""
        self._volume.unlink(self._directory, name)

    def link(self, name: str, new: str) -> None:  # noqa: ARG002
        """Not possible."""
        self.require("link")

    def links(self, name: str) -> int | None:  # noqa: ARG002
        """Not possible."""
        raise _not_possible("leadline asks for no number of links")

    def lock(self, name: str, kind: str) -> bool:  # noqa: ARG002
        """Not possible."""
        raise _not_possible(_LACKS["lock"])

    def write_blocks(self, name: str, blocks: list[tuple[int, bytes]]) -> None:  # noqa: ARG002
        """Not possible."""
        self.require("write_parts")

    def release(self) -> None:
        """Nothing is open."""


def open_way(directory: str, location: str | None) -> Way:
    """The way to a directory of a study."""
    return PathWay(directory) if location is None else VolumeWay(location, directory)


def _not_possible(why: str) -> NotPossibleError:
    return NotPossibleError(f"through this library {why}", "mount the file system to ask this")


def _write_all(descriptor: int, data: bytes, offset: int) -> None:
    view = memoryview(data)
    while view:
        written = os.pwrite(descriptor, view, offset)
        view, offset = view[written:], offset + written


def _read_all(descriptor: int) -> bytes:
    parts = bytearray()
    while part := os.pread(descriptor, 1 << 20, len(parts)):
        parts += part
    return bytes(parts)
