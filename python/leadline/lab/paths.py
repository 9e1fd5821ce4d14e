"""Where a lab's files are: one directory, and a short one for sockets where the first is too deep."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from leadline import wires
from leadline.faults import FILE as FAULTS
from leadline.lab.spec import LabSpec
from leadline.trusted import why_not_place

# sun_path of a unix socket holds 108 bytes with the final zero (unix(7)).
SOCKET_PATH_BYTES_MAX = 107
_LONGEST_SOCKET = "client.thirteen-long.4194304.asok"  # a device is named after the client: no longer
_RUN_PREFIX = "leadline-lab-"
# What else may lie in the directory is not the lab's: a name that is made there is below, or here.
GUEST_PREFIX = "leadline-guest-"
_CLIENTS, _DATA, _GATEWAYS, _NAMESPACES, _RUN = "clients", "data", "gateways", "net", "run"
_TUNING = "tuning"  # the journal of what `leadline tune` changed of the lab: it ends with it


class _Inside:
    """A path in the lab's directory that is always called so."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, paths: LabPaths, _owner: type) -> Path:
        return paths.directory / self._name


@dataclass(frozen=True)
class LabPaths:
    """The files of one lab. `run` holds the admin sockets and may be outside `directory`."""

    directory: Path
    run: Path

    conf = _Inside("ceph.conf")  # Ceph's configuration
    keyring = _Inside("keyring")  # the keys of every daemon and of client.admin
    monmap = _Inside("monmap")  # the first map of monitors
    mount = _Inside("mnt")  # where ceph-fuse mounts the file system
    subvolume_mount = _Inside("mnt-subvolume")  # where the restricted client mounts its subvolume
    namespaces = _Inside(_NAMESPACES)  # what holds those of a lab with hosts, a file each
    logs = _Inside("log")  # one log a process
    tuning = _Inside(_TUNING)  # where changes of the lab's settings are journalled
    crash = _Inside("crash")  # what daemons that crashed wrote of it

    def client_mount(self, client: str) -> Path:
        """Where a client of a lab with hosts mounts the file system."""
        return self.directory / f"mnt-{client}"

    def client_keyring(self, user: str) -> Path:
        """The key of a client other than client.admin, by the part of its name behind `client.`."""
        return self.directory / _CLIENTS / f"{user}.keyring"

    def namespace(self, name: str) -> Path:
        """What holds the namespace of a host or client, or of the switches."""
        return self.namespaces / name

    def client_conf(self, client: str) -> Path:
        """Ceph's configuration of a client of a lab with hosts."""
        return self.directory / _CLIENTS / f"{client}.conf"

    def gateway(self, name: str) -> Path:
        """The directory of a gateway such as `nfs`."""
        return self.directory / _GATEWAYS / name

    def data(self, daemon: str) -> Path:
        """The data directory of a daemon such as `osd.3`."""
        return self.directory / _DATA / daemon

    def log(self, daemon: str) -> Path:
        """The log of a daemon such as `osd.3`."""
        return self.logs / f"{daemon}.log"

    def socket(self, daemon: str) -> Path:
        """The admin socket of a daemon such as `osd.3`, or of `client.admin` (ceph-fuse)."""
        return self.run / f"{daemon}.asok"

    def mount_points(self, spec: LabSpec) -> tuple[Path, ...]:
        """Where such a lab mounts its file system."""
        own = (self.mount, self.subvolume_mount) if spec.subvolume else (self.mount,)
        return own + self.client_mounts(spec)

    def client_mounts(self, spec: LabSpec) -> tuple[Path, ...]:
        """Where the clients of a lab with hosts mount it, when they are told to."""
        return tuple(self.client_mount(item.name) for item in spec.topology.clients) if spec.topology else ()

    def is_made(self, name: str, spec: LabSpec) -> bool:
        """True for what such a lab makes in its directory, besides its mount points and its own file."""
        made = {
            _DATA,
            _TUNING,
            FAULTS,
            *(path.name for path in (self.conf, self.keyring, self.monmap, self.logs, self.crash)),
        }
        if self.run == self.directory / _RUN:
            made.add(_RUN)
        if spec.subvolume or spec.topology:
            made.add(_CLIENTS)
        if spec.gateway_kinds:
            made.add(_GATEWAYS)
        if spec.topology:
            made |= {_NAMESPACES, wires.FILE, wires.NEW}
        return name in made or name.startswith(GUEST_PREFIX)


def labs_home(variables: Mapping[str, str]) -> Path:
    """The directory of named labs: below $XDG_STATE_HOME, else below ~/.local/state."""
    state = variables.get("XDG_STATE_HOME", "")
    base = (
        Path(state)
        if state.startswith("/")
        else Path(variables.get("HOME") or "~").expanduser() / ".local/state"
    )
    return base / "leadline" / "labs"


def run_name(fsid: str) -> str:
    """The name of the directory for the sockets of this lab, where that is outside of the lab's own."""
    return f"{_RUN_PREFIX}{fsid[:8]}"


def choose_run_directory(directory: Path, fsid: str, variables: Mapping[str, str]) -> Path:
    """`directory`/run, or a short path elsewhere where the names of sockets would not fit."""
    inside = directory / _RUN
    if len(os.fsencode(inside / _LONGEST_SOCKET)) <= SOCKET_PATH_BYTES_MAX:
        return inside
    user = variables.get("XDG_RUNTIME_DIR", "")
    usable = user.startswith("/") and len(user) < 40 and _is_own(Path(user))
    base = Path(user if usable else "/tmp")  # noqa: S108 - made with mode 0700, and only where it did not exist
    return base / run_name(fsid)


def _is_own(directory: Path) -> bool:
    """True for a directory of this account's: after `sudo` the variable may name the other account's."""
    return not why_not_place(directory) and directory.is_dir() and os.access(directory, os.W_OK)
