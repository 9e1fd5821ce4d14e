"""A worker's side of a coherence trial: does one step as the writer, or looks as the reader until it sees.

A way is by paths or by a library. Any of its calls can hang with the storage behind it. The clock is
CLOCK_MONOTONIC, which all processes of a host share.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

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


Say = Callable[..., None]


def content(size: int, mark: int) -> bytes:
    """Bytes that tell generations of a file apart."""
    line = f"{mark:012d}\n".encode()
    return (line * (size // len(line) + 1))[:size]


@dataclass(frozen=True)
class Question:
    """`prepared`: what the reader must see before the writer acts; `seen`: what it then looks for.

    `needs` is what the writer's way must be able to, so that no reader waits for what is never done.
    """

    prepare: Callable[[Way, str, int], None]
    act: Callable[[Way, str, int], None]
    prepared: Callable[[Way, str, int], bool]
    seen: Callable[[Way, str, int], bool]
    held: bool = False
    needs: Ability | None = None


def _make(way: Way, name: str, size: int) -> None:
    way.create(name, content(size, 1))


def _nothing(_way: Way, _name: str, _size: int) -> None:
    """Nothing has to be there."""


def _there(way: Way, name: str, size: int) -> bool:
    return way.read(name) == content(size, 1)


def _changed(way: Way, name: str, size: int) -> bool:
    return way.read(name) == content(size, 2)


_QUESTIONS: dict[str, Question] = {
    "name": Question(
        _nothing,
        _make,
        lambda way, name, _: way.size(name) is None,
        lambda way, name, _: way.size(name) is not None,
    ),
    "size_written": Question(
        _make,
        lambda way, name, size: way.overwrite(name, content(size, 2), close=False, at=size),
        lambda way, name, size: way.size(name) == size,
        lambda way, name, size: way.size(name) == 2 * size,
        needs="keep_open",
    ),
    "size_closed": Question(
        _make,
        lambda way, name, size: way.overwrite(name, content(size, 2), close=True, at=size),
        lambda way, name, size: way.size(name) == size,
        lambda way, name, size: way.size(name) == 2 * size,
    ),
    "bytes_written": Question(
        _make,
        lambda way, name, size: way.overwrite(name, content(size, 2), close=False),
        _there,
        _changed,
        needs="keep_open",
    ),
    "bytes_closed": Question(
        _make,
        lambda way, name, size: way.overwrite(name, content(size, 2), close=True),
        _there,
        _changed,
    ),
    "bytes_held": Question(
        _make,
        lambda way, name, size: way.overwrite(name, content(size, 2), close=True),
        _there,
        lambda way, _, size: way.read_held() == content(size, 2),
        held=True,
    ),
    "rename": Question(
        _make,
        lambda way, name, _: way.rename(name, f"{name}.new"),
        lambda way, name, size: way.size(name) == size and way.size(f"{name}.new") is None,
        lambda way, name, size: way.size(name) is None and way.size(f"{name}.new") == size,
    ),
    "unlink": Question(
        _make,
        lambda way, name, _: way.unlink(name),
        lambda way, name, size: way.size(name) == size,
        lambda way, name, _: way.size(name) is None,
    ),
    "link": Question(
        _make,
        lambda way, name, _: way.link(name, f"{name}.link"),
        lambda way, name, _: way.links(name) == 1,
        lambda way, name, _: way.links(name) == 2,
        needs="link",
    ),
}


class CoherenceSide:
    """One side, with what it keeps open between two commands."""

    def __init__(self, say: Say) -> None:
        self._say = say
        self._way: Way | None = None

    @property
    def commands(self) -> dict[str, Callable[[dict[str, Any]], dict[str, Any]]]:
        """By the name under which the parent sends them."""
        return {
            "coherence_open": self._open,
            "coherence_prepare": self._prepare,
            "coherence_act": self._act,
            "coherence_watch": self._watch,
            "coherence_lock": self._lock,
            "coherence_create": self._create,
            "coherence_appear": self._appear,
            "coherence_blocks": self._blocks,
            "coherence_count": self._count,
            "coherence_release": self._release,
        }

    def _to(self) -> Way:
        assert self._way is not None  # noqa: S101 - the parent opens first
        return self._way

    def _open(self, command: dict[str, Any]) -> dict[str, Any]:
        self._way = open_way(command["directory"], command.get("location"))
        return {}

    def _prepare(self, command: dict[str, Any]) -> dict[str, Any]:
        question, way = _QUESTIONS[command["question"]], self._to()
        if question.needs is not None:
            way.require(question.needs)
        question.prepare(way, command["name"], command["file_bytes"])
        return {}

    def _act(self, command: dict[str, Any]) -> dict[str, Any]:
        question, way = _QUESTIONS[command["question"]], self._to()
        begin_ns = time.monotonic_ns()
        question.act(way, command["name"], command["file_bytes"])
        return {"begin_ns": begin_ns, "done_ns": time.monotonic_ns()}

    def _watch(self, command: dict[str, Any]) -> dict[str, Any]:
        """Look until what was prepared is seen, say so, then look until the writer's act is seen."""
        question, way = _QUESTIONS[command["question"]], self._to()
        name, size, pause_s = command["name"], command["file_bytes"], command["poll_ns"] / 1e9
        if self._until(command, pause_s, lambda: question.prepared(way, name, size)) is None:
            return {"prepared": False}
        if question.held:
            way.hold(name)
            way.read_held()
        self._say(event="watching")
        seen = self._until(command, pause_s, lambda: question.seen(way, name, size))
        return {"prepared": True, "seen_ns": seen and seen[1], "unseen_ns": seen and seen[0]}

    @staticmethod
    def _until(command: dict[str, Any], pause_s: float, look: Callable[[], bool]) -> tuple[int, int] | None:
        """When the last look without it began, and when the first with it ended; None within give_up."""
        end_ns = time.monotonic_ns() + command["give_up_ns"]
        unseen_ns = time.monotonic_ns()
        while True:
            begin_ns = time.monotonic_ns()
            if look():
                return unseen_ns, time.monotonic_ns()
            unseen_ns = begin_ns
            if time.monotonic_ns() > end_ns:
                return None
            time.sleep(pause_s)

    def _lock(self, command: dict[str, Any]) -> dict[str, Any]:
        return {"locked": self._to().lock(command["name"], command["question"])}

    def _create(self, command: dict[str, Any]) -> dict[str, Any]:
        self._to().create(command["name"], bytes(command["bytes"]))
        return {}

    def _appear(self, command: dict[str, Any]) -> dict[str, Any]:
        """Look until a file is there."""
        way, name = self._to(), command["name"]
        seen = self._until(command, command["poll_ns"] / 1e9, lambda: way.size(name) is not None)
        return {"seen": seen is not None}

    def _blocks(self, command: dict[str, Any]) -> dict[str, Any]:
        """Every second block of a file, from `first` on, not before a common start."""
        size, count, first = command["block_bytes"], command["blocks"], command["first"]
        blocks = [(place * size, content(size, place)) for place in range(first, 2 * count, 2)]
        time.sleep(max(0, command["start_at_ns"] - time.monotonic_ns()) / 1e9)
        begin_ns = time.monotonic_ns()
        self._to().write_blocks(command["name"], blocks)
        return {"begin_ns": begin_ns, "done_ns": time.monotonic_ns()}

    def _count(self, command: dict[str, Any]) -> dict[str, Any]:
        """How many blocks of a shared file are as written: looks until all are, or gives up."""
        size, count = command["block_bytes"], command["blocks"]
        wrong = 2 * count

        def whole() -> bool:
            nonlocal wrong
            found = self._to().read(command["name"]) or b""
            wrong = sum(
                found[place * size : (place + 1) * size] != content(size, place) for place in range(2 * count)
            )
            return wrong == 0

        seen = self._until(command, command["poll_ns"] / 1e9, whole)
        return {"wrong": wrong, "seen_ns": seen and seen[1]}

    def _release(self, _command: dict[str, Any]) -> dict[str, Any]:
        if self._way is not None:
            self._way.release()
        return {}
