"""What the kernel says of each TCP connection (struct tcp_info), and the growth of that between two looks."""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from leadline.observe.network.endpoints import ServerEndpoints
from leadline.observe.network.socket_table import SocketInfo, socket_infos

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
