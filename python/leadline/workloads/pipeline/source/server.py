"""Sends one file over HTTP on the loopback interface, to as many as ask, until standard input ends.

A process of its own: what it costs is not the client's, and it dies with whoever started it.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from leadline.errors import StudyError
from leadline.observe.children import module_command, module_environment

_START_S = 30.0
_END_S = 5.0


@contextlib.contextmanager
def source_server(path: str) -> Iterator[tuple[str, int]]:
    """The address at which the file can be had, and the server's pid."""
    server = subprocess.Popen(
        module_command("leadline.workloads.pipeline.source.server", path),
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


def _handler(path: Path) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        """Answers every GET with the one file."""

        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            """The file, by sendfile."""
            with path.open("rb") as file:
                self.send_response(200)
                self.send_header("Content-Type", "application/octet-stream")
                self.send_header("Content-Length", str(os.fstat(file.fileno()).st_size))
                self.end_headers()
                with contextlib.suppress(ConnectionError):  # a client that was ended
                    self.connection.sendfile(file)

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
    with ThreadingHTTPServer(("127.0.0.1", 0), _handler(path)) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        sys.stdout.write(f"http://127.0.0.1:{server.server_address[1]}/source\n")
        sys.stdout.flush()
        sys.stdin.read()
        server.shutdown()
    return 0


if __name__ == "__main__":
    sys.exit(main())
