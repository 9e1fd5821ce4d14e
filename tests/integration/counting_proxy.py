"""A proxy before a server that counts connections, and XRootD requests without an answer by their headers.

A request has 24 bytes, the last four of which say how much data follows; an answer has 8, likewise.
The first 20 bytes of a connection are its handshake, which has an answer too (XRootD protocol, version 5).
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

_HANDSHAKE_BYTES, _REQUEST_BYTES, _ANSWER_BYTES = 20, 24, 8
# An answer waits until so many requests are open, but not for ever.
_PATIENCE_S = 0.3


@dataclass
class Frames:
    """Counts messages in a stream of headers and data, and by `kinds` what they ask for."""

    header_bytes: int
    kinds: Counter[int] = field(default_factory=Counter)
    count: int = 0
    rest: bytes = b""
    skip: int = 0

    def feed(self, data: bytes) -> None:
        data = self.rest + data
        while data:
            skipped = min(self.skip, len(data))
            data, self.skip = data[skipped:], self.skip - skipped
            if self.skip or len(data) < self.header_bytes:
                break
            self.kinds[int.from_bytes(data[2:4], "big")] += 1
            self.skip = int.from_bytes(data[self.header_bytes - 4 : self.header_bytes], "big")
            data = data[self.header_bytes :]
            self.count += 1
        self.rest = data


@dataclass
class CountingProxy:
    """`most` is the largest number of requests open at a time, `most_connections` of connections; `asked`
    counts requests by their number in the protocol."""

    server_port: int
    hold_for: int
    listener: socket.socket = field(default_factory=lambda: socket.create_server(("127.0.0.1", 0)))
    most: int = 0
    connections: int = 0
    most_connections: int = 0
    asked: Counter[int] = field(default_factory=Counter)
    _counting: threading.Lock = field(default_factory=threading.Lock)

    @property
    def port(self) -> int:
        return int(self.listener.getsockname()[1])

    def serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                server = socket.create_connection(("127.0.0.1", self.server_port))
                self._count(1)
                requests = Frames(_REQUEST_BYTES, self.asked, skip=_HANDSHAKE_BYTES)
                answers = Frames(_ANSWER_BYTES)
                for work in (
                    lambda c=client, s=server, r=requests: self._ask(c, s, r),
                    lambda c=client, s=server, r=requests, a=answers: self._answer(c, s, r, a),
                ):
                    threading.Thread(target=work, daemon=True).start()

    def _count(self, change: int) -> None:
        with self._counting:
            self.connections += change
            self.most_connections = max(self.most_connections, self.connections)

    def _ask(self, client: socket.socket, server: socket.socket, requests: Frames) -> None:
        with contextlib.suppress(OSError):
            while data := client.recv(1 << 20):
                requests.feed(data)
                server.sendall(data)
        self._count(-1)
        with contextlib.suppress(OSError):
            server.shutdown(socket.SHUT_WR)

    def _answer(
        self, client: socket.socket, server: socket.socket, requests: Frames, answers: Frames
    ) -> None:
        with contextlib.suppress(OSError):
            while data := server.recv(1 << 20):
                end = time.monotonic() + _PATIENCE_S
                # The handshake's answer is one more than there are requests.
                while (
                    still := requests.count + 1 - answers.count
                ) < self.hold_for and time.monotonic() < end:
                    time.sleep(0.001)
                self.most = max(self.most, still)
                answers.feed(data)
                client.sendall(data)
        with contextlib.suppress(OSError):
            client.shutdown(socket.SHUT_WR)


@contextlib.contextmanager
def counting_proxy(server_port: int, hold_for: int) -> Iterator[CountingProxy]:
    """A proxy that holds answers back until `hold_for` requests are open; of a server other than XRootD 0."""
    proxy = CountingProxy(server_port, hold_for)
    threading.Thread(target=proxy.serve, daemon=True).start()
    try:
        yield proxy
    finally:
        proxy.listener.close()
