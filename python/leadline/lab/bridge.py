"""A network bridge of the lab's own, as nobody else reaches 127.0.0.1; and a guest's cable to it.

The cable is a tap that lives exactly as long as the guest's process holds it.
"""

from __future__ import annotations

import contextlib
import fcntl
import ipaddress
import os
import random
import shutil
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leadline.errors import LabError, UsageError
from leadline.foreign import parse_json
from leadline.lab.cluster import process
from leadline.lab.cluster.process import run_tool

PREFIX = "llbr"
_ATTEMPTS = 100
_DEADLINE_S = 10.0
_DEVICES = Path("/sys/class/net")


def require() -> None:
    """Raises UsageError or LabError where this account cannot make a bridge."""
    if os.geteuid() != 0:
        raise UsageError(
            "--bridge makes a network device, which needs root", "Use --address, or run it as root."
        )
    if shutil.which("ip") is None:
        raise LabError(
            "there is no program ip, which makes the bridge",
            "Run as root: apt-get install --no-install-recommends iproute2",
        )


def name_for(fsid: str) -> str:
    """The device's name for the lab of this identity."""
    return f"{PREFIX}{fsid[:4]}"


def choose_network(
    chance: random.Random, variables: Mapping[str, str], prefix_bits: int = 24
) -> ipaddress.IPv4Network:
    """A private network that no route or address of this host touches. Raises LabError for none."""
    routes = parse_json(
        run_tool(["ip", "-json", "route", "show", "table", "all"], variables, deadline_s=_DEADLINE_S)
    )
    used = [network for item in routes if (network := _network(item.get("dst", ""))) is not None]
    for _ in range(_ATTEMPTS):
        first = f"10.{chance.randint(1, 254)}.{chance.randint(0, 127) * 2}.0"
        found = ipaddress.IPv4Network((first, prefix_bits))
        if not any(found.overlaps(network) for network in used):
            return found
    raise LabError("every private network tried is used by a route of this host", "Use --address.")


def _network(destination: str) -> ipaddress.IPv4Network | None:
    try:
        return ipaddress.IPv4Network(destination)
    except ValueError:  # "default", or another protocol's
        return None


def make(name: str, address: str, variables: Mapping[str, str]) -> None:
    """Makes the device, with `address` of a network of 254. Raises LabError where the kernel refuses."""
    for words in (
        ["link", "add", name, "type", "bridge"],
        ["address", "add", f"{address}/24", "dev", name],
        ["link", "set", name, "up"],
    ):
        run_tool(["ip", *words], variables, deadline_s=_DEADLINE_S)


def remove(name: str, variables: Mapping[str, str]) -> None:
    """Removes the lab's bridge where it is still there; a device that is no such bridge is left alone."""
    if name.startswith(PREFIX) and (_DEVICES / name / "bridge").is_dir():
        run_tool(["ip", "link", "delete", name, "type", "bridge"], variables, deadline_s=_DEADLINE_S)


_TUN = Path("/dev/net/tun")
_TUNSETIFF = 0x400454CA  # linux/if_tun.h, as the four values below
_IFF_TAP, _IFF_NO_PI, _IFF_VNET_HDR = 0x0002, 0x1000, 0x4000
_REQUEST = struct.Struct("16sH22x")
_NAME = b"llguest%d"  # the kernel puts the first free number in


@dataclass(frozen=True)
class Bridge:
    """A bridge of this host, the lab's address on it, and the length of its network's prefix."""

    name: str
    address: str
    prefix_bits: int

    def guest(self) -> ipaddress.IPv4Interface:
        """The guest's address: the last of the network that is not the lab's own."""
        network = ipaddress.IPv4Interface(f"{self.address}/{self.prefix_bits}").network
        last = network.broadcast_address - 1
        chosen = last if str(last) != self.address else last - 1
        if chosen not in network or chosen == network.network_address:
            raise LabError(f"{network} on {self.name} has no address left for a guest", "Use a /24 network.")
        return ipaddress.IPv4Interface((chosen, self.prefix_bits))


def find_bridge(address: str, variables: Mapping[str, str], classes: Path = _DEVICES) -> Bridge:
    """The bridge that carries a lab's address. Raises LabError where a guest could not reach that address."""
    found = process.run_tool(("ip", "-json", "address", "show"), variables, deadline_s=_DEADLINE_S)
    for name, prefix_bits in carriers(parse_json(found), address):
        if (classes / name / "bridge").is_dir():
            return Bridge(name, address, prefix_bits)
    raise LabError(
        f"the lab is bound to {address}, which is on no bridge of this host: a guest cannot reach it",
        "Start the lab anew with `leadline lab up --bridge`.",
    )


def carriers(interfaces: list[dict[str, Any]], address: str) -> list[tuple[str, int]]:
    """Interfaces with this address and the length of its prefix, from what `ip -json address` lists."""
    return [
        (interface["ifname"], entry["prefixlen"])
        for interface in interfaces
        for entry in interface.get("addr_info", ())
        if entry.get("local") == address
    ]


@contextlib.contextmanager
def tap_on(bridge: Bridge, variables: Mapping[str, str]) -> Iterator[int]:
    """A descriptor of a new tap on the bridge. The kernel removes the tap with its last descriptor."""
    try:
        descriptor = os.open(_TUN, os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        raise LabError(
            f"a guest needs a tap, and {_TUN} cannot be opened: {error.strerror}", "Run this command as root."
        ) from error
    try:
        try:
            request = _REQUEST.pack(_NAME, _IFF_TAP | _IFF_NO_PI | _IFF_VNET_HDR)
            answer = fcntl.ioctl(descriptor, _TUNSETIFF, request)
        except OSError as error:
            raise LabError(
                f"no tap can be made for the guest: {error.strerror}",
                "Run this command as root (it needs CAP_NET_ADMIN).",
            ) from error
        name = answer[:16].rstrip(b"\0").decode()
        process.run_tool(
            ("ip", "link", "set", name, "master", bridge.name, "up"), variables, deadline_s=_DEADLINE_S
        )
        yield descriptor
    finally:
        os.close(descriptor)
