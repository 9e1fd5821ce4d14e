"""Bytes of TCP sockets, counted on real connections of this host."""

from __future__ import annotations

import ctypes
import os
import socket
import threading

import pytest

from leadline.observe.network import tcp
from leadline.observe.network.interfaces import WIRE
from leadline.observe.network.sockets import (
    SocketBytes,
    parse_messages,
    parse_socket,
    sockets_of,
    tcp_sockets,
)
from leadline.observe.network.tcp import SocketReader
from leadline.observe.reading import Request

_AMOUNT_BYTES = 300_000
_CLONE_FILES = 0x400


def _pair() -> tuple[socket.socket, socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        client = socket.create_connection(server.getsockname())
        return client, server.accept()[0]


def test_socket_of_this_process_has_the_bytes_that_it_carried() -> None:
    client, server = _pair()
    with client, server:
        client.sendall(b"x" * 1000)
        server.recv(1000, socket.MSG_WAITALL)
        server.sendall(b"y" * 500)
        client.recv(500, socket.MSG_WAITALL)
        inode = os.fstat(client.fileno()).st_ino
        assert inode in sockets_of(os.getpid())
        (found,) = [one for one in tcp_sockets() if one.inode == inode]
        assert (found.sent_bytes - 1000, found.received_bytes) in ((0, 500), (1, 500))


def test_socket_of_a_thread_with_a_table_of_its_own_is_found() -> None:
    opened, looked = threading.Event(), threading.Event()
    inodes: list[int] = []

    def own_table() -> None:
        ctypes.CDLL(None).unshare(_CLONE_FILES)
        client, server = _pair()
        with client, server:
            inodes.append(os.fstat(client.fileno()).st_ino)
            opened.set()
            looked.wait(10)

    thread = threading.Thread(target=own_table)
    thread.start()
    try:
        assert opened.wait(10)
        assert inodes[0] in sockets_of(os.getpid())
    finally:
        looked.set()
        thread.join()


@pytest.mark.skipif(os.geteuid() != 0, reason="sockets are followed to their end by root only")
def test_sockets_that_ended_between_two_marks_are_counted_to_their_last_byte() -> None:
    reader = SocketReader()
    request = Request("a", os.getpid())
    before = reader.counters(request).values
    client, server = _pair()
    with client, server:
        for _ in range(5):
            reader.sample(0)  # it must have been seen, and looked for often enough
        for _ in range(30):
            client.sendall(bytes(_AMOUNT_BYTES // 30))
            server.recv(_AMOUNT_BYTES // 30, socket.MSG_WAITALL)
    after = reader.counters(request).values
    change = [(after[name] or 0) - (before[name] or 0) for name in WIRE]
    # What one end sends the other receives, both of this process; a connection's end counts as a byte.
    assert all(_AMOUNT_BYTES <= one <= _AMOUNT_BYTES + 4 for one in change)


@pytest.mark.skipif(os.geteuid() != 0, reason="sockets are followed to their end by root only")
def test_sockets_that_came_and_went_between_two_looks_are_not_counted_as_nothing() -> None:
    reader, request = SocketReader(), Request("a", os.getpid())
    assert reader.counters(request).values == dict.fromkeys(WIRE, 0)
    client, server = _pair()
    with client, server:
        client.sendall(b"x" * 1000)
        server.recv(1000, socket.MSG_WAITALL)
    found = reader.counters(request)
    assert found.values == dict.fromkeys(WIRE)
    assert "too short" in found.reasons[WIRE[0]]


def test_another_process_has_none_of_these_sockets() -> None:
    reader = SocketReader()
    client, server = _pair()
    with client, server:
        found = reader.counters(Request("a", 1 << 22))
        assert found.values[WIRE[0]] in (0, None)


def test_tables_of_open_files_are_read_for_new_sockets_only(monkeypatch: pytest.MonkeyPatch) -> None:
    living = [SocketBytes(1, 11, 5, 6), SocketBytes(2, 22, 700, 800)]
    read: list[int] = []

    def own(pid: int) -> set[int]:
        read.append(pid)
        return {11, 33}

    monkeypatch.setattr(tcp, "tcp_sockets", lambda: list(living))
    monkeypatch.setattr(tcp, "sockets_of", own)
    reader, request = SocketReader(), Request("a", 7)
    assert tuple(reader.counters(request).values.values()) == (5, 6)
    for _ in range(6):
        reader.sample(0)
    assert read == [7]
    living[0] = SocketBytes(1, 11, 50, 60)
    living.append(SocketBytes(3, 33, 1, 1))
    assert tuple(reader.counters(request).values.values()) == (51, 61)
    assert read == [7, 7]


def test_what_is_no_message_of_the_kernel_is_passed_over() -> None:
    assert list(parse_messages(b"")) == []
    assert list(parse_messages(b"\x04\0\0\0" + bytes(20))) == []
    assert parse_socket(b"short") is None
    assert parse_socket(bytes(72) + b"\0\0\0\0\0\0\0\0") is None
