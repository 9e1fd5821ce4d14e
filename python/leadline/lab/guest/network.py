"""The guest's cable: a tap on the lab's bridge that lives exactly as long as the guest's process holds it."""

from __future__ import annotations

import contextlib
import fcntl
import ipaddress
import os
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leadline.errors import LabError
from leadline.foreign import parse_json
from leadline.lab.cluster import process
from leadline.lab.guest.initrd import Network

_TUN = Path("/dev/net/tun")
_CLASS = Path("/sys/class/net")
_TUNSETIFF = 0x400454CA  # linux/if_tun.h, as the four values below
_IFF_TAP, _IFF_NO_PI, _IFF_VNET_HDR = 0x0002, 0x1000, 0x4000
_REQUEST = struct.Struct("16sH22x")
_NAME = b"llguest%d"  # the kernel puts the first free number in
_IP_DEADLINE_S = 10.0


@dataclass(frozen=True)
class Bridge:
    """A bridge of this host, the lab's address on it, and the length of its network's prefix."""

    name: str
    address: str
    prefix_bits: int

    def guest(self) -> Network:
        """The guest's address: the last of the network that is not the lab's own."""
        network = ipaddress.ip_interface(f"{self.address}/{self.prefix_bits}").network
        last = network.broadcast_address - 1
        chosen = last if str(last) != self.address else last - 1
        if chosen not in network or chosen == network.network_address:
            raise LabError(f"{network} on {self.name} has no address left for a guest", "Use a /24 network.")
        return Network(str(chosen), self.prefix_bits)


def find_bridge(address: str, variables: Mapping[str, str], classes: Path = _CLASS) -> Bridge:
    """The bridge that carries a lab's address. Raises LabError where a guest could not reach that address."""
    found = process.run_tool(("ip", "-json", "address", "show"), variables, deadline_s=_IP_DEADLINE_S)
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
            ("ip", "link", "set", name, "master", bridge.name, "up"), variables, deadline_s=_IP_DEADLINE_S
        )
        yield descriptor
    finally:
        os.close(descriptor)
