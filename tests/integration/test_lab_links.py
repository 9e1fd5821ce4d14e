"""A lab's network without Ceph: what `ip` and `tc` find is what its topology says, and it goes whole."""

from __future__ import annotations

import errno
import json
import os
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from lab_networks import AloneNetwork, inside, iperf, iperf_servers, why_none
from leadline.errors import LabError, UsageError
from leadline.lab import registry
from leadline.lab.cluster import stop
from leadline.lab.cluster.process import poll
from leadline.lab.network import make as network
from leadline.lab.network.placement import SWITCHES, bridge_of, cables
from leadline.lab.network.topology import LabHost, Link, Switch, Topology, simple
from leadline.lab.paths import LabPaths

pytestmark = pytest.mark.skipif(bool(why_none()), reason=f"NO NETWORK IS MADE: {why_none()}")
SLOW, FAST, BACK = Link(100_000_000), Link(2_000_000_000), Link(10**9, 9000)
PORT = 5001
IP_MTU_DISCOVER, IP_PMTUDISC_DO = 10, 2  # linux/in.h: never in fragments
RPS = Path("/proc/sys/net/core/rps_default_mask")
RECEIVED_BY = "mount -t sysfs sysfs /sys && cat /sys/class/net/[!l]*/queues/rx-*/rps_cpus"  # not of lo

Make = Callable[[Topology], AloneNetwork]


def apart() -> Topology:
    """Two racks, and a cluster network of their own for the hosts, of larger packets."""
    found = simple(hosts=3, clients=2, switches=2, osds=3, link=SLOW, uplink=FAST)
    hosts = tuple(replace(host, cluster_switch="rear", cluster_link=BACK) for host in found.hosts)
    return replace(found, hosts=hosts, switches=(*found.switches, Switch("rear")))


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Make]:
    """Makes networks, each in a directory of its own, gone afterwards."""
    with ExitStack() as stack:

        def make(topology: Topology) -> AloneNetwork:
            found = AloneNetwork.plan(topology, tmp_path / f"lab{len(list(tmp_path.iterdir()))}")
            stack.callback(found.remove)
            found.make()
            return found

        yield make


def why_not(where: tuple[str, int]) -> int:
    """The number of the error with which nothing is reached there; 0 where it is."""
    try:
        socket.create_connection(where, timeout=10).close()
    except OSError as error:
        return error.errno or -1
    return 0


def test_every_device_address_port_and_limit_is_what_the_topology_says(made: Make) -> None:
    found = made(apart())
    seen = {name: found.devices(name) for name in (*found.namespaces, "")}
    expected: dict[str, set[str]] = {name: set() for name in seen}
    expected[SWITCHES] = {bridge_of(switch.name) for switch in found.network.topology.switches}
    for cable in cables(found.network.topology, found.network.console):
        for end in cable.ends:
            expected[end.namespace].add(end.device)
            device = seen[end.namespace][end.device]
            assert device["mtu"] == cable.link.mtu_bytes
            assert device["operstate"] == "UP"
            assert not any(address["family"] == "inet6" for address in device["addr_info"])
        assert seen[SWITCHES][cable.upper.device]["master"] == bridge_of(cable.switch)
        if cable.lower.namespace == SWITCHES:
            assert seen[SWITCHES][cable.lower.device]["master"] == bridge_of(cable.name)
    assert {name: set(devices) for name, devices in seen.items()} == expected
    addresses = {
        (name, device): [f"{item['local']}/{item['prefixlen']}" for item in values["addr_info"]]
        for name, devices in seen.items()
        for device, values in devices.items()
        if values["addr_info"]
    }
    plan, topology = found.network, found.network.topology
    assert addresses == (
        {(member.name, "up0"): [f"{plan.address(member.name)}/24"] for member in topology.members}
        | {(host.name, "back0"): [f"{plan.cluster_address(host.name)}/24"] for host in topology.hosts}
        | {("", plan.console): [f"{plan.console_address}/24"]}
    )


def test_what_leaves_each_end_of_a_cable_is_held_to_its_rate_and_nothing_else_is(made: Make) -> None:
    found = made(apart())
    topology, console = found.network.topology, found.network.console
    limits = {
        (end.namespace, end.device): cable.link.rate_bit_s // 8
        for cable in cables(topology, console)
        for end in cable.ends
    }
    for name in found.namespaces:
        qdiscs = {item["dev"]: item for item in found.ask(name, "tc", "qdisc", "show")}
        for device in found.devices(name):
            wanted = limits.get((name, device), 0)
            shown = qdiscs[device]
            assert (shown["kind"] == "tbf") == bool(wanted), (name, device)
            if wanted:
                assert shown["options"]["rate"] == wanted


