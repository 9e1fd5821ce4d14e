"""Where the servers of targets listen, and which TCP connections are therefore theirs.

Others of the same host say nothing of a target: a session to a laptop that sleeps loses packets, too.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass, field

_ADDRESS_BYTES, _PORT_BYTES = 16, 2
_MAPPED = bytes(10) + b"\xff\xff"  # of an IPv4 address in a socket of IPv6 (RFC 4291, 2.5.5.2)

ServerEnd = tuple[str, int | None]  # an IP address, and a port where that is known


def _packed(address: str) -> bytes:
    """As the kernel has it in a socket's identity: 16 bytes, of IPv4 the first four."""
    return _plain(ipaddress.ip_address(address).packed.ljust(_ADDRESS_BYTES, b"\0"))


def _plain(address: bytes) -> bytes:
    return address[12:].ljust(_ADDRESS_BYTES, b"\0") if address.startswith(_MAPPED) else address


@dataclass(frozen=True)
class ServerEnds:
    """Built by `of`; without a server no connection is one of its."""

    listening: frozenset[bytes] = field(default=frozenset())
    hosts: frozenset[bytes] = field(default=frozenset())

    @classmethod
    def of(cls, ends: Iterable[ServerEnd]) -> ServerEnds:
        """Those at these ends, and of an end without a port all connections to its host.

        A name is left out.
        """
        listening, hosts = set[bytes](), set[bytes]()
        for address, port in ends:
            try:
                packed = _packed(address)
            except ValueError:
                continue
            if port is None:
                hosts.add(packed)
            else:
                listening.add(port.to_bytes(_PORT_BYTES, "big") + packed)
        return cls(frozenset(listening), frozenset(hosts))

    def has(self, ends: bytes) -> bool:
        """Whether a connection is one of theirs: its ports and addresses, as sock_diag(7) has them."""
        source, target = ends[0:2], ends[2:4]
        here, there = _plain(ends[4:20]), _plain(ends[20:36])
        return there in self.hosts or target + there in self.listening or source + here in self.listening
