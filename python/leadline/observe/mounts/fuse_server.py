"""Finds the process that serves a FUSE mount, by the connection that it holds: anybody can take its name.

A recent kernel says in fdinfo of /dev/fuse which mount a descriptor serves. With an older one, and where the
descriptors are not ours to see, a process of the mount's owner is taken where only one can be meant.
"""

from __future__ import annotations

import contextlib
import enum
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from leadline.observe.mounts.mountinfo import Mount
from leadline.trusted import accounts_of

PROC = Path("/proc")
_DEVICE = "/dev/fuse"
_CONNECTION = "fuse_connection:"


@dataclass(frozen=True)
class FuseServer:
    """The process of a mount and its account. `reason` says why none of those seen is believed."""

    pid: int | None = None
    account: int | None = None
    reason: str = ""


class _Holds(enum.Enum):
    NOTHING, PERHAPS, THIS = range(3)


def processes_named(name: str, proc: Path = PROC) -> list[int]:
    """Processes with this command name that this host shows, by number. Their names are their own choice."""
    found = []
    for entry in proc.iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and (entry / "comm").read_text().strip() == name:
                found.append(int(entry.name))
    return sorted(found)


def server_of(
    mount: Mount, name: str, names_it: Callable[[int], bool] = lambda _pid: False, proc: Path = PROC
) -> FuseServer:
    """The one process called `name` that serves `mount`.

    `names_it` says of a process whether its command line names the mount: asked where the kernel does not
    tell, and several could be meant.
    """
    owner = mount.option("user_id")
    if owner is None:
        return FuseServer(reason="the kernel does not say whose mount it is")
    held = [(pid, _holds(pid, mount, proc)) for pid in processes_named(name, proc)]
    exact = [pid for pid, what in held if what is _Holds.THIS]
    meant = exact or [pid for pid, what in held if what is _Holds.PERHAPS]
    own = [pid for pid in meant if _accounts(pid, proc) == {int(owner)}]
    if len(own) > 1 and not exact:
        own = [pid for pid in own if names_it(pid)] or own
    if len(own) == 1:
        return FuseServer(own[0], int(owner))
    if own:
        numbers = ", ".join(str(pid) for pid in own)
        return FuseServer(reason=f"which of the processes {numbers} serves it cannot be told")
    others = [pid for pid, _ in held if _accounts(pid, proc) != {int(owner)}]
    if others:
        pid, mine = others[0], f"the mount belongs to uid {owner}"
        accounts = ", ".join(str(uid) for uid in sorted(_accounts(pid, proc)))
        return FuseServer(reason=f"process {pid} called {name} runs as uid {accounts or '?'}, and {mine}")
    return FuseServer()


def _accounts(pid: int, proc: Path) -> frozenset[int]:
    try:
        return accounts_of(proc / str(pid))
    except OSError:
        return frozenset()


def _holds(pid: int, mount: Mount, proc: Path) -> _Holds:
    place, best = proc / str(pid), _Holds.NOTHING
    try:
        names = os.listdir(place / "fd")  # noqa: PTH208 - names are all it needs
    except PermissionError:
        return _Holds.PERHAPS
    except OSError:
        return best
    for name in names:
        with contextlib.suppress(OSError):
            if os.readlink(place / "fd" / name) == _DEVICE:  # noqa: PTH115
                text = (place / "fdinfo" / name).read_text()
                served = [line.split()[1] for line in text.splitlines() if line.startswith(_CONNECTION)]
                if served == [str(mount.minor)]:
                    return _Holds.THIS
                best = best if served else _Holds.PERHAPS
    return best