def test_everybody_reaches_everybody_and_the_cluster_network_is_apart(made: Make) -> None:
    found = made(apart())
    plan, members = found.network, [member.name for member in found.network.topology.members]
    with ExitStack() as stack:
        for name in members:
            with inside(found.paths.namespace(name)):
                stack.enter_context(socket.create_server(("", PORT), backlog=64))
        for name in members:
            with inside(found.paths.namespace(name)):
                for other in members:
                    socket.create_connection((plan.address(other), PORT), timeout=10).close()
                for host in found.network.topology.hosts:
                    where = (plan.cluster_address(host.name), PORT)
                    if isinstance(plan.topology.member(name), LabHost):
                        with socket.create_connection(where, timeout=10) as there:
                            assert there.getsockname()[0] == plan.cluster_address(name)
                    else:
                        assert why_not(where) == errno.ENETUNREACH
        for name in members:  # and the machine itself, from where the lab is looked after
            socket.create_connection((plan.address(name), PORT), timeout=10).close()


def test_members_have_no_way_out_of_the_lab(made: Make) -> None:
    found = made(simple(1, 1, 1, 1, SLOW, SLOW))
    for name in found.namespaces:
        routes = found.ask(name, "ip", "route", "show", "table", "main")
        public = [str(found.network.networks[0])] if name != SWITCHES else []
        assert [item["dst"] for item in routes] == public


@pytest.mark.skipif(not RPS.exists(), reason=f"this kernel has no {RPS}")
def test_a_flow_keeps_to_one_core_so_that_its_packets_do_not_pass_each_other(made: Make) -> None:
    found = made(simple(1, 1, 1, 1, SLOW, SLOW))
    for name in found.namespaces:
        command = [*network.entered(found.paths, name), "unshare", "--mount", "sh", "-c", RECEIVED_BY]
        masks = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True).stdout.split()
        assert len(masks) >= len(found.devices(name))
        assert {int(mask.replace(",", ""), 16) for mask in masks} == {(1 << (os.cpu_count() or 1)) - 1}


@pytest.mark.skipif(bool(why_none("iperf3")), reason=f"NO STREAM: {why_none('iperf3')}")
def test_a_stream_gets_the_rate_of_the_slowest_link_on_its_way(made: Make) -> None:
    found = made(simple(1, 1, 1, 1, SLOW, SLOW))
    # TBF counts frames: 1448 bytes of each 1514 are payload, 0.956.
    with iperf_servers(found, ["host1"]):

        def fits() -> bool:
            seen = iperf(found, "client1", "host1", 2)["sum_received"]["bits_per_second"]
            return bool(0.90 < seen / SLOW.rate_bit_s < 0.97)

        assert poll(fits, 30.0)  # again where a busy machine stood still meanwhile


def test_a_network_that_was_removed_leaves_nothing_and_the_one_beside_it_as_it_was(made: Make) -> None:
    first, second = made(apart()), made(simple(1, 1, 1, 1, SLOW, SLOW))
    before = second.state()
    with inside(second.paths.namespace("client1")):
        for address in (first.network.address("host1"), first.network.console_address):
            assert why_not((address, PORT)) == errno.ENETUNREACH
    first.remove()
    assert first.left() == []
    assert all(path.is_file() and path.stat().st_size == 0 for path in first.paths.namespaces.iterdir())
    assert second.state() == before
    first.remove()  # again: there is nothing any more
    second.remove()
    assert second.left() == []


def killed_at(found: AloneNetwork, command: int, line: int) -> bool:
    """Makes a network in a child that is killed before a command, or behind so many lines of one.

    False where the child ended before.
    """
    count = iter(range(1000))

    def until(words: list[str], variables: dict[str, str], *, deadline_s: float, text: str = "") -> str:
        number = next(count)
        if number < command:
            return run_tool(words, variables, deadline_s=deadline_s, text=text)
        lines = text.splitlines(keepends=True)
        if lines and line:
            run_tool(words, variables, deadline_s=deadline_s, text="".join(lines[:line]))
        os.kill(os.getpid(), signal.SIGKILL)
        return ""

    run_tool = network.run_tool
    pid = os.fork()
    if pid == 0:
        network.run_tool = until  # type: ignore[assignment]
        try:
            found.make()
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL


