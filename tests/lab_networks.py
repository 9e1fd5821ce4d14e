"""What tests do with a lab's network alone: make one, go into its namespaces, and list all that is there."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import random
import shutil
import socket
import subprocess
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leadline.lab import bridge, mounts
from leadline.lab.cluster.process import poll
from leadline.lab.network import make as network
from leadline.lab.network.placement import SWITCHES, LabNetwork, place
from leadline.lab.network.topology import Topology
from leadline.lab.paths import LabPaths

PROGRAMS = ("ip", "tc", "bridge", "nsenter", "unshare")
_CLONE_NEWNET = 0x40000000
_IPERF_LISTENS = f":{5201:04X} {0:032X}:0000 0A "  # proc(5): local port, nobody's, state


def why_none(*more: str) -> str:
    """Why no network can be made on this machine; "" where one can."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    lacking = [program for program in (*PROGRAMS, *more) if shutil.which(program) is None]
    return f"programs are missing: {' '.join(lacking)}" if lacking else ""


@dataclass(frozen=True)
class AloneNetwork:
    """A lab's network without a lab."""

    fsid: str
    network: LabNetwork
    paths: LabPaths

    @classmethod
    def plan(cls, topology: Topology, directory: Path) -> AloneNetwork:
        """One that is not made yet, on addresses that nothing here uses."""
        directory.mkdir(mode=0o700, exist_ok=True)
        fsid = str(uuid.uuid4())
        base = bridge.choose_network(random.Random(fsid), os.environ, prefix_bits=23)  # noqa: S311
        found = LabNetwork(topology, str(base), network.console_for(fsid), place(topology))
        return cls(fsid, found, LabPaths(directory, directory / "run"))

    def make(self) -> None:
        """All of it, until the kernel has noticed that both ends of each cable are up."""
        network.make(self.network, self.paths, os.environ)
        assert poll(self._is_up, 20.0)

    def _is_up(self) -> bool:
        found = [device for name in (*self.namespaces, "") for device in self.devices(name).values()]
        return all(device["operstate"] == "UP" for device in found)

    def remove(self) -> None:
        """All that is there of it."""
        network.remove(self.fsid, self.paths, os.environ)

    @property
    def namespaces(self) -> list[str]:
        """Their names."""
        return [SWITCHES, *(member.name for member in self.network.topology.members)]

    def ask(self, namespace: str, *words: str) -> Any:
        """What `ip`, `tc` or `bridge` says there, as JSON."""
        command = [*network.entered(self.paths, namespace), words[0], "-json", *words[1:]]
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
        return json.loads(done.stdout or "[]")

    def devices(self, namespace: str) -> dict[str, Any]:
        """Device to what `ip address` says of it; the machine's own are not among them."""
        words = ("dev", self.network.console) if not namespace else ()
        found = self.ask(namespace, "ip", "address", "show", *words)
        return {item["ifname"]: item for item in found if item["ifname"] != "lo"}

    def state(self) -> dict[str, Any]:
        """Everything that there is of it, without what counts by itself."""
        found: dict[str, Any] = {
            name: (
                self.devices(name),
                [item for item in self.ask(name, "tc", "qdisc", "show") if item["dev"] != "lo"],
            )
            for name in self.namespaces
        }
        mounted = sorted((str(point), kind) for point, kind in mounts.mounts_below(self.paths.directory))
        return found | {"console": self.devices(""), "mounts": mounted}

    def left(self) -> list[str]:
        """What is still there: mounts, the machine's own device."""
        found = [str(point) for point, _ in mounts.mounts_below(self.paths.directory)]
        return found + [name for _, name in socket.if_nameindex() if name == self.network.console]


@contextlib.contextmanager
def inside(namespace: Path) -> Iterator[None]:
    """This thread is in another network meanwhile: sockets that it opens belong there for good."""
    libc = ctypes.CDLL(None, use_errno=True)
    here = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    there = os.open(namespace, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if libc.setns(there, _CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), f"setns {namespace}")
        try:
            yield
        finally:
            if libc.setns(here, _CLONE_NEWNET) != 0:
                os._exit(70)  # no test may go on in a network that it believes it has left
    finally:
        os.close(there)
        os.close(here)


def iperf_line(found: AloneNetwork, client: str, host: str, seconds: int, *more: str) -> list[str]:
    """A command: one TCP stream from a client to a host, its slow start left out."""
    words = ["iperf3", "--client", found.network.address(host), "--json", "--omit", "1", *more]
    return [*network.entered(found.paths, client), *words, "--time", str(seconds)]


def iperf(found: AloneNetwork, client: str, host: str, seconds: int, *more: str) -> Any:
    """What iperf3 says of it at its end."""
    command = iperf_line(found, client, host, seconds, *more)
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds + 30, check=True)
    return json.loads(done.stdout)["end"]


@contextlib.contextmanager
def iperf_servers(found: AloneNetwork, hosts: Sequence[str]) -> Iterator[None]:
    """iperf3's servers on these hosts, that listen."""
    with contextlib.ExitStack() as stack:
        for host in hosts:
            command = [*network.entered(found.paths, host), "iperf3", "--server"]
            server = stack.enter_context(subprocess.Popen(command, stdout=subprocess.DEVNULL))
            stack.callback(server.kill)
            own = Path(f"/proc/{server.pid}/net/tcp6")  # of the namespace that the process is in
            assert poll(lambda own=own: _IPERF_LISTENS in own.read_text(), 20.0), host  # type: ignore[misc]
        yield
