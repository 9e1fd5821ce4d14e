"""What may be believed on a host of several users: nothing that an account without rights could have made.

This program often runs as root. A configuration can name libraries to load, and a socket can answer anything:
a path found in another process is followed only where root and this account alone decide what stands there.
"""

from __future__ import annotations

import os
import pwd
import stat
from pathlib import Path

_LINKS_MAX = 40  # as the kernel has it
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


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
    at, left, links = Path("/"), list(reversed(Path(path).parts[1:])), 0
    try:
        why = _why_not(at, at.lstat())
        while left and not why:
            name = left.pop()
            if name == "..":
                at = at.parent  # no link is ever in `at`
                continue
            at /= name
            found = at.lstat()
            why = _why_not(at, found)
            if stat.S_ISLNK(found.st_mode):
                links += 1
                parts = at.readlink().parts
                at = Path("/") if parts[:1] == ("/",) else at.parent
                left += [part for part in reversed(parts) if part != "/"]
            if links > _LINKS_MAX:
                why = f"{path} is a loop of links"
    except OSError as error:
        return f"{error.filename or path}: {error.strerror}"
    return why


def _why_not(path: Path, found: os.stat_result) -> str:
    if found.st_uid not in believed_accounts():
        return f"{path} belongs to uid {found.st_uid}"
    if stat.S_ISLNK(found.st_mode):
        return ""
    # In a sticky directory others make their own files, and cannot exchange those of root.
    sticky = stat.S_ISDIR(found.st_mode) and found.st_mode & stat.S_ISVTX
    return f"others may write {path}" if found.st_mode & _OTHERS_WRITE and not sticky else ""


def accounts_of(place: Path) -> frozenset[int]:
    """All user numbers of a process (real, effective, saved, of files), by its directory in /proc.

    Several are a program that another account has started with this one's rights. Raises OSError.
    """
    for line in (place / "status").read_text(errors="replace").splitlines():
        if line.startswith("Uid:"):
            return frozenset(int(word) for word in line.split()[1:])
    return frozenset()
