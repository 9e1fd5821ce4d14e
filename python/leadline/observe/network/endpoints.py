"""The endpoints of the targets' servers: only TCP connections to and from them show anything of a target.

An SSH session to a sleeping laptop loses packets, too.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass, field

_ADDRESS_BYTES, _PORT_BYTES = 16, 2
_MAPPED = bytes(10) + b"\xff\xff"  # of an IPv4 address in a socket of IPv6 (RFC 4291, 2.5.5.2)

ServerEndpoint = tuple[str, int | None]  # an IP address, and a port where that is known


def _packed(address: str) -> bytes:
    """As the kernel has it in a socket's identity: 16 bytes, of IPv4 the first four."""
    return _plain(ipaddress.ip_address(address).packed.ljust(_ADDRESS_BYTES, b"\0"))


def _plain(address: bytes) -> bytes:
    return address[12:].ljust(_ADDRESS_BYTES, b"\0") if address.startswith(_MAPPED) else address


@dataclass(frozen=True)
class ServerEndpoints:
    """A set of endpoints as sockets have them, made by `of`."""

    listening: frozenset[bytes] = field(default=frozenset())
    hosts: frozenset[bytes] = field(default=frozenset())

    @classmethod
    def of(cls, endpoints: Iterable[ServerEndpoint]) -> ServerEndpoints:
        """From IP addresses and ports. One without a port stands for its whole host; names are ignored."""
        listening, hosts = set[bytes](), set[bytes]()
        for address, port in endpoints:
            try:
                packed = _packed(address)
            except ValueError:
                continue
            if port is None:
                hosts.add(packed)
            else:
                listening.add(port.to_bytes(_PORT_BYTES, "big") + packed)
        return cls(frozenset(listening), frozenset(hosts))

    def has(self, identity: bytes) -> bool:
        """Whether a connection is to or from one: its ports and addresses, as sock_diag(7) has them."""
        source, target = identity[0:2], identity[2:4]
        here, there = _plain(identity[4:20]), _plain(identity[20:36])
        return there in self.hosts or target + there in self.listening or source + here in self.listening
