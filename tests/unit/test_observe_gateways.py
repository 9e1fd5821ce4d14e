"""Gateways are found by the port that they listen on, with what they started, and nobody else is."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest

from leadline.observe.host.daemon_reader import gateways_here

SERVER = """
import socket, subprocess, sys
with socket.create_server(("127.0.0.1", 0)) as server:
    child = subprocess.Popen(["sleep", "60"])
    print(server.getsockname()[1], child.pid, flush=True)
    sys.stdin.read()
    child.kill()
    child.wait()
"""


@pytest.fixture
def server() -> Iterator[tuple[int, int, int]]:
    """Its port, its process and its child's."""
    words = [sys.executable, "-c", SERVER]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        port, child = map(int, process.stdout.readline().split())
        yield port, process.pid, child
        process.communicate("")


def test_who_listens_is_found_with_its_children(server: tuple[int, int, int]) -> None:
    port, pid, child = server
    found = gateways_here({port})
    assert set(found) == {pid, child}
    assert found[child] == f"proxy.sleep.{child}"


def test_nobody_is_found_where_nobody_listens(server: tuple[int, int, int]) -> None:
    del server
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        assert gateways_here({bound.getsockname()[1]}) == {}
    assert gateways_here(()) == {}
    assert os.getpid() not in gateways_here({1})
