"""Makes a topology's namespaces, bridges and cables, and takes them away. Nothing of it is in /run/netns.

A namespace is held by a mount on a file in the lab's directory, so that who has the directory has them all.
"""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from leadline.errors import LabError, UsageError
from leadline.lab import mounts
from leadline.lab.cluster import process
from leadline.lab.cluster.process import run_tool
from leadline.lab.network.placement import (
    BACK,
    SWITCHES,
    UPLINK,
    Cable,
    LabNetwork,
    bridge_of,
    cables,
    shaping,
    wires_of,
)
from leadline.lab.paths import LabPaths
from leadline.wires import write_wires

CONSOLE_PREFIX = "llnd"  # and eight digits: a device's name has at most fifteen characters
NAMESPACE_KIND = "nsfs"
_DEADLINE_S = 20.0
_PROGRAMS = {"ip": "iproute2", "tc": "iproute2", "nsenter": "util-linux", "unshare": "util-linux"}
_PROC = Path("/proc")
# A packet goes on at the core that took it up, and cores pass each other: TCP takes that for loss. By this a
# flow keeps to one core. Before Linux 6.3 there is no such setting: some segments are sent twice then.
_FLOWS_KEEP_ORDER = ("sh", "-c", 'echo "$1" 2>/dev/null >/proc/sys/net/core/rps_default_mask || :', "sh")


def require() -> None:
    """Raises UsageError or LabError where this account or machine cannot make a network."""
    if os.geteuid() != 0:
        raise UsageError(
            "hosts and switches are network namespaces, which need root",
            "Run it as root, or start a lab without --hosts.",
        )
    lacking = {package for program, package in _PROGRAMS.items() if shutil.which(program) is None}
    if lacking:
        raise LabError(
            "programs are missing that make the lab's network",
            f"Run as root: apt-get install --no-install-recommends {' '.join(sorted(lacking))}",
        )


def console_for(fsid: str) -> str:
    """The machine's own device in the network of the lab of this identity."""
    return f"{CONSOLE_PREFIX}{fsid[:8]}"


def entered(paths: LabPaths, namespace: str) -> list[str]:
    """The beginning of a command that runs in this namespace; empty for the machine's own."""
    return ["nsenter", f"--net={paths.namespace(namespace)}"] if namespace else []


def make(network: LabNetwork, paths: LabPaths, variables: Mapping[str, str]) -> None:
    """Makes it all. Raises LabError where the kernel refuses a part: `remove` takes the others away."""
    paths.namespaces.mkdir(mode=0o700, exist_ok=True)
    for name in (SWITCHES, *(member.name for member in network.topology.members)):
        file = paths.namespace(name)
        file.touch(mode=0o600)
        run_tool(
            ["unshare", f"--net={file}", *_FLOWS_KEEP_ORDER, _all_cores()], variables, deadline_s=_DEADLINE_S
        )
    found = list(cables(network.topology, network.console))
    # The machine's own end last: until then nothing of the lab is outside its namespaces.
    _batch("ip", SWITCHES, "".join(_switch_lines(network, found, paths)), paths, variables)
    for namespace in dict.fromkeys(end.namespace for cable in found for end in cable.ends):
        lines = "".join(_member_lines(network, namespace, found))
        _batch("ip", namespace, lines, paths, variables)
        shaped = "".join(
            shaping(end.device, cable.link)
            for cable in found
            for end in cable.ends
            if end.namespace == namespace
        )
        _batch("tc", namespace, shaped, paths, variables)
    write_wires(paths.directory, tuple(wires_of(network.topology, str(paths.namespace(SWITCHES)))))


def _all_cores() -> str:
    """A mask of all cores as the kernel reads it: 32 of them a word."""
    words, bits = [], (1 << (os.cpu_count() or 1)) - 1
    while bits:
        words.append(f"{bits & 0xFFFFFFFF:x}")
        bits >>= 32
    return ",".join(reversed(words))


