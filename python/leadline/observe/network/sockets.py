"""The kernel's table of TCP sockets by netlink (sock_diag(7)), here or in another network namespace."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_NETLINK_SOCK_DIAG = 4
_SOCK_DIAG_BY_FAMILY = 20
_NLMSG_ERROR, _NLMSG_DONE = 2, 3
_REQUEST_DUMP = 0x301
_INFO_ATTRIBUTE = 2  # INET_DIAG_INFO: a struct tcp_info
_ALL_STATES = 0xFFFFFFFF
# Offsets in struct inet_diag_msg and struct tcp_info (linux/inet_diag.h, linux/tcp.h).
_IDENTITY, _COOKIE, _INODE, _MESSAGE_BYTES = slice(4, 40), 44, 68, 72
_BYTES_ACKED, _BYTES_RECEIVED = 120, 128
_SOL_NETLINK, _ADD_MEMBERSHIP = 270, 1
_DESTROYED = (1, 3)  # multicast groups: TCP sockets that end, IPv4 and IPv6
_EVENTS_BUFFER_BYTES = 4 << 20
_DEADLINE_S = 1.0


@dataclass(frozen=True)
class SocketBytes:
    """What a socket has carried so far. `inode` is 0 once no process has it open."""

    cookie: int
    inode: int
    sent_bytes: int
    received_bytes: int


def parse_messages(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Type and payload of each netlink message."""
    place = 0
    while place + 16 <= len(data):
        length, kind = struct.unpack_from("=IH", data, place)
        if length < 16:
            return
        yield kind, data[place + 16 : place + length]
        place += (length + 3) & ~3


@dataclass(frozen=True)
class SocketInfo:
    """A socket and the kernel's struct tcp_info of it, empty where it gave none.

    `identity`: local and remote port, local and remote address, as the kernel has them (36 bytes).
    """

    cookie: int
    inode: int
    info: bytes
    identity: bytes = bytes(36)


def parse_info(payload: bytes) -> SocketInfo | None:
    """One socket of the table; None of what is too short to be one."""
    if len(payload) < _MESSAGE_BYTES:
        return None
    (cookie,) = struct.unpack_from("=Q", payload, _COOKIE)
    (inode,) = struct.unpack_from("=I", payload, _INODE)
    place = _MESSAGE_BYTES
    while place + 4 <= len(payload):
        length, kind = struct.unpack_from("=HH", payload, place)
        if kind == _INFO_ATTRIBUTE:
            return SocketInfo(cookie, inode, payload[place + 4 : place + length], payload[_IDENTITY])
        place += max((length + 3) & ~3, 4)
    return SocketInfo(cookie, inode, b"", payload[_IDENTITY])


def parse_socket(payload: bytes) -> SocketBytes | None:
    """One socket; None where the kernel gave no counts of it (one that only waits, or listens)."""
    found = parse_info(payload)
    if found is None or len(found.info) < _BYTES_RECEIVED + 8:
        return None
    sent, received = struct.unpack_from("=QQ", found.info, _BYTES_ACKED)
    return SocketBytes(found.cookie, found.inode, sent, received)


def tcp_sockets() -> list[SocketBytes]:
    """Every TCP socket of this network namespace."""
    return [found for payload in _payloads() if (found := parse_socket(payload)) is not None]


def socket_infos() -> list[SocketInfo]:
    """Every TCP socket of this thread's network namespace, with what the kernel says of it."""
    return [found for payload in _payloads() if (found := parse_info(payload)) is not None]


def _payloads() -> Iterator[bytes]:
    for family in (socket.AF_INET, socket.AF_INET6):
        yield from _dump(family)


def _dump(family: int) -> Iterator[bytes]:
    body = struct.pack("=BBBBI48x", family, socket.IPPROTO_TCP, 1 << (_INFO_ATTRIBUTE - 1), 0, _ALL_STATES)
    head = struct.pack("=IHHII", 16 + len(body), _SOCK_DIAG_BY_FAMILY, _REQUEST_DUMP, 1, 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_SOCK_DIAG) as kernel:
        kernel.settimeout(_DEADLINE_S)
        kernel.send(head + body)
        while True:
            for kind, payload in parse_messages(kernel.recv(1 << 16)):
                if kind == _NLMSG_DONE:
                    return
                if kind == _NLMSG_ERROR:
                    (code,) = struct.unpack_from("=i", payload)
                    raise OSError(-code, os.strerror(-code))
                if kind == _SOCK_DIAG_BY_FAMILY:
                    yield payload


