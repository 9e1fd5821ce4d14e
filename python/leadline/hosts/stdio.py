"""`python -m leadline.hosts.stdio`: answers calls on its standard streams, for a command that came by SSH.

It says in one line which versions are here. Then each call is a frame: its number, the size, and a name with
arguments; each answer has the number of its call. It ends when its input does, or when nobody has called for
`SILENT_S`; a session on this host ends with it.
"""

from __future__ import annotations

import json
import os
import platform
import struct
import threading
import time
from dataclasses import fields
from typing import BinaryIO

from leadline import _core
from leadline.hosts.replies import pack_reply

GREETING = b"leadline-hosts/1 "
HEADER = struct.Struct(">QQ")  # number of the call, bytes that follow
CALL_BYTES_MAX = 256 << 20  # a manifest with its plan
SILENT_S = 900.0  # a command calls at least once a minute
_LOOK_S = 5.0


class CallServer:
    """Reads calls, and answers each in a thread of its own, for as long as it takes."""

    def __init__(self, incoming: BinaryIO, outgoing: BinaryIO) -> None:
        self._incoming, self._outgoing = incoming, outgoing
        self._writing = threading.Lock()
        self._heard_s = time.monotonic()

    def greet(self, **more: str) -> None:
        """Say what is here. A line of its own: what a login shell prints may stand before it."""
        versions = {"python": platform.python_version(), "leadline": _core.version(), **more}
        self._write(b"\n" + GREETING + json.dumps(versions).encode() + b"\n")

    def serve(self) -> None:
        """Until the input ends."""
        threading.Thread(target=self._watch, name="leadline-silence", daemon=True).start()
        while len(header := self._incoming.read(HEADER.size)) == HEADER.size:
            number, size = HEADER.unpack(header)
            data = self._incoming.read(size) if size <= CALL_BYTES_MAX else b""
            if len(data) < size:
                return
            self._heard_s = time.monotonic()
            threading.Thread(target=self._answer, args=(number, data), daemon=True).start()

    def _answer(self, number: int, data: bytes) -> None:
        import msgpack  # type: ignore[import-untyped]

        from leadline.hosts.worker_rpc import Remote, answered, remote

        name, arguments = msgpack.unpackb(data, unicode_errors="surrogateescape", strict_map_key=False)
        known = name in {field.name for field in fields(Remote)}
        answer = (
            answered(getattr(remote(), name), arguments) if known else {"refused": f"{name!r} is no call"}
        )
        whole = pack_reply(answer)
        self._write(HEADER.pack(number, len(whole)) + whole)

    def _write(self, data: bytes) -> None:
        with self._writing:
            self._outgoing.write(data)
            self._outgoing.flush()

    def _watch(self) -> None:
        while time.monotonic() < self._heard_s + SILENT_S:
            time.sleep(_LOOK_S)
        os._exit(1)  # whoever was to call is gone, and its network did not say so


def own_streams() -> CallServer:
    """What answers on the streams that this process was given; what prints in it goes to standard error."""
    incoming, outgoing = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    os.close(nothing)
    return CallServer(incoming, outgoing)


def main() -> None:
    """Serve until the input ends."""
    server = own_streams()
    try:
        server.greet()
        server.serve()
    except BrokenPipeError:
        pass
    finally:
        os._exit(0)  # no wait for a call that lasts; a session ends as its pipe closes


if __name__ == "__main__":
    main()
