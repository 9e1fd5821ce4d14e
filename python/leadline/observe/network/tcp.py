"""Samples TCP connections to the targets' servers, and the bytes of the worker's own.

Connections are looked at here and in networks of servers here (a lab's hosts). If the servers' addresses are
unknown, there are no samples of this host. A library's worker is counted exactly, by its sockets.
"""

from __future__ import annotations

import contextlib
import ipaddress
import os
import struct
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from leadline.observe.network.interfaces import WIRE
from leadline.observe.network.sockets import (
    OWN,
    EndedSockets,
    SocketBytes,
    SocketInfo,
    entered,
    socket_infos,
    sockets_of,
    tcp_sockets,
)
from leadline.observe.reading import Counters, Request, Row, missing

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


_ESTABLISHED = 1
# Offsets in struct tcp_info (linux/tcp.h); the last of them came with Linux 4.10.
_IN_A_ROW, _RTT, _SENT_AGAIN, _SEGMENTS, _RTT_LEAST, _BUSY = 2, 68, 100, 136, 148, 168
_INFO_BYTES = 192


@dataclass(frozen=True)
class TcpConnection:
    """One connection at a moment: times in s, counts since it began.

    `in_a_row` segments were sent again for lack of an answer, since the last one that came; `busy_s` it had
    something to send, `window_s` of that the receiver had no room, `buffer_s` its own buffer was too small.
    `rtt_s` is smoothed and includes delayed acknowledgements (up to 40 ms); `rtt_least_s` is the minimum of
    five minutes (net.ipv4.tcp_min_rtt_wlen).
    """

    cookie: int
    in_a_row: int
    rtt_s: float
    rtt_least_s: float
    sent_segments: int
    sent_again: int
    busy_s: float
    window_s: float
    buffer_s: float


def connection(one: SocketInfo) -> TcpConnection | None:
    """An established connection; None of any other socket, and where the kernel says too little."""
    info = one.info
    if len(info) < _INFO_BYTES or info[0] != _ESTABLISHED:
        return None
    (rtt_us,) = struct.unpack_from("=I", info, _RTT)
    (least_us,) = struct.unpack_from("=I", info, _RTT_LEAST)
    (again,) = struct.unpack_from("=I", info, _SENT_AGAIN)
    (segments,) = struct.unpack_from("=I", info, _SEGMENTS)
    busy_us, window_us, buffer_us = struct.unpack_from("=QQQ", info, _BUSY)
    return TcpConnection(
        one.cookie,
        info[_IN_A_ROW],
        rtt_us / 1e6,
        least_us / 1e6,
        segments,
        again,
        busy_us / 1e6,
        window_us / 1e6,
        buffer_us / 1e6,
    )


def connections(servers: ServerEndpoints | None = None) -> dict[int, TcpConnection]:
    """The established connections of this thread's network namespace, by the kernel's cookie.

    Those to and from these servers, or all. Raises OSError where the table cannot be read.
    """
    known = (connection(one) for one in socket_infos() if servers is None or servers.has(one.identity))
    return {one.cookie: one for one in known if one is not None}


def growth(
    before: Mapping[int, TcpConnection], now: Collection[TcpConnection], elapsed_s: float
) -> Iterator[tuple[str, float, str]]:
    """Metric, value and unit of all connections together, each weighted by what it carried meanwhile."""
    old = [(before[one.cookie], one) for one in now if one.cookie in before]
    segments = [max(new.sent_segments - then.sent_segments, 0) for then, new in old]
    busy = sum(max(new.busy_s - then.busy_s, 0.0) for then, new in old)
    yield "connections", float(len(now)), "count"
    yield "new_connections", (len(now) - len(old)) / elapsed_s, "1/s"
    yield "unanswered", float(max((one.in_a_row for one in now), default=0)), "count"
    again = sum(max(new.sent_again - then.sent_again, 0) for then, new in old)
    yield "segments_again", again / elapsed_s, "1/s"
    if sum(segments):
        sent = [(count / sum(segments), new) for count, (_, new) in zip(segments, old, strict=True)]
        yield "round_trip", sum(part * new.rtt_s for part, new in sent) * 1e3, "ms"
        yield "round_trip_least", sum(part * new.rtt_least_s for part, new in sent) * 1e3, "ms"
    if busy > 0:
        waited = sum(max(new.window_s - then.window_s, 0.0) for then, new in old)
        filled = sum(max(new.buffer_s - then.buffer_s, 0.0) for then, new in old)
        yield "receiver_full", min(waited / busy, 1.0), "share"
        yield "sender_full", min(filled / busy, 1.0), "share"


SOURCE = "tcp"
HERE = "here"
TCP_PERIOD_S = 2.0  # a look costs some 20 us a connection, and an OSD has dozens
_LOOK_AGAIN = 5  # samples until networks are looked for anew