def _switch_lines(network: LabNetwork, found: list[Cable], paths: LabPaths) -> Iterator[str]:
    yield "link set lo up\n"
    for switch in network.topology.switches:
        bridge = bridge_of(switch.name)
        yield f"link add {bridge} type bridge mcast_snooping 0 forward_delay 0\n"
        yield f"link set {bridge} addrgenmode none\n"
        yield f"link set {bridge} up\n"
    for cable in found:
        lower, mtu = cable.lower, cable.link.mtu_bytes
        where = f"netns {paths.namespace(lower.namespace)} " if lower.namespace else f"netns {os.getpid()} "
        where = "" if lower.namespace == SWITCHES else where
        yield (
            f"link add {cable.upper.device} mtu {mtu} type veth peer name {lower.device} mtu {mtu} {where}\n"
        )
        yield f"link set {cable.upper.device} master {bridge_of(cable.switch)}\n"
        if lower.namespace == SWITCHES:
            yield f"link set {lower.device} master {bridge_of(cable.name)}\n"


def _member_lines(network: LabNetwork, namespace: str, found: list[Cable]) -> Iterator[str]:
    """Addresses, then up: of all devices of a namespace."""
    if namespace:
        yield "link set lo up\n"
    for device in (end.device for cable in found for end in cable.ends if end.namespace == namespace):
        yield f"link set {device} addrgenmode none\n"
        address = _address(network, namespace, device)
        if address:
            yield f"address add {address}/24 dev {device}\n"
        yield f"link set {device} up\n"


def _address(network: LabNetwork, namespace: str, device: str) -> str:
    if not namespace:
        return network.console_address
    if device == UPLINK:
        return network.address(namespace)
    return network.cluster_address(namespace) if device == BACK else ""


def _batch(program: str, namespace: str, lines: str, paths: LabPaths, variables: Mapping[str, str]) -> None:
    if lines:
        command = [*entered(paths, namespace), program, "-batch", "-"]
        run_tool(command, variables, deadline_s=_DEADLINE_S, text=lines)


def remove(fsid: str, paths: LabPaths, variables: Mapping[str, str]) -> None:
    """Takes away what is there of a lab's network, from any state. Raises LabError for what would not go.

    A namespace lives on as long as a process in it: those of the lab have ended by now.
    """
    console = console_for(fsid)
    if _is_here(console):
        try:
            run_tool(["ip", "link", "delete", console], variables, deadline_s=_DEADLINE_S)
        except LabError:
            # The kernel takes it away by itself, some time after the namespace of its other end.
            if _is_here(console):
                raise
    release(paths, variables)


def release(paths: LabPaths, variables: Mapping[str, str]) -> None:
    """Lets go of every namespace that is held: each ends, with all in it, when no process is in it."""
    for point in held(paths):
        mounts.unmount(point, variables, lazy=True)


def held(paths: LabPaths) -> list[Path]:
    """What holds namespaces there."""
    below = mounts.mounts_below(paths.namespaces)
    return [point for point, kind in below if kind == NAMESPACE_KIND and point.parent == paths.namespaces]


def is_held(paths: LabPaths) -> bool:
    """True where a lab's network is, whatever became of the lab's files."""
    return paths.namespace(SWITCHES) in held(paths)


def directories() -> set[Path]:
    """Where labs have networks, by what is mounted."""
    below = mounts.mounts_below(Path("/"))
    found = {LabPaths(point.parent.parent, point) for point, kind in below if kind == NAMESPACE_KIND}
    return {paths.directory for paths in found if is_held(paths)}


def require_outside(paths: LabPaths) -> None:
    """Raises UsageError where this program itself is in a network that is about to be taken away."""
    for name, _ in _inside(paths, ["self"]):
        raise UsageError(
            f"this command runs in the network of {name}, which is a part of that lab: nothing was changed",
            "Do this outside of it.",
        )


def inhabitants(paths: LabPaths) -> list[str]:
    """In words, every process in a namespace that is held there."""
    found = _inside(paths, sorted((name for name in os.listdir(_PROC) if name.isdecimal()), key=int))  # noqa: PTH208
    return [f"{process.command(int(pid))} (pid {pid}) in the network of {name}" for name, pid in found]


def _inside(paths: LabPaths, pids: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Namespace and pid, of these processes that are in one."""
    names = {_identity(point): point.name for point in held(paths)}
    for pid in pids:
        with suppress(OSError):  # it has ended, or tells only its own account
            name = names.get(_identity(_PROC / pid / "ns/net"))
            if name:
                yield name, pid


def _identity(namespace: Path) -> tuple[int, int]:
    found = namespace.stat()
    return found.st_dev, found.st_ino


def _is_here(device: str) -> bool:
    return any(name == device for _, name in socket.if_nameindex())
