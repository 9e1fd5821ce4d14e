"""Who uses a mounted file system: open files, working directories, programs and mappings, out of /proc alone.

The mount itself is never touched: it may hang. A process that this user may not look into is named. One that
lives in another mount namespace (a container), or came by a bind mount, has other paths for the same files:
files are told apart by where they lie on the file system itself.
"""

from __future__ import annotations

import contextlib
import os
import pwd
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from leadline.observe.host.proc_parse import parse_io, pids_in
from leadline.observe.mounts.mountinfo import Mount, parse_mountinfo, place_on

_GONE = " (deleted)"
_NAMED_MAX = 8
_HOST_PROCESSES = "pid:[4026531836]"  # PROC_PID_INIT_INO of the kernel: the number of the first namespace


@dataclass(frozen=True)
class OpenFile:
    """An open descriptor on the mount. `position` is where the next read or write begins (bytes).

    `path` is as the process has it, `place` counts from the root of the file system.
    """

    descriptor: int
    path: str
    place: str
    writing: bool
    position: int | None


@dataclass(frozen=True)
class User:
    """A process that uses the mount. `uses` says how, beside open files: its working directory and so on,
    each with its place, counted from the root of the file system.

    `mounts` is its own mount table, where it has another one than this process.
    """

    pid: int
    name: str
    account: str
    files: tuple[OpenFile, ...]
    uses: tuple[tuple[str, str], ...]
    mounts: tuple[Mount, ...] = ()


@dataclass(frozen=True)
class Users:
    """All that could be seen, and the processes that could not be looked into, with their names."""

    users: tuple[User, ...]
    unseen: Mapping[int, str]


def users_of(
    mount: Mount, mounts: Sequence[Mount], proc: Path = Path("/proc"), without: frozenset[int] = frozenset()
) -> Users:
    """The processes with something open on the file system of `mount`; not those of `without`, for example
    its own daemon. `mounts` are those of this process.
    """
    found, unseen = [], {}
    tables = _Tables(proc, mounts)
    for pid in sorted(pids_in(proc)):
        if pid in without:
            continue
        try:
            user = _user(pid, mount, tables, proc)
        except PermissionError:
            unseen[pid] = _name(proc / str(pid))
            continue
        except OSError:  # it has ended
            continue
        if user.files or user.uses:
            found.append(user)
    return Users(tuple(found), unseen)


class _Tables:
    """The mount table that each process lives with, read once for each mount namespace."""

    def __init__(self, proc: Path, own: Sequence[Mount]) -> None:
        self._proc = proc
        self._known: dict[str, tuple[Mount, ...]] = {self._namespace("self"): tuple(own)}
        self._places: dict[tuple[str, str], str | None] = {}

    def place_of(self, pid: int, path: str, mount: Mount) -> str | None:
        """Where a path of a process lies on the file system of `mount`; most have the same libraries."""
        key = self._namespace(str(pid)), path
        if key not in self._places:
            self._places[key] = place_on(path.removesuffix(_GONE), self.of(pid), mount)
        return self._places[key]

    def of(self, pid: int) -> tuple[Mount, ...]:
        name = self._namespace(str(pid))
        if name not in self._known:  # a container, or a service with mounts of its own
            raw = (self._proc / str(pid) / "mountinfo").read_bytes()
            self._known[name] = parse_mountinfo(raw.decode("utf-8", "surrogateescape"))
        return self._known[name]

    def is_own(self, pid: int) -> bool:
        return self._namespace(str(pid)) == self._namespace("self")

    def _namespace(self, process: str) -> str:
        try:
            return os.readlink(self._proc / process / "ns" / "mnt")  # noqa: PTH115
        except FileNotFoundError:
            return ""


def unseen_words(unseen: Mapping[int, str]) -> str:
    """Which processes could not be looked into, and whether anybody can; nothing where there is none."""
    if not unseen:
        return ""
    named = [f"{pid} ({name})" for pid, name in sorted(unseen.items())]
    more = f" and {len(named) - _NAMED_MAX:,} more" if len(named) > _NAMED_MAX else ""
    who = "even by root" if os.geteuid() == 0 else "root may look into most"
    count = "1 process" if len(named) == 1 else f"{len(named):,} processes"
    return f"{count} could not be looked into ({who}): {', '.join(named[:_NAMED_MAX])}{more}"


def outside_words() -> str:
    """That processes outside this process namespace are not seen at all, where it is not the host's."""
    try:
        namespace = os.readlink("/proc/self/ns/pid")  # noqa: PTH115
    except OSError:
        return ""
    if namespace == _HOST_PROCESSES:
        return ""
    return "processes outside this process namespace (a container's) are not seen at all"


def own_processes() -> frozenset[int]:
    """This process and all that it started: who looks on is no user."""
    found, ahead = set(), [os.getpid()]
    while ahead:
        pid = ahead.pop()
        found.add(pid)
        for task in Path(f"/proc/{pid}/task").glob("*/children"):
            with contextlib.suppress(OSError):
                ahead += [int(word) for word in task.read_text().split() if int(word) not in found]
    return frozenset(found)


def io_of(pid: int, proc: Path = Path("/proc")) -> Mapping[str, int] | None:
    """What a process's calls moved so far (`rchar`, `syscr` and so on); None where it may not be read."""
    try:
        return parse_io((proc / str(pid) / "io").read_text())
    except OSError:
        return None


def _user(pid: int, mount: Mount, tables: _Tables, proc: Path) -> User:
    place, theirs = proc / str(pid), tables.of(pid)

    def where(path: str) -> str | None:
        return tables.place_of(pid, path, mount)

    files = tuple(_open_files(place, where))
    uses = []
    for link, words in (("cwd", "working directory"), ("root", "root directory"), ("exe", "program")):
        with contextlib.suppress(FileNotFoundError):
            held = where(os.readlink(place / link))  # noqa: PTH115 - bytes that are no text may be there
            uses += [] if held is None else [(words, held)]
    mapped = sorted(held for path in _mapped(place) if (held := where(path)) is not None)
    uses += [("mapped files", held) for held in mapped]
    if not files and not uses:
        return User(pid, "", "", (), ())
    mounts = () if tables.is_own(pid) else theirs
    return User(pid, _name(place), _account(place.stat().st_uid), files, tuple(uses), mounts)


def _name(place: Path) -> str:
    try:
        return (place / "comm").read_text(errors="replace").rstrip("\n")
    except OSError:
        return "?"


def _open_files(place: Path, where: Callable[[str], str | None]) -> Iterator[OpenFile]:
    for name in os.listdir(place / "fd"):  # noqa: PTH208 - names are all it needs
        with contextlib.suppress(FileNotFoundError):
            path = os.readlink(place / "fd" / name)  # noqa: PTH115
            held = where(path)
            if held is not None:
                position, flags = _state(place / "fdinfo" / name)
                yield OpenFile(int(name), path, held, bool(flags & os.O_ACCMODE), position)


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
