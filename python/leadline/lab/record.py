"""The lab's own file, lab.json: what the lab is, and every process before it is relied upon.

Only this module knows its format. A directory is a lab only with this file, or while one is being born
in it (nothing but the lock is there): anything else is refused, never removed. What the file says is believed
only where no link leads to it and nobody else may write it, whoever runs this: root follows only root's.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leadline.errors import LabError, UsageError
from leadline.foreign import parse_json
from leadline.lab.cluster.process import SYSTEM_CLOCK, Clock, ProcessIdentity, poll
from leadline.lab.inject.injection import Injection
from leadline.lab.network.placement import LabNetwork
from leadline.lab.paths import LabPaths
from leadline.lab.spec import LabSpec

_SAFE = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK  # a FIFO in its place is not waited for
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


@contextmanager
def own_directory(directory: Path) -> Iterator[int]:
    """A descriptor of a directory. Raises UsageError where it is none, a link, or others may write it."""
    try:
        descriptor = os.open(directory, _SAFE | os.O_DIRECTORY)
    except FileNotFoundError as error:
        raise UsageError(f"{directory} does not exist", "`leadline lab list` shows the labs.") from error
    except OSError as error:
        if error.errno not in (errno.ENOTDIR, errno.ELOOP):
            raise _unreadable(directory, error) from error
        what = "is a link, which is not followed" if directory.is_symlink() else "is not a lab"
        raise UsageError(f"{directory} {what}", "`leadline lab list` shows the labs.") from error
    try:
        _require_own(descriptor, directory)
        yield descriptor
    finally:
        os.close(descriptor)


def _read_own_file(directory: int, name: str, path: Path) -> str | None:
    """The text of a file in an open directory, which is at `path`; None where there is none."""
    try:
        descriptor = os.open(name, _SAFE, dir_fd=directory)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unreadable(path / name, error) from error
    with open(descriptor, "rb") as file:  # noqa: PTH123 - a descriptor
        _require_own(descriptor, path / name)
        try:
            return file.read().decode()
        except (OSError, UnicodeDecodeError) as error:
            raise _unreadable(path / name, error) from error


def _require_own(descriptor: int, path: Path) -> None:
    found = os.fstat(descriptor)
    if found.st_uid != os.geteuid():
        raise UsageError(
            f"{path} belongs to user {found.st_uid}: nothing in it is believed", "Use that account."
        )
    if found.st_mode & _OTHERS_WRITE:
        mode = stat.S_IMODE(found.st_mode)
        raise UsageError(
            f"others than its owner may write {path} (mode {mode:04o}): nothing in it is believed",
            f"See that it is as you left it, then: chmod go-w {path}",
        )


def _unreadable(path: Path, error: Exception) -> LabError:
    return LabError(f"{path} cannot be read: {error}", "Use the account that started it.")


if TYPE_CHECKING:
    from pydantic import TypeAdapter

FORMAT = "leadline.lab/1"
FILE = "lab.json"
LOCK = "leadline-lab.lock"
GUEST = "guest"  # the process of a guest, which comes and goes while the lab is up
_ONLY = {"mon": "mon.a", "mgr": "mgr.x", "mds": "mds.a"}  # of a lab without hosts
_FSID = re.compile(r"[A-Za-z0-9._-]{1,80}")
_NEW = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
_UNBORN = frozenset({LOCK, f"{FILE}.new"})
# In this order: until the last is gone, the directory is still a lab, or one that is unborn.
LAST = (f"{FILE}.new", FILE, LOCK)


class LostRecordError(UsageError):
    """A directory has no lab's file, or a damaged one: what ran there cannot be learnt from it."""


@dataclass(frozen=True)
class GatewayRecord:
    """A server asked for. `reason` says why it is not there; "" where it was started and answered.

    `notes` are what a user of it should know: what it could not be given here, for example. `mount_port` is
    that of NFSv3's mount protocol, 0 where there is none.
    """

    name: str
    port: int = 0
    reason: str = ""
    notes: tuple[str, ...] = ()
    mount_port: int = 0


