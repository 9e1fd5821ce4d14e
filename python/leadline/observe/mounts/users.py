"""Who uses a mounted file system: open files, working directories, programs and mappings, out of /proc alone.

The mount itself is never touched: it may hang. A process that this user may not look into is counted.
"""

from __future__ import annotations

import contextlib
import os
import pwd
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from leadline.observe.host.proc_parse import parse_io
from leadline.observe.mounts.mountinfo import Mount, mount_of

_GONE = " (deleted)"


@dataclass(frozen=True)
class OpenFile:
    """An open descriptor on the mount. `position` is where the next read or write begins (bytes)."""

    descriptor: int
    path: str
    writing: bool
    position: int | None


@dataclass(frozen=True)
class User:
    """A process that uses the mount. `uses` says how, beside open files: its working directory and so on."""

    pid: int
    name: str
    account: str
    files: tuple[OpenFile, ...]
    uses: tuple[str, ...]


@dataclass(frozen=True)
class Users:
    """All that could be seen, and how many processes could not be looked into."""

    users: tuple[User, ...]
    unseen: int


def users_of(
    mount: Mount, mounts: Sequence[Mount], proc: Path = Path("/proc"), without: frozenset[int] = frozenset()
) -> Users:
    """The processes with something open on `mount`; not those of `without`, for example its own daemon."""
    found, unseen = [], 0
    for pid in _numbers(proc):
        if pid in without:
            continue
        try:
            user = _user(pid, mount, mounts, proc)
        except PermissionError:
            unseen += 1
            continue
        except OSError:  # it has ended
            continue
        if user.files or user.uses:
            found.append(user)
    return Users(tuple(found), unseen)


def io_of(pid: int, proc: Path = Path("/proc")) -> Mapping[str, int] | None:
    """What a process's calls moved so far (`rchar`, `syscr` and so on); None where it may not be read."""
    try:
        return parse_io((proc / str(pid) / "io").read_text())
    except OSError:
        return None


def _numbers(proc: Path) -> list[int]:
    return sorted(int(name) for name in os.listdir(proc) if name.isdigit())  # noqa: PTH208 - names are all


def _user(pid: int, mount: Mount, mounts: Sequence[Mount], proc: Path) -> User:
    place = proc / str(pid)

    def on_mount(path: str) -> bool:
        inside = path == mount.mount_point or path.startswith(mount.mount_point.rstrip("/") + "/")
        return inside and mount_of(path.removesuffix(_GONE), mounts) == mount

    files = tuple(_open_files(place, on_mount))
    uses = []
    for link, words in (("cwd", "working directory"), ("root", "root directory"), ("exe", "program")):
        with contextlib.suppress(FileNotFoundError):
            if on_mount(os.readlink(place / link)):  # noqa: PTH115 - bytes that are no text may be there
                uses.append(words)
    if any(on_mount(path) for path in _mapped(place)):
        uses.append("mapped files")
    if not files and not uses:
        return User(pid, "", "", (), ())
    name = (place / "comm").read_text(errors="replace").rstrip("\n")
    return User(pid, name, _account(place.stat().st_uid), files, tuple(uses))


def _open_files(place: Path, on_mount: Callable[[str], bool]) -> Iterator[OpenFile]:
    for name in os.listdir(place / "fd"):  # noqa: PTH208 - names are all it needs
        with contextlib.suppress(FileNotFoundError):
            path = os.readlink(place / "fd" / name)  # noqa: PTH115
            if on_mount(path):
                position, flags = _state(place / "fdinfo" / name)
                yield OpenFile(int(name), path, bool(flags & os.O_ACCMODE), position)


def _state(file: Path) -> tuple[int | None, int]:
    """Position and flags of a descriptor."""
    try:
        text = file.read_text()
    except OSError:
        return None, 0
    fields = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
    return int(fields.get("pos", "0")), int(fields.get("flags", "0"), 8)


def _mapped(place: Path) -> set[str]:
    """Paths of mapped files; none where the table may not be read, which is not the only thing to go by."""
    try:
        lines = (place / "maps").read_text(errors="surrogateescape").splitlines()
    except OSError:
        return set()
    return {fields[5] for line in lines if len(fields := line.split(None, 5)) == 6 and fields[5][0] == "/"}


def _account(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
