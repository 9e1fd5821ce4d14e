"""TCP connections as they are sampled: on real sockets of this kernel."""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, cast

import pytest

from leadline.observe.ceph import parse
from leadline.observe.ceph.client import NotObservableError
from leadline.observe.ceph.cluster import MdsReader
from leadline.observe.ceph.osds import ClusterKey
from leadline.observe.network.sockets import SocketInfo
from leadline.observe.network.tcp import (
    HERE,
    ServerEndpoints,
    TcpConnection,
    TcpReader,
    connection,
    connections,
    growth,
)


@contextmanager
def pair(receive_bytes: int | None = None) -> Iterator[tuple[socket.socket, socket.socket]]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        if receive_bytes is not None:
            server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        with socket.create_connection(server.getsockname()) as sender:
            receiver, _ = server.accept()
            with receiver:
                yield sender, receiver


def cookie_of(one: socket.socket) -> int:
    return int(struct.unpack("=Q", one.getsockopt(socket.SOL_SOCKET, 57, 8))[0])  # SO_COOKIE


def grown(before: dict[int, TcpConnection], now: list[TcpConnection]) -> dict[str, float]:
    return {metric: value for metric, value, _ in growth(before, now, 2.0)}


def test_a_connection_is_there_while_it_is_open_and_counts_what_it_sends() -> None:
    with pair() as (sender, receiver):
        cookie = cookie_of(sender)
        before = connections()[cookie]
        sender.sendall(bytes(200_000))
        left = 200_000
        while left:
            left -= len(receiver.recv(left))
        after = connections()[cookie]

        assert after.sent_segments > before.sent_segments
        assert 0 < after.rtt_least_s <= after.rtt_s < 1
    assert cookie not in connections()


def test_a_receiver_that_does_not_read_is_what_its_sender_waits_for() -> None:
    with pair(receive_bytes=4096) as (sender, _receiver):
        cookie = cookie_of(sender)
        sender.setblocking(False)
        before = connections()[cookie]
        with suppress(BlockingIOError):
            while True:
                sender.send(bytes(65536))
        deadline = time.monotonic() + 20
        while True:
            now = connections()[cookie]
            figures = grown({cookie: before}, [now])
            if figures.get("receiver_full", 0.0) > 0.5 and now.window_s - before.window_s > 0.05:
                break
            assert time.monotonic() < deadline, figures
            time.sleep(0.02)  # the kernel adds to its times only as time passes


def test_a_connection_that_is_not_to_a_server_says_nothing_of_one() -> None:
    """A session to another host may break; so may another cluster's connections."""
    with pair() as (sender, receiver), pair() as (other, _):
        ends = ServerEndpoints.of([sender.getpeername()])
        assert connections(ends).keys() == {cookie_of(sender), cookie_of(receiver)}
        ends = ServerEndpoints.of([(sender.getpeername()[0], None)])
        assert connections(ends).keys() >= {cookie_of(sender), cookie_of(other)}
    assert connections(ServerEndpoints.of([("192.0.2.1", 6789), ("a name", 6789)])) == {}


def test_an_address_of_ipv4_in_a_socket_of_ipv6_is_the_same_address() -> None:
    with socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True) as server:
        port = server.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)) as sender:
            receiver, _ = server.accept()
            with receiver:
                found = connections(ServerEndpoints.of([("127.0.0.1", port)]))
                assert found.keys() == {cookie_of(sender), cookie_of(receiver)}


def test_where_no_server_is_known_nothing_is_said_of_this_host() -> None:
    known: list[tuple[str, int | None]] = []
    reader = TcpReader(lambda: {}, lambda: known)
    assert reader.sample(0) == reader.sample(2_000_000_000) == []
    known.append(("192.0.2.1", 6789))  # as soon as one is
    assert reader.sample(4_000_000_000) == []
    assert {row[1] for row in reader.sample(6_000_000_000)} == {HERE}


def test_what_was_not_there_before_is_new_and_nothing_else_is_counted_of_it() -> None:
    old = TcpConnection(1, 0, 0.001, 0.0005, 100, 5, 1.0, 0.0, 0.0)
    later = TcpConnection(1, 2, 0.003, 0.0005, 300, 9, 2.0, 0.5, 0.25)
    new = TcpConnection(2, 0, 0.5, 0.5, 90_000, 700, 50.0, 50.0, 0.0)

    figures = grown({1: old}, [later, new])

    assert figures == {
        "connections": 2.0,
        "new_connections": 0.5,
        "unanswered": 2.0,
        "segments_again": 2.0,
        "round_trip": pytest.approx(3.0),
        "round_trip_least": pytest.approx(0.5),
        "receiver_full": 0.5,
        "sender_full": 0.25,
    }