class EndedSockets:
    """Hears of TCP sockets that end, with their last counts. Raises OSError where this user may not."""

    def __init__(self) -> None:
        self._kernel = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_SOCK_DIAG)
        try:
            self._kernel.bind((0, 0))
            for group in _DESTROYED:
                self._kernel.setsockopt(_SOL_NETLINK, _ADD_MEMBERSHIP, group)
        except OSError:
            self._kernel.close()
            raise
        self._kernel.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _EVENTS_BUFFER_BYTES)
        self._kernel.setblocking(False)
        self.overrun = False

    def take(self, wait_s: float = 0.0) -> list[SocketBytes]:
        """Those that ended since the last call; waits for the first at most so long."""
        found: list[SocketBytes] = []
        self._kernel.settimeout(wait_s or 0.0)
        while True:
            try:
                data = self._kernel.recv(1 << 16)
            except (BlockingIOError, TimeoutError):
                return found
            except OSError as error:
                if error.errno != errno.ENOBUFS:
                    raise
                self.overrun = True
                continue
            self._kernel.settimeout(0.0)
            found += [one for _, payload in parse_messages(data) if (one := parse_socket(payload))]


def sockets_of(pid: int, proc: Path = Path("/proc")) -> set[int]:
    """Inodes of the sockets that a process has open; empty where it is gone or not ours to see.

    Each thread is asked: the engine's have tables of open files of their own.
    """
    inodes: set[int] = set()
    with contextlib.suppress(OSError):
        for task in (proc / str(pid) / "task").iterdir():
            inodes |= sockets_in(task / "fd")
    return inodes


def sockets_in(directory: Path) -> set[int]:
    """Inodes of the sockets in one table of open files; empty where it is gone or not ours to see."""
    inodes = set()
    with contextlib.suppress(OSError):
        for entry in directory.iterdir():
            with contextlib.suppress(OSError):
                link = os.readlink(entry)  # noqa: PTH115 - a link into the kernel, no path
                if link.startswith("socket:["):
                    inodes.add(int(link[len("socket:[") : -1]))
    return inodes


PROC = Path("/proc")
_LISTENS = "0A"  # TCP_LISTEN in /proc/net/tcp (proc(5))


def listeners(port: int, proc: Path = PROC) -> frozenset[int]:
    """Processes that hold a socket listening on this TCP port; none where they are not ours to see."""
    inodes = listening(port, proc / "net")
    if not inodes:
        return frozenset()
    pids = (int(entry.name) for entry in proc.iterdir() if entry.name.isdigit())
    return frozenset(pid for pid in pids if inodes & sockets_in(proc / str(pid) / "fd"))


def listening(port: int, net: Path) -> set[int]:
    """The sockets (inodes) that listen on a port, in the network whose tables are at `net`."""
    found: set[int] = set()
    for table in ("tcp", "tcp6"):
        with contextlib.suppress(OSError):
            for line in (net / table).read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == _LISTENS and int(fields[1].rpartition(":")[2], 16) == port:
                    found.add(int(fields[9]))
    return found


_CLONE_NEWNET = 0x40000000
_OPEN = os.O_RDONLY | os.O_CLOEXEC
OWN = "/proc/thread-self/ns/net"


@contextmanager
def entered(namespace: str, flags: int = 0) -> Iterator[None]:
    """This thread in the network namespace of that file, opened with `flags`, too.

    Raises OSError where there is none, or this is not root.
    """
    library = ctypes.CDLL(None, use_errno=True)
    with _opened(OWN, _OPEN) as own, _opened(namespace, _OPEN | flags) as there:
        _enter(library, there, namespace)
        try:
            yield
        finally:
            _enter(library, own, OWN)


def _enter(library: ctypes.CDLL, descriptor: int, name: str) -> None:
    if library.setns(descriptor, _CLONE_NEWNET):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), name)


@contextmanager
def _opened(path: str, flags: int) -> Iterator[int]:
    descriptor = os.open(path, flags)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
