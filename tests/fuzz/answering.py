"""Servers that answer with the fuzzer's bytes: whole, short, late or doubled."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import socket
import struct
import threading
import time
from collections.abc import Callable
from pathlib import Path

_LATE_S = 0.02
_HELD_MAX = 1 << 20
_DEATHS = (signal.SIGSEGV, signal.SIGABRT)  # of libnfs
Ask = Callable[[socket.socket], bytes | None]


class AnsweringServer:
    """Reads a request with `ask`, which gives what precedes an answer (None: the end), and answers.

    The first byte of the input says how: 0 whole, 1 short and closed, 2 doubled, 3 late in two pieces, else
    whole and closed. The rest are answers, between `between`; the last one stays.
    """

    def __init__(self, ask: Ask, between: bytes, wrap: Callable[[bytes], bytes]) -> None:
        self._ask, self._between, self._wrap = ask, between, wrap
        self._answers: list[bytes] = [b""]
        self._how = 0
        self._open: list[socket.socket] = []
        listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = listener.getsockname()[1]
        self._listener = listener
        threading.Thread(target=self._serve, args=(listener,), daemon=True).start()

    def close(self) -> None:
        """End it, and its connections."""
        self.say(b"")
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def say(self, data: bytes) -> None:
        """What is answered from now on; connections of before are ended."""
        for one in self._open:
            with contextlib.suppress(OSError):
                one.close()
        self._open.clear()
        self._how = data[0] % 5 if data else 0
        self._answers = data[1:].split(self._between)[:64]

    def _serve(self, listener: socket.socket) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            self._open.append(client)
            threading.Thread(target=self._carry, args=(client,), daemon=True).start()

    def _carry(self, client: socket.socket) -> None:
        with contextlib.suppress(OSError), client:
            while (head := self._ask(client)) is not None:
                answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
                data = self._wrap(head + answer)
                if self._how == 1:
                    client.sendall(data[: len(data) // 2])
                    return
                if self._how == 3:
                    client.sendall(data[: len(data) // 2])
                    time.sleep(_LATE_S)
                    data = data[len(data) // 2 :]
                client.sendall(data * 2 if self._how == 2 else data)
                if self._how == 4:
                    return


def http_request(client: socket.socket) -> bytes | None:
    """Reads one request of HTTP."""
    data = b""
    while b"\r\n\r\n" not in data and len(data) < _HELD_MAX:
        got = client.recv(65536)
        if not got:
            return None
        data += got
    head, _, body = data.partition(b"\r\n\r\n")
    for line in head.split(b"\r\n"):
        if line.lower().startswith(b"content-length:"):
            left = int(line.split(b":")[1]) - len(body)
            while left > 0:
                left -= len(client.recv(65536)) or left
    return b""


def rpc_call(client: socket.socket) -> bytes | None:
    """Reads one call of ONC RPC (RFC 5531); the head of an answer that accepts it."""
    head = client.recv(4, socket.MSG_WAITALL)
    if len(head) < 4:
        return None
    length = struct.unpack(">I", head)[0] & 0x7FFFFFFF
    record = client.recv(min(length, _HELD_MAX), socket.MSG_WAITALL)
    if len(record) < 4:
        return None
    return record[:4] + struct.pack(">IIIII", 1, 0, 0, 0, 0)


def rpc_record(data: bytes) -> bytes:
    """A record of one fragment."""
    return struct.pack(">I", len(data) | 1 << 31) + data


# Of no service: requests to ours are signed too.
os.environ.setdefault("AWS_ACCESS_KEY_ID", "key")
os.environ.setdefault("AWS_SECRET_ACCESS_KEY", "secret")
_running: dict[str, AnsweringServer] = {}


def _server(name: str, *how: object) -> AnsweringServer:
    if name not in _running:
        _running[name] = AnsweringServer(*how)  # type: ignore[arg-type]
    return _running[name]


def _use(url: str) -> None:
    """What is asked of storage around a trial; each may fail, as any of them can."""
    from leadline import _core

    volume = _core.Volume(url)
    calls: list[Callable[[], object]] = [
        lambda: volume.make_directory("d"),
        lambda: volume.put("d/a", b"x" * 100),
        lambda: volume.get("d/a", 4096),
        volume.space,
        lambda: volume.remove_files("d", "a", 1.0),
        lambda: volume.rename("d", "a", "b"),
        lambda: volume.unlink("d", "b"),
        lambda: volume.remove_directory("d", "mark"),
    ]
    for call in calls:
        try:
            call()
        except OSError as error:
            if error.errno == errno.ETIMEDOUT:  # the next would wait as long
                return


def read_s3(path: Path) -> None:
    """A bucket whose every answer is the input's."""
    server = _server("s3", http_request, b"\0--\0", lambda data: data)
    server.say(path.read_bytes())
    _use(f"s3://bucket/some?endpoint=http://127.0.0.1:{server.port}&timeout=1")


