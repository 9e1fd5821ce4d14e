"""Sends one file over HTTP on the loopback interface, to as many as ask, until standard input ends.

A process of its own: what it costs is not the client's, and it dies with whoever started it. Every account of
a host reaches its loopback interface: who has another account, or does not know the secret part of the
address, is given nothing. Whose a connection is the kernel's table of TCP sockets says.
"""

from __future__ import annotations

import contextlib
import hmac
import ipaddress
import os
import secrets
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from leadline.errors import StudyError
from leadline.interpreter import module_command, module_environment

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


_START_S = 30.0
_END_S = 5.0
_SECRET_BYTES = 32


@contextlib.contextmanager
def source_server(path: str) -> Iterator[tuple[str, int]]:
    """The address at which the file can be had, and the server's pid.

    Who knows the address may read the file: it belongs on no command line, and into nothing that is kept.
    """
    server = subprocess.Popen(
        module_command("leadline.workloads.pipeline.server", path),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=module_environment(),
        start_new_session=True,
    )
    assert server.stdout and server.stdin and server.stderr  # noqa: S101, PT018 - pipes were asked for
    try:
        line = server.stdout.readline().decode().strip()
        if not line:
            words = server.stderr.read().decode("utf-8", "replace").strip().splitlines()
            raise StudyError(
                f"the source cannot be sent: {words[-1] if words else 'its server did not start'}",
                "name a source that can be read, and run again",
            )
        yield line, server.pid
    finally:
        server.stdin.close()
        try:
            server.wait(_END_S)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait(_END_S)
        server.stdout.close()
        server.stderr.close()


class _Server(ThreadingHTTPServer):
    """Hears out nobody of another account, where the kernel tells whose a connection is."""

    daemon_threads = True

    def verify_request(self, request: Any, client_address: Any) -> bool:
        """Asked once a connection, before anything is read of it."""
        account = account_of(client_address, request.getsockname())
        return account is None or account == os.geteuid()


def _handler(path: Path, address: str) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        """Answers GET and HEAD of one address with the one file, and all else alike."""

        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            """The file, by sendfile."""
            self._answer(with_file=True)

        def do_HEAD(self) -> None:
            """What GET would say."""
            self._answer(with_file=False)

        def _answer(self, *, with_file: bool) -> None:
            if not hmac.compare_digest(self.path.encode(), address.encode()):
                self.send_error(404)
                return
            with path.open("rb") as file:
                self.send_response_only(200)
                self.send_header("Content-Type", "application/octet-stream")
                self.send_header("Content-Length", str(os.fstat(file.fileno()).st_size))
                self.end_headers()
                if with_file:
                    with contextlib.suppress(ConnectionError):  # a client that was ended
                        self.connection.sendfile(file)

        def send_error(self, *_: Any) -> None:
            """One answer, whatever was wrong: it tells nothing of what would be right."""
            self.close_connection = True
            self.send_response_only(404)
            self.send_header("Content-Length", "0")
            self.send_header("Connection", "close")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Nobody reads it."""

    return Handler


def main() -> int:
    """Serve the file of the command line."""
    path = Path(sys.argv[1])
    try:
        path.open("rb").close()
    except OSError as error:
        sys.stderr.write(f"{error.strerror}: {path}\n")
        return 1
    address = f"/{secrets.token_urlsafe(_SECRET_BYTES)}/source"
    with _Server(("127.0.0.1", 0), _handler(path, address)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        sys.stdout.write(f"http://127.0.0.1:{server.server_address[1]}{address}\n")
        sys.stdout.flush()
        sys.stdin.read()
        server.shutdown()
    return 0


if __name__ == "__main__":
    sys.exit(main())
