"""Directories while they are made, beside the place they are for: nobody can foresee their names.

Each is marked, and its mark locked, until it is whole or gone. The kernel frees the lock of a killed command,
so what such a one left is told from what is being made, and removed by the next that makes something there.
A directory with a `recovery.json` stays until its owner recovers or removes it: a killed trace left its logs.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from leadline.durable import is_unfinished, sync_directory, unfinished, write_whole
from leadline.errors import LeadlineError, UsageError
from leadline.foreign import parse_json, read_plain
from leadline.removal import discard_tree, open_directory
from leadline.store.files import MARK, make_parents
from leadline.trusted import own_place, why_not_place

RECOVERY = "recovery.json"
RECOVERY_FORMAT = "leadline.recovery/1"
_RECOVERY_BYTES_MAX = 1 << 20
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


class Leftover(NamedTuple):
    """A directory under such a name, which nobody here holds.

    `certain`: this account's command made it since this host was started, and was killed. Any other could be
    of an older version, or on storage that another host shares. `recovery` is its `recovery.json`, None where
    it has none.
    """

    path: Path
    certain: bool
    recovery: dict[str, Any] | None = None

    @property
    def place(self) -> Path:
        """Where the result was to be."""
        return self.path.with_name((self.recovery or {}).get("place", self.path.name))

    @property
    def doubt(self) -> str:
        """Why it is neither recovered nor removed but by its own name."""
        return f"{self.path} was left before this host started, or another host still traces into it"


@contextmanager
def making(place: Path, mode: int) -> Iterator[tuple[Path, int]]:
    """A new directory beside `place`, and a descriptor of it; unless it is renamed it is gone afterwards.

    Nothing that another made is ever removed. Raises OSError, also where others put theirs in its place, and
    UsageError where others could.
    """
    place = own_place(place)
    remove_leftovers(place.parent)
    path = unfinished(place)
    path.mkdir(mode=mode)
    try:
        directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        with suppress(OSError):
            path.rmdir()
        raise
    try:
        mark = _mark(directory, path)
        try:
            yield path, directory
        finally:
            discard_tree(path, directory)
            os.close(mark)
    finally:
        os.close(directory)


@contextmanager
def temporary(parent: Path) -> Iterator[Path]:
    """A new directory in `parent`, where temporary files go, for this account alone; it is gone afterwards.

    What a killed command left goes first. Raises UsageError where none can be made, or is not safe.
    """
    place = parent / "temporary"
    why = why_not_place(place)
    with ExitStack() as stack:
        if not why:
            try:
                directory, _ = stack.enter_context(making(place, 0o700))
            except OSError as error:
                why = error.strerror or str(error)
        if why:
            raise UsageError(
                f"no temporary directory can be made in {parent}: {why}",
                "set TMPDIR to a directory of this account's",
            )
        yield directory


def _mark(directory: int, path: Path) -> int:
    """Mark a directory that was just made, and hold it: by the descriptor."""
    with os.scandir(directory) as entries:
        exchanged = any(True for _ in entries)
    mark = -1
    try:
        if not exchanged:
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
            mark = os.open(MARK, flags, 0o600, dir_fd=directory)
            # Whatever number of ours storage shows, a new file in a directory of ours has the same.
            exchanged = os.fstat(mark).st_uid != os.fstat(directory).st_uid
        if exchanged:
            raise OSError(errno.ESTALE, "it was exchanged while it was made", str(path))
        with suppress(OSError):  # without locks on this storage it is never certain, and only named
            fcntl.flock(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.write(mark, _content())
    except BaseException:
        if mark >= 0:
            os.unlink(MARK, dir_fd=directory)
            os.close(mark)
        if not exchanged:
            discard_tree(path, directory)
        raise
    return mark


def _content() -> bytes:
    """What stands in a mark: one that another kernel wrote says nothing of locks here."""
    return json.dumps({"format": "leadline.unfinished/1", "boot": _BOOT_ID.read_text().strip()}).encode()


@contextmanager
def made_result(path: Path, *, private: bool = False) -> Iterator[tuple[Path, int]]:
    """A directory that is at `path`, durable, once the block ends well; after any other end it is gone.

    It and a descriptor of it, which the block may keep by `os.dup`. Nobody else may write in it, as what it
    says is acted on. Root's are for root alone, as commands, paths and hosts are in them, and `private` ones
    for their owner. Whatever is at `path` stays (an empty directory apart).
    """
    make_parents(path)
    with making(path, 0o700 if private or os.geteuid() == 0 else 0o755) as (partial, directory):
        yield partial, directory
        partial.rename(path)
        with suppress(OSError):  # it is whole, and the next that opens it to write removes the mark
            os.unlink(MARK, dir_fd=directory)
    sync_directory(path.parent)


def leftovers(directory: Path) -> list[Leftover]:
    """What killed commands left in `directory` of what they were making there, sorted."""
    found = []
    for path in _unfinished_in(directory):
        with suppress(OSError, LeadlineError), _opened(path) as (opened, held):
            if held is not None and os.fstat(opened).st_uid == os.geteuid():
                found.append(Leftover(path, held, _recovery(opened)))
    return found


def recoverable(place: Path) -> Leftover | None:
    """What a killed command left for a result at `place`, or at `place` itself; the newest of several."""
    path = Path(os.path.abspath(place))  # noqa: PTH100 - a link at the end is not followed
    found = [one for one in leftovers(path.parent) if one.recovery and path in (one.place, one.path)]
    return max(found, key=lambda one: str((one.recovery or {}).get("created")), default=None)


def write_recovery(directory: Path, place: Path, content: Mapping[str, Any]) -> None:
    """Keep a directory that is being made for `place`, should its maker be killed."""
    known = {"format": RECOVERY_FORMAT, "place": place.name, **content}
    write_whole(directory / RECOVERY, json.dumps(known).encode())


def _recovery(directory: int) -> dict[str, Any] | None:
    """The recovery file of an open directory; None where there is none that this account wrote."""
    with suppress(OSError, ValueError):
        file = Path(f"/proc/self/fd/{directory}") / RECOVERY
        found = parse_json(read_plain(file, _RECOVERY_BYTES_MAX, own=True))
        if isinstance(found, dict) and found.get("format") == RECOVERY_FORMAT:
            name = found.get("place")
            return (
                found if isinstance(name, str) and name not in ("", ".", "..") and "/" not in name else None
            )
    return None


def remove_leftovers(directory: Path, place: Path | None = None) -> list[Path]:
    """Remove those that are certain, and of the recoverable ones those for `place`; what was removed.

    A `place` that is a leftover itself is removed unless its maker is at work on this host.
    """
    wanted = None if place is None else Path(os.path.abspath(place))  # noqa: PTH100 - as above
    removed = []
    for path in _unfinished_in(directory):
        with suppress(OSError, LeadlineError), _opened(path) as (opened, held):
            recovery = _recovery(opened)
            if recovery and wanted not in (path, path.with_name(recovery["place"])):
                continue
            if held or (recovery and held is False and path == wanted):
                discard_tree(path, opened)
                if not os.path.lexists(path):
                    removed.append(path)
    return removed


def _unfinished_in(directory: Path) -> list[Path]:
    try:
        with os.scandir(directory) as entries:
            names = [
                one.name for one in entries if is_unfinished(one.name) and one.is_dir(follow_symlinks=False)
            ]
    except OSError:
        return []
    return [directory / name for name in sorted(names)]


@contextmanager
def _opened(path: Path) -> Iterator[tuple[int, bool | None]]:
    """A descriptor of such a directory, and whether its maker is certainly dead; None where it is at work.

    Meanwhile its mark is held.
    """
    parent, directory = open_directory(path)
    os.close(parent)
    mark = -1
    try:
        with suppress(OSError):
            mark = os.open(MARK, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=directory)
        yield directory, False if mark < 0 else _is_dead(directory, mark)
    finally:
        if mark >= 0:
            os.close(mark)
        os.close(directory)


def _is_dead(directory: int, mark: int) -> bool | None:
    try:
        fcntl.flock(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)
        own, found = os.fstat(directory), os.fstat(mark)
        ours = own.st_uid == found.st_uid == os.geteuid() and stat.S_ISREG(found.st_mode)
        # The content comes after the lock: whoever made a whole one had it, and has it no more.
        return ours and not own.st_mode & _OTHERS_WRITE and os.pread(mark, 4096, 0) == _content()
    except BlockingIOError:
        return None
    except OSError:
        return False