def test_half_made_network_is_removed_wherever_its_making_was_killed(tmp_path: Path) -> None:
    topology = simple(1, 1, 2, 1, SLOW, FAST)
    batch = 3  # its number: behind the namespaces
    points = [(command, 0) for command in range(100)] + [(batch, line) for line in range(1, 30, 2)]
    killed, over = 0, False
    for number, (command, line) in enumerate(points):
        if over and not line:
            continue
        found = AloneNetwork.plan(topology, tmp_path / str(number))
        try:
            was_killed = killed_at(found, command, line)
        finally:
            found.remove()
        assert found.left() == [], (command, line)
        over = over or not was_killed
        killed += was_killed
    assert killed >= 20


@pytest.fixture
def small(made: Make) -> AloneNetwork:
    """A host, a client, a switch."""
    return made(simple(1, 1, 1, 1, SLOW, SLOW))


def test_who_is_in_a_host_without_being_the_labs_is_named(small: AloneNetwork) -> None:
    command = [*network.entered(small.paths, "client1"), "sleep", "60"]
    with subprocess.Popen(command) as guest:
        try:
            named = [f"sleep (pid {guest.pid}) in the network of client1"]
            assert poll(lambda: network.inhabitants(small.paths) == named, 20.0)
            small.remove()
            assert small.left() == []
            assert guest.poll() is None
            # What it was connected with is gone.
            links = ["nsenter", f"--net=/proc/{guest.pid}/ns/net", "ip", "-json", "link"]
            alone = [{"ifname": "lo"}]
            assert poll(lambda: [{"ifname": item["ifname"]} for item in asked(links)] == alone, 20.0)
        finally:
            guest.kill()


def asked(command: list[str]) -> list[dict[str, str]]:
    """What a command prints, as JSON."""
    found: list[dict[str, str]] = json.loads(subprocess.check_output(command, text=True, timeout=20))
    return found


def test_a_network_is_not_removed_from_inside(small: AloneNetwork) -> None:
    before = small.state()
    with (
        inside(small.paths.namespace("client1")),
        pytest.raises(UsageError, match="runs in the network of client1"),
    ):
        stop.remove(small.paths.directory, os.environ, lambda _: None)
    assert small.state() == before


def test_the_network_of_a_lab_whose_files_are_lost_is_found_and_goes_and_the_rest_stays(
    small: AloneNetwork, made: Make
) -> None:
    beside, directory = made(simple(1, 1, 1, 1, SLOW, SLOW)), small.paths.directory
    before = beside.state()
    (directory / "something").touch()
    assert directory in registry.lost()
    with pytest.raises(LabError, match="its files were left alone"):
        stop.remove(directory, os.environ, lambda _: None)
    assert poll(lambda: small.left() == [], 20.0)
    assert (directory / "something").exists()
    assert directory not in registry.lost()
    with pytest.raises(UsageError, match="is not a lab"):
        stop.remove(directory, os.environ, lambda _: None)
    assert beside.state() == before


def test_a_namespace_that_no_lab_holds_is_not_let_go(tmp_path: Path) -> None:
    paths = LabPaths(tmp_path / "a", tmp_path / "a")
    paths.namespaces.mkdir(parents=True, mode=0o700)
    paths.directory.chmod(0o700)
    held = paths.namespace("blue")
    held.touch()
    subprocess.run(["unshare", f"--net={held}", "true"], timeout=20, check=True)
    try:
        with pytest.raises(UsageError, match="is not a lab"):
            stop.remove(paths.directory, os.environ, lambda _: None)
        assert network.held(paths) == [held]
    finally:
        subprocess.run(["umount", str(held)], timeout=20, check=True)


def test_a_console_that_goes_by_itself_meanwhile_is_no_error(
    small: AloneNetwork, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it does some time after its namespace, of which a removal that was killed had let go."""

    def late(words: list[str], *more: object, **named: object) -> str:
        subprocess.run(words, timeout=20, check=True)
        return run_tool(words, *more, **named)  # type: ignore[arg-type]

    run_tool = network.run_tool
    monkeypatch.setattr(network, "run_tool", late)
    small.remove()
    assert small.left() == []


def test_packets_as_large_as_the_links_allow_arrive_whole_from_everywhere(made: Make) -> None:
    jumbo = Link(10**9, 9000)
    found = made(simple(2, 1, 2, 2, jumbo, jumbo))  # from rack to rack, from below and from the machine
    payload = os.urandom(9000 - 28)  # IPv4's and UDP's headers
    where = (found.network.address("host2"), PORT)
    with ExitStack() as stack:
        with inside(found.paths.namespace("host2")):
            taken = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
            taken.settimeout(10)
            taken.bind(where)
        for name in ("host1", "client1", ""):
            with inside(found.paths.namespace(name) if name else Path("/proc/self/ns/net")):
                sender = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
            sender.setsockopt(socket.IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO)
            sender.sendto(payload, where)
            assert taken.recv(1 << 16) == payload, name
