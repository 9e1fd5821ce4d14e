"""What may be believed on a host of several users: nothing that an account without rights could have made.

This program often runs as root. A configuration can name libraries to load, and a socket can answer anything:
a path found in another process is followed only where root and this account alone decide what stands there.
"""

from __future__ import annotations

import errno
import os
import pwd
import re
import stat
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from leadline.errors import UsageError

_LINKS_MAX = 40  # as the kernel has it
_PLACES = (Path("/root"), Path("/var/tmp"), Path("/tmp"))  # noqa: S108 - to be named, not used
_MOUNTS = Path("/proc/self/mountinfo")
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_Judge = Callable[[Path, os.stat_result], str]


def believed_accounts() -> frozenset[int]:
    """Root, and whoever runs this program."""
    return frozenset({0, os.geteuid()})


def account_of_ceph() -> frozenset[int]:
    """The account that Ceph's own packages run its daemons as, where this host has it."""
    try:
        return frozenset({pwd.getpwnam("ceph").pw_uid})
    except KeyError:
        return frozenset()


def why_not_file(path: str) -> str:
    """Why what stands at an absolute path is not believed; "" where it is. Links and parents count too."""
    try:
        way = _walk(path, _why_not)
    except OSError as error:
        return f"{error.filename or path}: {error.strerror}"
    return way.why or (f"{way.at}: {os.strerror(errno.ENOENT)}" if way.missing else "")


def why_not_place(path: Path) -> str:
    """Why another account could exchange what is made at `path`, or owns what is there; "" where none does.

    What is missing of the path is no doubt: whoever makes it asks again.
    """
    try:
        return _looked_at(path).why
    except OSError as error:
        return f"{error.filename or path}: {error.strerror}"


def require_own_place(path: Path, option: str = "-o") -> None:
    """Raises UsageError where another account decides what is made at `path`, with a place that would do."""
    if why := why_not_place(path):
        raise _refusal(path, why, option)


def own_place(path: Path, option: str = "-o") -> Path:
    """`path` without links, for what is made there now: nobody else can rename any part of it.

    Raises UsageError as `require_own_place`, and OSError where the directory above is missing: another
    account could make that one first.
    """
    way = _looked_at(path)
    if way.why:
        raise _refusal(path, way.why, option)
    if len(way.missing) > 1:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(way.at))
    return way.at


def _refusal(path: Path, why: str, option: str) -> UsageError:
    known = _PLACES if os.geteuid() == 0 else _PLACES[1:]
    safe = [place / path.name for place in known if place.is_dir() and not why_not_place(place / path.name)]
    example = f", for example: {option} {safe[0]}" if safe else ""
    return UsageError(
        f"{path} was not written: {why}",
        f"name a new file or directory where no other account can rename it{example}",
    )


class _Way(NamedTuple):
    """Where a path leads: the last part that is there or the first that is missing, and what is missing."""

    why: str
    at: Path
    missing: tuple[str, ...]


def _looked_at(path: Path) -> _Way:
    """The way to a place, with what is wrong with a file that is there. Raises OSError."""
    absolute = path.absolute()
    way = _walk(str(absolute), _judge_of_places())
    if way.why:
        return way
    try:
        found = (
            absolute if way.missing else way.at
        ).stat()  # links of /proc lead to pipes, which have no path
    except (FileNotFoundError, NotADirectoryError):
        return way
    if not stat.S_ISREG(found.st_mode) and not stat.S_ISDIR(found.st_mode):
        return way._replace(why=f"{path} is no plain file")
    theirs = stat.S_ISREG(found.st_mode) and found.st_uid != os.geteuid()
    return way._replace(why=f"{path} belongs to uid {found.st_uid}") if theirs else way


def _walk(path: str, judge: _Judge) -> _Way:
    """Follow an absolute path, up to the first part that `judge` refuses. Raises OSError."""
    at, left, links = Path("/"), list(reversed(Path(path).parts[1:])), 0
    found = at.lstat()
    why, device = judge(at, found), found.st_dev
    while left and not why:
        name = left.pop()
        if name == "..":
            at = at.parent  # no link is ever in `at`
            continue
        at /= name
        try:
            found = at.lstat()
        except FileNotFoundError:
            return _Way("", at, (name, *reversed(left)))
        why = judge(at, found) or ("" if found.st_dev == device else _why_not_mount(at, found.st_dev))
        device = found.st_dev
        if stat.S_ISLNK(found.st_mode):
            links += 1
            parts = at.readlink().parts
            at = Path("/") if parts[:1] == ("/",) else at.parent
            left += [part for part in reversed(parts) if part != "/"]
        if links > _LINKS_MAX:
            why = f"{path} is a loop of links"
    return _Way(why, at, ())


def _why_not(path: Path, found: os.stat_result, believed: frozenset[int] | None = None) -> str:
    if found.st_uid not in (believed or believed_accounts()):
        return f"{path} belongs to uid {found.st_uid}"
    return _why_writable(path, found, _OTHERS_WRITE)


def _why_writable(path: Path, found: os.stat_result, by: int) -> str:
    if stat.S_ISLNK(found.st_mode):
        return ""
    # In a sticky directory others make their own files, and cannot exchange those of root.
    sticky = stat.S_ISDIR(found.st_mode) and found.st_mode & stat.S_ISVTX
    return f"others may write {path}" if found.st_mode & by and not sticky else ""


def _judge_of_places() -> _Judge:
    """For what is made, by this account.

    An ordinary account shares directories with its groups, their owners among them: project directories are
    made for that, and whoever is in the group may exchange what others keep there anyway. Root believes root
    alone. What is a file already is judged by `_looked_at`.
    """
    groups = frozenset() if os.geteuid() == 0 else frozenset({os.getegid(), *os.getgroups()})
    believed = believed_accounts() | _unmapped_root()

    def judge(path: Path, found: os.stat_result) -> str:
        if not (stat.S_ISDIR(found.st_mode) or stat.S_ISLNK(found.st_mode)):
            return ""
        if found.st_gid in groups:
            return _why_writable(path, found, stat.S_IWOTH)
        return _why_not(path, found, believed)

    return judge


def _unmapped_root() -> frozenset[int]:
    """The number that root shows in a user namespace without a number for it, as in a user's container."""
    lines = Path("/proc/self/uid_map").read_text().splitlines()
    if any(line.split()[1] == "0" for line in lines):
        return frozenset()
    return frozenset({int(Path("/proc/sys/kernel/overflowuid").read_text())})


def _why_not_mount(path: Path, device: int) -> str:
    """Whoever serves a FUSE mount says who owns the files on it: its own account counts, not what it says."""
    number = f"{os.major(device)}:{os.minor(device)}"
    for line in _MOUNTS.read_text(errors="surrogateescape").splitlines():
        fields, _, served = line.partition(" - ")
        if fields.split(" ", 3)[2] != number or not served.startswith("fuse"):
            continue
        user = re.search(r"[ ,]user_id=(\d+)", served)
        if user and int(user[1]) not in believed_accounts():
            return f"{path} is a FUSE mount of uid {user[1]}"
    return ""


def accounts_of(place: Path) -> frozenset[int]:
    """All user numbers of a process (real, effective, saved, of files), by its directory in /proc.

    Several are a program that another account has started with this one's rights. Raises OSError.
    """
    for line in (place / "status").read_text(errors="replace").splitlines():
        if line.startswith("Uid:"):
            return frozenset(int(word) for word in line.split()[1:])
    return frozenset()