def test_of_connections_that_carried_nothing_no_time_is_said() -> None:
    one = TcpConnection(1, 0, 0.001, 0.0005, 100, 5, 1.0, 0.0, 0.0)
    assert set(grown({1: one}, [one])) == {"connections", "new_connections", "unanswered", "segments_again"}


@pytest.mark.parametrize("info", [b"", bytes(191), b"\x0a" + bytes(300)])
def test_a_socket_that_listens_or_an_older_kernel_gives_none(info: bytes) -> None:
    assert connection(SocketInfo(1, 1, info)) is None


@pytest.mark.skipif(os.geteuid() != 0, reason="another network can be entered by root only")
def test_networks_of_daemons_are_subjects_and_this_thread_comes_back() -> None:
    own = Path("/proc/thread-self/ns/net").stat().st_ino
    with subprocess.Popen(["unshare", "--net", "sleep", "60"]) as other:
        try:
            path = f"/proc/{other.pid}/ns/net"
            while Path(path).stat().st_ino == own:
                time.sleep(0.005)
            with pair() as (sender, _):
                end = sender.getpeername()
                reader = TcpReader(lambda: {other.pid: "osd.3", os.getpid(): "osd.4"}, lambda: [end])
                assert reader.sample(0) == []
                rows = reader.sample(2_000_000_000)
        finally:
            other.kill()
    counts = {subject: value for _, subject, metric, value, _ in rows if metric == "connections"}
    assert counts[HERE] == 2.0  # both ends of the one connection are here
    assert counts["osd.3"] == 0.0
    assert "osd.4" not in counts
    assert Path("/proc/thread-self/ns/net").stat().st_ino == own


def test_a_network_that_is_gone_is_left_out() -> None:
    reader = TcpReader(lambda: {}, lambda: [("192.0.2.1", None)])
    reader.sample(0)
    reader._networks["osd.9"] = "/proc/0/ns/net"
    assert {row[1] for row in reader.sample(2_000_000_000)} == {HERE}


def at(*addresses: str) -> dict[str, Any]:
    return {"addrvec": [{"type": "v2", "addr": address, "nonce": 1} for address in addresses]}


def test_osds_that_are_up_have_an_endpoint_for_clients_and_one_for_each_other() -> None:
    up = {
        "up": 1,
        "public_addrs": at("10.0.0.1:6800", "[fd00::1]:6801"),
        "cluster_addrs": at("10.1.0.1:6802"),
    }
    down = {"up": 0, "public_addrs": at("10.0.0.2:6800"), "cluster_addrs": at("10.1.0.2:6800")}
    found = list(parse.osd_endpoints({"osds": [up, down, {"up": 1}]}))
    assert found == [("10.0.0.1", 6800), ("fd00::1", 6801), ("10.1.0.1", 6802)]


class MonitorsThatKnowAnMds:
    """They show the map of metadata servers, or refuse to."""

    def __init__(self) -> None:
        self.address, self.asked = "10.0.0.3:6800", 0

    def mon(self, _command: str) -> Any:
        self.asked += 1
        if not self.address:
            raise NotObservableError("access denied")
        return {"filesystems": [{"mdsmap": {"info": {"gid_1": {"addrs": at(self.address)}}}}]}


def test_a_metadata_server_that_starts_anew_under_its_name_has_another_endpoint() -> None:
    reader, cluster = MdsReader(ClusterKey(None, None, None)), MonitorsThatKnowAnMds()
    for address, epoch in (("10.0.0.3:6800", 5), ("10.0.0.3:6811", 6)):
        cluster.address = address
        for _ in range(2):  # asked once for each map
            reader._find_endpoints(cast(Any, cluster), {"fsmap": {"epoch": epoch}})
        assert reader.endpoints() == (("10.0.0.3", int(address.partition(":")[2])),)
    assert cluster.asked == 2
    cluster.address = ""  # its counters are asked for nevertheless
    reader._find_endpoints(cast(Any, cluster), {"fsmap": {"epoch": 7}})
    assert reader.endpoints() == (("10.0.0.3", 6811),)
