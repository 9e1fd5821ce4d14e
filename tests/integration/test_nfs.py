"""nfs:// where no server answers as it should. With a server: `tests/ceph/test_gateway_engines.py`."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from answering import AnsweringServer, rpc_call, rpc_record

from leadline import _core
from support import Command

pytestmark = pytest.mark.skipif(
    not next(engine["available"] for engine in _core.engines() if "nfs" in engine["schemes"]),
    reason="libnfs is not installed",
)

STUDY = "format: leadline.study/1\nblocks: 1\nworks:\n  read: {rw: randread, bs: 4k, size: 1M, runtime: 1s}\n"


@contextmanager
def listening(answer: bytes | None) -> Iterator[int]:
    """A port that takes connections, and says `answer` to whatever comes: None for nothing at all."""
    listener = socket.create_server(("127.0.0.1", 0))
    held: list[socket.socket] = []

    def serve() -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            held.append(client)
            if answer is not None:
                client.sendall(answer)
                client.close()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        for client in held:
            client.close()
        thread.join(10)


def planned(leadline: Command, tmp_path: Path, url: str) -> str:
    path = tmp_path / "nfs.yaml"
    path.write_text(STUDY)
    done = leadline("plan", str(path), "--target", f"n={url}", timeout=60)
    assert done.returncode == 2, done.stdout
    assert "Traceback" not in done.stderr
    return done.stderr


def test_a_port_without_a_server_says_so(leadline: Command, tmp_path: Path) -> None:
    errors = planned(leadline, tmp_path, "nfs://127.0.0.1:1/export")
    assert "Connection refused" in errors
    assert "nfsport=" in errors


def test_an_unknown_name_is_named(leadline: Command, tmp_path: Path) -> None:
    assert "no-such-host.invalid" in planned(leadline, tmp_path, "nfs://no-such-host.invalid/export")


def test_a_server_that_never_answers_is_given_up(leadline: Command, tmp_path: Path) -> None:
    with listening(None) as port:
        assert "no answer within" in planned(leadline, tmp_path, f"nfs://127.0.0.1:{port}/export")


def test_a_server_that_is_no_nfs_server_is_one_error(leadline: Command, tmp_path: Path) -> None:
    with listening(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n") as port:
        assert "mount" in planned(leadline, tmp_path, f"nfs://127.0.0.1:{port}/export")


def test_options_are_told_from_one_another(leadline: Command, tmp_path: Path) -> None:
    assert "3 or 4" in planned(leadline, tmp_path, "nfs://host/export?version=5")
    assert "no option" in planned(leadline, tmp_path, "nfs://host/export?rsize=1M")


def test_a_reply_that_the_library_dies_of_is_one_error(leadline: Command, tmp_path: Path) -> None:
    """A count of results beyond all memory: libnfs is used in a process that may die of it."""
    server = AnsweringServer(rpc_call, b"\xfe--\xfe", rpc_record)
    server.say(b"\0" + b"\xff" * 40)
    errors = planned(leadline, tmp_path, f"nfs://127.0.0.1:{server.port}/export")
    assert "internal error" not in errors
    assert f"127.0.0.1:{server.port}" in errors
    server.close()
