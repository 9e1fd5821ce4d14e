"""Whose a connection over loopback is: the kernel's table of TCP sockets has the account of both its ends."""

from __future__ import annotations

import ipaddress
import struct
from pathlib import Path

_TABLES = ("tcp", "tcp6")  # a socket of IPv6 may speak to an address of IPv4
_LOCAL, _REMOTE, _ACCOUNT = 1, 2, 7  # columns, see proc_pid_net(5)


def account_of(peer: tuple[str, int], own: tuple[str, int], net: Path = Path("/proc/net")) -> int | None:
    """The account at the other end of a connection, by both its addresses.

    None where the kernel does not show its table. A connection that is not in it is nobody's: -1.
    """
    wanted, seen = (_plain(peer), _plain(own)), False
    for table in _TABLES:
        try:
            lines = (net / table).read_text().splitlines()[1:]
        except OSError:
            continue
        seen = True
        for columns in (line.split() for line in lines):
            if (_parsed(columns[_LOCAL]), _parsed(columns[_REMOTE])) == wanted:
                return int(columns[_ACCOUNT])
    return -1 if seen else None


def _plain(address: tuple[str, int]) -> tuple[bytes, int]:
    return _mapped(ipaddress.ip_address(address[0]).packed), address[1]


def _parsed(text: str) -> tuple[bytes, int]:
    """`0100007F:1F90`: words of 32 bits in this machine's order, and the port."""
    digits, _, port = text.partition(":")
    words = [int(digits[place : place + 8], 16) for place in range(0, len(digits), 8)]
    return _mapped(struct.pack(f"={len(words)}I", *words)), int(port, 16)


def _mapped(packed: bytes) -> bytes:
    """An address of IPv4 as IPv6 writes it."""
    return packed if len(packed) == 16 else bytes(10) + b"\xff\xff" + packed