@dataclass(frozen=True)
class LabRecord:
    """One lab. `state` is starting, up, failed or stopping; `starting_process` is about to be started.

    `network` is what was made for a lab with hosts. `bridge` is the network device that was made for it,
    `subvolume_path` the subvolume's directory in the file system; "" where there is none.

    `client_mounts` says which directory of the file system a client of the network has mounted.
    `injections` are the faults that were injected and are not undone yet, the oldest first.

    `made_directory` is False where the user's own empty directory was taken: it is not removed.
    """

    name: str
    fsid: str
    spec: LabSpec
    directory: Path
    run_directory: Path
    made_directory: bool
    owner_uid: int
    created_unix_s: float
    state: str = "starting"
    mon_port: int = 0
    starting_process: str = ""
    processes: tuple[ProcessIdentity, ...] = ()
    gateways: tuple[GatewayRecord, ...] = ()
    bridge: str = ""
    subvolume_path: str = ""
    injections: tuple[Injection, ...] = ()
    network: LabNetwork | None = None
    client_mounts: dict[str, str] = field(default_factory=dict)

    def daemons(self, kind: str) -> list[str]:
        """The names of its daemons of a kind: mon, mgr, mds or osd."""
        if self.network is not None:
            return self.network.daemons(kind)
        return [f"osd.{number}" for number in range(self.spec.osd_count)] if kind == "osd" else [_ONLY[kind]]

    @property
    def gateway_names(self) -> tuple[str, ...]:
        """The servers that were asked for, by the names that they have here."""
        return tuple(self.network.gateways) if self.network else self.spec.gateways

    @property
    def mon_addresses(self) -> tuple[str, ...]:
        """The addresses of its monitors, `mon.a` first."""
        if self.network is None:
            return (self.spec.address,)
        return tuple(self.network.address(self.network.host_of(name)) for name in self.network.daemons("mon"))

    def address_of(self, daemon: str) -> str:
        """Where a daemon or gateway listens."""
        host = self.network.host_of(daemon) if self.network else ""
        return self.network.address(host) if self.network and host else self.spec.address

    @property
    def paths(self) -> LabPaths:
        """Where this lab's files are."""
        return LabPaths(self.directory, self.run_directory)

    def as_json(self) -> dict[str, Any]:
        """Plain values, with the format's version."""
        plain: dict[str, Any] = _form().dump_python(self, mode="json")
        if self.network is not None:  # its topology is the one that was asked for
            del plain["network"]["topology"]
        return {"format": FORMAT} | plain

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> LabRecord:
        """The inverse of `as_json`. Raises KeyError, TypeError or ValueError for what is no lab."""
        fsid, spec, network = str(value["fsid"]), {"auth": "none"} | value["spec"], value.get("network")
        if not _FSID.fullmatch(fsid):  # names of devices, directories and groups are made of it
            raise ValueError(f"{fsid!r} is no identity")
        own = {
            "spec": spec,
            "processes": [item | {"mark": fsid} for item in value["processes"]],
            "network": network | {"topology": spec["topology"]} if network and spec.get("topology") else None,
        }
        return _form().validate_python(value | own)


@cache
def _form() -> TypeAdapter[LabRecord]:
    from pydantic import TypeAdapter

    return TypeAdapter(LabRecord)


def is_unborn(directory: Path) -> bool:
    """True where `directory` holds a lab's lock and nothing else that a user could miss."""
    names = set(os.listdir(directory))  # noqa: PTH208
    return LOCK in names and names <= _UNBORN


def read_record(directory: Path) -> LabRecord:
    """The lab in `directory`. Raises UsageError where it is none, another's, damaged or newer."""
    with own_directory(directory) as descriptor:
        return read_at(descriptor, directory)


def read_at(descriptor: int, directory: Path) -> LabRecord:
    """The lab in a directory that is open, and this account's own."""
    text = _read_own_file(descriptor, FILE, directory)
    if text is None:
        raise LostRecordError(f"{directory} is not a lab", "`leadline lab list` shows the labs.")
    try:
        value = parse_json(text)
        found = value.get("format", "")
        if found == FORMAT:
            return _checked(LabRecord.from_json(value), directory)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise LostRecordError(f"{directory / FILE} is damaged or no lab's", "Nothing was changed.") from error
    if isinstance(found, str) and found.startswith("leadline.lab/"):
        raise UsageError(
            f"the lab in {directory} was made by a newer leadline ({found})", "Use that version."
        )
    raise UsageError(f"{directory / FILE} is not a lab's file", "Nothing was changed.")


def _checked(record: LabRecord, directory: Path) -> LabRecord:
    if record.directory != directory:
        raise UsageError(
            f"the lab in {directory} was moved from {record.directory}",
            "Move it back: its processes use that path.",
        )
    return record


def write_record(record: LabRecord) -> None:
    """Replaces the lab's file as one step that survives a crash."""
    new = record.directory / f"{FILE}.new"
    with open(os.open(new, _NEW, 0o600), "w") as stream:  # noqa: PTH123 - a descriptor
        json.dump(record.as_json(), stream, indent=1)
        stream.flush()
        os.fsync(stream.fileno())
    new.rename(record.directory / FILE)


@contextmanager
def locked(directory: Path, *, deadline_s: float = 10.0, clock: Clock = SYSTEM_CLOCK) -> Iterator[None]:
    """Holds the lab's lock, so that two commands never work on one lab; the kernel frees it after a crash.

    Raises LabError naming the holder where the lock is not free within `deadline_s` seconds.
    """
    path = directory / LOCK
    descriptor = _open_lock(path)
    try:
        if not poll(lambda: _try_lock(descriptor), deadline_s, clock=clock):
            holder = os.pread(descriptor, 20, 0).decode(errors="replace").strip() or "?"
            raise LabError(
                f"another leadline command (pid {holder}) is working on the lab in {directory}",
                "Wait for it, or end it and repeat this command.",
            )
        if not _is_same(descriptor, path):
            raise UsageError(
                f"the lab in {directory} was removed meanwhile", "`leadline lab list` shows the labs."
            )
        os.truncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(descriptor)


def _open_lock(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise LabError(
            f"{path} cannot be opened: {error.strerror}", "Use the account that started the lab."
        ) from error


def _try_lock(descriptor: int) -> bool:
    with suppress(BlockingIOError):
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False


def _is_same(descriptor: int, path: Path) -> bool:
    try:
        there = path.stat()
    except OSError:
        return False
    return os.path.samestat(there, os.fstat(descriptor))