class TcpReader:
    """Each network as a subject: `here`, or the first daemon in it. Without root only `here`.

    `daemons` are the servers' processes here, `endpoints` those of all servers. In a network of daemons every
    connection counts.
    """

    name = "the TCP connections"

    def __init__(
        self,
        daemons: Callable[[], Mapping[int, str]],
        endpoints: Callable[[], Iterable[ServerEndpoint]],
        proc: Path = Path("/proc"),
    ) -> None:
        self._daemons, self._endpoints, self._proc = daemons, endpoints, proc
        self._networks: dict[str, str] = {}
        self._before: dict[str, tuple[int, dict[int, TcpConnection]]] = {}
        self._known = ServerEndpoints()
        self._looks = 0

    def sample(self, now_ns: int, /) -> list[Row]:
        """Connections, new ones, round trip, segments sent again, and what senders waited for."""
        if (
            self._looks % _LOOK_AGAIN == 0 or self._known == ServerEndpoints()
        ):  # clusters answer a moment later
            self._networks = self._found()
        self._looks += 1
        rows: list[Row] = []
        for subject, network in self._networks.items():
            before = self._before.pop(subject, None)
            # A network may go while it is looked at, and without root no other can be entered.
            with suppress(OSError):
                now = self._look(network)
                self._before[subject] = (now_ns, now)
                if before is not None and now_ns > before[0]:
                    rows += self._rows(subject, before[1], now, (now_ns - before[0]) / 1e9)
        return rows

    def counters(self, _request: Request, /) -> Counters:
        """Nothing: no figure of a trial is made from it."""
        return Counters()

    def _found(self) -> dict[str, str]:
        own = os.stat(OWN).st_ino  # noqa: PTH116 - the kernel's own file
        self._known = ServerEndpoints.of(self._endpoints())
        networks, seen = {HERE: ""} if self._known != ServerEndpoints() else {}, {own}
        for pid, name in sorted(self._daemons().items(), key=lambda pair: pair[1]):
            path = self._proc / str(pid) / "ns" / "net"
            with suppress(OSError):
                inode = path.stat().st_ino
                if inode not in seen:
                    seen.add(inode)
                    networks[name] = str(path)
        return networks

    def _look(self, network: str) -> dict[int, TcpConnection]:
        if not network:
            return connections(self._known)
        with entered(network):
            return connections()

    @staticmethod
    def _rows(
        subject: str, before: Mapping[int, TcpConnection], now: Mapping[int, TcpConnection], elapsed_s: float
    ) -> Iterator[Row]:
        for metric, value, unit in growth(before, now.values(), elapsed_s):
            yield (SOURCE, subject, metric, value, unit)


SOCKETS_PERIOD_S = 0.2
_LAST_WAIT_S = 0.05  # the kernel tells of a socket's end a moment after it
_LOOKS_MIN = 5  # in a trial that is shorter, a socket may have come and gone between two looks


class SocketReader:
    """The worker's sockets as a source. Those that live for less than a period may be missed."""

    name = "the worker's sockets"

    def __init__(self) -> None:
        self._pid: int | None = None
        self._seen: dict[int, SocketBytes] = {}
        self._ended: EndedSockets | None = None
        self._why: str | None = None
        self._looks, self._strangers = 0, 0
        self._others: set[int] = set()
        try:
            self._ended = EndedSockets()
        except OSError as error:
            self._why = f"sockets cannot be followed to their end: {error.strerror}"

    def sample(self, _now_ns: int, /) -> list[Row]:
        """No rows: it only keeps up with sockets that come and go."""
        if self._pid is not None:
            with contextlib.suppress(OSError):
                self._look(0.0)
        return []

    def counters(self, request: Request) -> Counters:
        """Bytes of every socket that the worker has had since its first mark."""
        if request.pid is None:
            return missing(WIRE, "no worker process was named")
        if request.pid != self._pid:
            if self._ended is not None:
                self._ended.take()  # of sockets that ended before
            self._pid, self._seen, self._looks, self._strangers = request.pid, {}, 0, 0
            self._others = set()
        if self._why is None:
            try:
                self._look(_LAST_WAIT_S)
            except OSError as error:
                return missing(WIRE, f"the kernel's table of sockets cannot be read: {error.strerror}")
        if self._ended is not None and self._ended.overrun:
            self._why = "sockets ended faster than they could be counted"
        why = self._why or self._too_few_looks()
        if why is not None:
            return missing(WIRE, why)
        totals = self._seen.values()
        values = {
            WIRE[0]: sum(one.sent_bytes for one in totals),
            WIRE[1]: sum(one.received_bytes for one in totals),
        }
        source = f"TCP sockets of process {self._pid} (of one that was reset up to the last look)"
        return Counters(values, dict.fromkeys(WIRE, source))

    def _too_few_looks(self) -> str | None:
        """Why a count would be too low: sockets ended that no look had seen, and few looks were taken.

        The first mark is a look, too, and comes before the worker connects.
        """
        if self._looks == 1 or self._looks > _LOOKS_MIN or (self._seen and not self._strangers):
            return None
        return f"too short: {self._looks - 1} looks at the worker's sockets, which may live for less than one"

    def _look(self, wait_s: float) -> None:
        self._looks += 1
        living = {one.cookie: one for one in tcp_sockets()}
        self._others &= living.keys()
        new = living.keys() - self._seen.keys() - self._others
        # A library has sixty threads, each with a table of open files: read for new sockets only, and
        # after these were found, so that none of the worker's is taken for another's.
        own = sockets_of(self._pid or 0) if new else set()
        self._others |= {cookie for cookie in new if living[cookie].inode not in own}
        self._seen.update({cookie: one for cookie, one in living.items() if cookie not in self._others})
        gone = set(self._seen) - set(living)
        while self._ended is not None:
            ended = self._ended.take(wait_s if gone else 0.0)
            for one in ended:
                before = self._seen.get(one.cookie)
                if before is None:
                    self._strangers += 1
                    continue
                gone.discard(one.cookie)
                if one.sent_bytes >= before.sent_bytes:
                    self._seen[one.cookie] = one
                # A connection that was reset has lost its counts: those of the last look stand.
            if not ended:
                return