def seed_s3(corpus: Path, _work: Path) -> None:
    """A list, an object, an error and an upload, as services answer."""
    bodies = (
        (
            200,
            "<ListBucketResult><IsTruncated>true</IsTruncated>"
            "<Contents><Key>some/d/a.0</Key></Contents></ListBucketResult>",
        ),
        (206, "x" * 100),
        (404, "<Error><Code>NoSuchKey</Code></Error>"),
        (200, "<InitiateMultipartUploadResult><UploadId>7</UploadId></InitiateMultipartUploadResult>"),
    )
    answers = [
        f'HTTP/1.1 {status} OK\r\nETag: "1"\r\nContent-Length: {len(body)}\r\n\r\n{body}'.encode()
        for status, body in bodies
    ]
    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
    for number, parts in enumerate(([answers[0], answers[2], *answers], [chunked, answers[0]], answers)):
        for how in range(5):
            (corpus / f"{number}-{how}").write_bytes(bytes([how]) + b"\0--\0".join(parts))


def read_nfs(path: Path) -> None:
    """A server whose every reply is the input's; the input's second byte says which version is spoken.

    libnfs itself dies of some (a count beyond memory, in `zdr_malloc`; it frees twice what a reply named
    twice): leadline uses it in processes that may, and so does this. What panics is a finding.
    """
    data = path.read_bytes()
    server = _server("nfs", rpc_call, b"\xfe--\xfe", rpc_record)
    server.say(data[:1] + data[2:])
    version = 3 + (data[1] % 2 if len(data) > 1 else 0)
    ports = f"nfsport={server.port}&mountport={server.port}" if version == 3 else f"nfsport={server.port}"
    words = os.memfd_create("words")
    pid = os.fork()
    if pid == 0:
        code = 1
        os.dup2(words, 2)
        for number in _DEATHS:  # the fuzzer's own handler calls any death a finding
            signal.signal(number, signal.SIG_DFL)
        try:
            _use(f"nfs://127.0.0.1/export?version={version}&{ports}&timeout=1")
            code = 0
        except OSError:
            code = 0
        finally:
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    said = os.pread(words, 4096, 0).decode(errors="replace")
    os.close(words)
    if code not in (0, *(-number for number in _DEATHS)) or "panicked" in said:
        raise AssertionError(f"a reply ended the process: {code}: {said}")


def seed_nfs(corpus: Path, _work: Path) -> None:
    """Replies that say success, with a handle, attributes and small counts behind."""
    null, status = b"", bytes(4)
    handle = struct.pack(">II8sII", 0, 8, b"12345678", 1, 1)  # of a mount: a handle, and one flavour
    info = struct.pack(">II7IQIII", 0, 0, *(65536, 65536, 4096) * 2, 4096, 1 << 40, 0, 1, 0x1B)
    attributes = struct.pack(">5IQQIIQQ6I", 2, 0o755, 2, 0, 0, 4096, 4096, 0, 0, 1, 1, *range(6))
    found = status + struct.pack(">I8sI", 8, b"12345678", 1) + attributes + struct.pack(">I", 1) + attributes
    rest = [status + attributes, found, bytes(256), struct.pack(">I", 1) * 64]
    for number, parts in enumerate(
        ([null, handle, status, null, info, *rest], [null, handle, status, info, *rest], [null, *rest], rest)
    ):
        for how in range(10):
            (corpus / f"{number}-{how}").write_bytes(bytes([how % 5, how // 5]) + b"\xfe--\xfe".join(parts))
