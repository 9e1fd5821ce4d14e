"""What listens as a Dask scheduler and answers as it likes: pickles that run something, and anything else.

It speaks Dask's frames over a plain socket, in threads of the test.
"""

from __future__ import annotations

import os
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import msgpack
from distributed.comm.tcp import _add_frames_header
from distributed.protocol import Serialize, dumps
from distributed.protocol.serialize import Serialized, ToPickle

WORKER = "tcp://127.0.0.1:9"
HANDSHAKE = {"compression": None, "python": (3, 11, 0), "pickle-protocol": 5}
Answer = Callable[[str, dict[str, Any]], Any]
"""Of an operation and its message: what is sent, NOTHING, or USUAL for what a scheduler would say."""

USUAL, NOTHING = object(), object()


class Evil:
    """Whoever loads its pickle makes a directory: that of the mark."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.mark),)


def pickled(mark: Path) -> Any:
    """As Dask sends what msgpack cannot hold."""
    return ToPickle(Evil(mark))


def serialized(mark: Path) -> Any:
    """As Dask sends results, by the serializer that loads pickles."""
    return Serialize(Evil(mark))


def typed(mark: Path) -> Any:
    """As Dask sends results of types that it knows: the type itself is a pickle."""
    import pickle

    header = {
        "serializer": "dask",
        "type": "x",
        "type-serialized": pickle.dumps(Evil(mark)),
        "sub-header": {},
    }
    return Serialized(header, [b"x"])


def loose(mark: Path) -> bytes:
    """A pickle as plain bytes, as Dask sends exceptions."""
    import pickle

    return pickle.dumps(Evil(mark))


@contextmanager
def hostile_scheduler(answer: Answer, handshake: Any = HANDSHAKE) -> Iterator[str]:
    """Its address. It knows one worker, `alpha`."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=_accept, args=(server, answer, handshake), daemon=True).start()
        yield f"tcp://127.0.0.1:{server.getsockname()[1]}"
        with suppress(OSError):
            server.shutdown(socket.SHUT_RDWR)


def _accept(server: socket.socket, answer: Answer, handshake: Any) -> None:
    with suppress(OSError):
        while True:
            connection, _ = server.accept()
            threading.Thread(target=_serve, args=(connection, answer, handshake), daemon=True).start()


def _serve(connection: socket.socket, answer: Answer, handshake: Any) -> None:
    with connection, suppress(OSError, EOFError):
        _send(connection, handshake)
        _receive(connection)
        while True:
            message = _receive(connection)
            for one in message if isinstance(message, list) else [message]:
                found = answer(str(one.get("op")), one)
                if found is USUAL:
                    found = usual(str(one.get("op")), one)
                if found is not NOTHING:
                    _send(connection, found)


def usual(op: str, message: dict[str, Any]) -> Any:
    """What a scheduler says."""
    if op == "identity":
        return {"type": "Scheduler", "id": "s", "address": "x", "workers": {WORKER: {"name": "alpha"}}}
    if op == "register-client":
        return [{"op": "stream-start"}]
    if op == "broadcast":
        versions = {"packages": {"python": "3.11.2.final.0", "leadline": None}, "host": {}}
        return {WORKER: versions if message["msg"]["op"] == "versions" else {"status": "OK", "result": None}}
    return NOTHING


def _send(connection: socket.socket, message: Any) -> None:
    if isinstance(message, bytes):  # frames as they are
        connection.sendall(message)
        return
    frames, _, _ = _add_frames_header(dumps(message))
    connection.sendall(b"".join(map(bytes, frames)))


def _receive(connection: socket.socket) -> Any:
    whole = _exactly(connection, *struct.unpack("Q", _exactly(connection, 8)))
    (count,) = struct.unpack_from("Q", whole)
    lengths = struct.unpack_from(f"{count}Q", whole, 8)
    start = 8 * (1 + count)
    missing = max(0, start + sum(lengths) - len(whole))
    whole += _exactly(connection, missing)
    return msgpack.unpackb(whole[start : start + lengths[0]], strict_map_key=False)


def _exactly(connection: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        piece = connection.recv(count - len(data))
        if not piece:
            raise EOFError
        data += piece
    return data
