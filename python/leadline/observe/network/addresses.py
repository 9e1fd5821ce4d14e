"""The addresses of this host's network interfaces, from the kernel's table (rtnetlink(7))."""

from __future__ import annotations

import contextlib
import os
import socket
import struct
from collections.abc import Iterator

from leadline.observe.network.socket_table import parse_messages

_NETLINK_ROUTE = 0
_GET_ADDRESS, _NEW_ADDRESS = 22, 20
_REQUEST_DUMP = 0x301
_MESSAGE_ERROR, _MESSAGE_DONE = 2, 3
_BODY_BYTES = 8  # struct ifaddrmsg (linux/if_addr.h)
_ADDRESS, _LOCAL = 1, 2  # of a point-to-point link `address` is the other end
_DEADLINE_S = 1.0


def host_interfaces() -> dict[str, list[str]]:
    """Addresses by interface. Raises OSError where the kernel does not say."""
    found: dict[str, list[str]] = {}
    head = struct.pack("=IHHII", 17, _GET_ADDRESS, _REQUEST_DUMP, 1, 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_ROUTE) as kernel:
        kernel.settimeout(_DEADLINE_S)
        kernel.send(head + struct.pack("=B", socket.AF_UNSPEC))
        for kind, payload in _answer(kernel):
            entry = parse_address(payload) if kind == _NEW_ADDRESS else None
            if entry is not None:
                with contextlib.suppress(OSError):  # an interface that is gone by now
                    found.setdefault(socket.if_indextoname(entry[0]), []).append(entry[1])
    return found


def _answer(kernel: socket.socket) -> Iterator[tuple[int, bytes]]:
    while True:
        for kind, payload in parse_messages(kernel.recv(1 << 16)):
            if kind == _MESSAGE_DONE:
                return
            if kind == _MESSAGE_ERROR:
                (code,) = struct.unpack_from("=i", payload)
                raise OSError(-code, os.strerror(-code))
            yield kind, payload


def parse_address(payload: bytes) -> tuple[int, str] | None:
    """The number of an interface and one address of its own; None for what is no IP address."""
    if len(payload) < _BODY_BYTES:
        return None
    family, index = struct.unpack_from("=BxxxI", payload)
    if family not in (socket.AF_INET, socket.AF_INET6):
        return None
    length_of = 4 if family == socket.AF_INET else 16
    found: dict[int, str] = {}
    place = _BODY_BYTES
    while place + 4 <= len(payload):
        length, kind = struct.unpack_from("=HH", payload, place)
        value = payload[place + 4 : place + length]
        if kind in (_ADDRESS, _LOCAL) and len(value) == length_of:
            found[kind] = socket.inet_ntop(family, value)
        place += max((length + 3) & ~3, 4)
    address = found.get(_LOCAL, found.get(_ADDRESS))
    return None if address is None else (index, address)
