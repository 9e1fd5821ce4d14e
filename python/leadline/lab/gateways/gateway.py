"""What every gateway is made of: its packages, its Ceph user, its command, how to see that it serves."""

from __future__ import annotations

import glob
import os
import shutil
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from leadline.errors import LabError
from leadline.lab.cluster.command import CephCommand
from leadline.lab.cluster.process import ProcessIdentity
from leadline.lab.paths import LabPaths
from leadline.lab.spec import LabSpec

# An ordinary user's PATH lacks them, though their programs may be run by anybody.
_SYSTEM_PROGRAMS = "/usr/sbin:/sbin"
_CONNECT_DEADLINE_S = 2.0
_MDS_DEADLINE_S = 10.0
_ACTIVE = "mds.fs:0"  # whichever daemon has the only rank of the file system: after a failover, another


@dataclass(frozen=True)
class GatewayPlace:
    """Where one gateway of one lab runs.

    `tool` runs a short program with the lab's environment, `start` a process of the lab's that the gateway
    needs beside it; `free_port` draws one more port.
    """

    name: str
    spec: LabSpec
    paths: LabPaths
    port: int
    ceph: CephCommand
    tool: Callable[..., str]
    start: Callable[[str, list[str]], ProcessIdentity]
    free_port: Callable[[], int]

    @property
    def directory(self) -> Path:
        """The gateway's own directory: configuration, keyring, state."""
        return self.paths.gateway(self.name)

    @property
    def sockets(self) -> Path:
        """A directory whose path is short enough for sockets in it."""
        return self.paths.run / self.name

    @property
    def keyring(self) -> Path:
        """The key of the gateway's own Ceph user, `client.NAME`."""
        return self.directory / "keyring"

    def configure(self, file: str, template: str, **values: object) -> str:
        """Writes a configuration into the gateway's directory; its path. It is told where it runs."""
        own = {"port": self.port, "address": self.spec.address, "user": self.name, "conf": self.paths.conf}
        write_private(self.directory / file, template.format(**own, **values))
        return str(self.directory / file)

    @property
    def endpoint(self) -> str:
        """`ADDRESS:PORT`, as in a URL."""
        return f"{url_host(self.spec.address)}:{self.port}"


@dataclass(frozen=True)
class Launch:
    """A gateway's command line, what its environment needs, and what its users should know.

    `mount_port` is that of NFSv3's mount protocol, 0 where the gateway has none.
    """

    command: list[str]
    variables: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    mount_port: int = 0


@dataclass(frozen=True)
class Gateway:
    """One kind of gateway.

    `programs` and `plugins` (patterns of files) name the Debian package that carries each. `capabilities`
    are those of its Ceph user, `helpers` the names of processes that it may need beside it. `prepare`
    writes its configuration; `serves` asks whether it really serves once its port answers; `finish` makes
    what its users need.
    """

    name: str
    words: str
    programs: Mapping[str, str]
    plugins: Mapping[str, str]
    capabilities: Mapping[str, str]
    prepare: Callable[[GatewayPlace], Launch]
    serves: Callable[[GatewayPlace], bool] = lambda _: True
    finish: Callable[[GatewayPlace], None] = lambda _: None
    helpers: tuple[str, ...] = ()

    def lacking(self) -> list[str]:
        """Debian packages to install before it can start, sorted."""
        programs = {package for program, package in self.programs.items() if find_program(program) is None}
        plugins = {package for pattern, package in self.plugins.items() if not find_plugin(pattern)}
        return sorted(programs | plugins)


def find_program(program: str) -> str | None:
    """The program's path, on PATH or where administrators' programs are."""
    return shutil.which(program) or shutil.which(program, path=_SYSTEM_PROGRAMS)


def find_plugin(pattern: str) -> str:
    """The first file of this pattern below the library directories; "" where there is none."""
    bases = ("/usr/lib/*-linux-gnu", "/usr/lib64", "/usr/lib")
    return next((path for base in bases for path in sorted(glob.glob(f"{base}/{pattern}"))), "")  # noqa: PTH207


def require_program(program: str) -> str:
    """The program's path. Raises LabError where it is not there."""
    path = find_program(program)
    if path is None:
        raise LabError(f"there is no program {program}", "Run `leadline doctor`.")
    return path


def accepts_connections(address: str, port: int) -> bool:
    """True where something accepts connections there."""
    try:
        socket.create_connection((address, port), timeout=_CONNECT_DEADLINE_S).close()
    except OSError:
        return False
    return True


def write_private(path: Path, text: str) -> None:
    """Writes a file that only its owner can read, from its first byte on."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(descriptor, "w") as stream:  # noqa: PTH123
        stream.write(text)


def url_host(address: str) -> str:
    """An IP address as URLs write it."""
    return f"[{address}]" if ":" in address else address


def has_session(ceph: CephCommand, user: str) -> bool:
    """True where `client.USER` has the file system open, which the metadata server knows."""
    return bool(_sessions(ceph, user))


def evict(ceph: CephCommand, user: str) -> None:
    """Takes from `client.USER` what it holds of the file system; its next process may come again."""
    for number in _sessions(ceph, user):
        ceph.run("tell", _ACTIVE, "session", "evict", f"id={number}", deadline_s=_MDS_DEADLINE_S)


def _sessions(ceph: CephCommand, user: str) -> list[int]:
    found = ceph.json("tell", _ACTIVE, "session", "ls", deadline_s=_MDS_DEADLINE_S)
    return [int(item["id"]) for item in found if item.get("client_metadata", {}).get("entity_id") == user]
