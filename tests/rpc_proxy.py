"""Stands between an NFS client and its server, and counts the calls that are in flight on a connection.

Calls and answers follow each other as records (RFC 5531, 11): a word with the length, its highest bit
set on the last fragment.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager

# Answers with data: those of a mount and of an open are shorter, and are never held back.
DATA_BYTES = 8192
PATIENCE_S = 10.0


class Proxy:
    """What was seen. Answers with data wait until `together` calls are in flight at once."""

    def __init__(self, server: tuple[str, int]) -> None:
        self.server = server
        self.together = 1
        self.most_at_once = 0
        self.answers = 0
        self._in_flight: dict[int, int] = {}
        self._changed = threading.Condition()
        self._sockets: list[socket.socket] = []

    def cut(self) -> None:
        """End all connections."""
        for one in self._sockets:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def carry(self, client: socket.socket, number: int) -> None:
        """Both directions of one connection, until either end closes."""
        server = socket.create_connection(self.server, timeout=PATIENCE_S)
        server.settimeout(None)
        self._sockets += [client, server]
        back = threading.Thread(target=self._answers, args=(server, client, number), daemon=True)
        back.start()
        for record in _records(client):
            with self._changed:
                self._in_flight[number] = self._in_flight.get(number, 0) + 1
                self.most_at_once = max(self.most_at_once, self._in_flight[number])
                self._changed.notify_all()
            with contextlib.suppress(OSError):
                server.sendall(record)
        with contextlib.suppress(OSError):
            server.shutdown(socket.SHUT_RDWR)
        back.join(PATIENCE_S)
        server.close()
        client.close()

    def _answers(self, server: socket.socket, client: socket.socket, number: int) -> None:
        for record in _records(server):
            with self._changed:
                if len(record) > DATA_BYTES:
                    self._changed.wait_for(lambda: self.most_at_once >= self.together, PATIENCE_S)
                self._in_flight[number] -= 1
                self.answers += 1
            try:
                client.sendall(record)
            except OSError:
                return


def _records(source: socket.socket) -> Iterator[bytes]:
    """Whole records, with their words of length."""
    record = b""
    while True:
        head = _exactly(source, 4)
        if head is None:
            return
        (word,) = struct.unpack(">I", head)
        body = _exactly(source, word & 0x7FFFFFFF)
        if body is None:
            return
        record += head + body
        if word & 0x80000000:
            yield record
            record = b""


def _exactly(source: socket.socket, count: int) -> bytes | None:
    found = b""
    while len(found) < count:
        try:
            part = source.recv(count - len(found))
        except OSError:
            return None
        if not part:
            return None
        found += part
    return found


@contextmanager
def between(server: tuple[str, int]) -> Iterator[tuple[Proxy, int]]:
    """A proxy before `server`, and its port on this host."""
    proxy = Proxy(server)
    listener = socket.create_server(("127.0.0.1", 0))

    def accept() -> None:
        number = 0
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            number += 1
            threading.Thread(target=proxy.carry, args=(client, number), daemon=True).start()

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield proxy, listener.getsockname()[1]
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        proxy.cut()
        thread.join(PATIENCE_S)
