"""A lab's network as values: where everything is put, what is joined with what, how fast."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

import pytest
from pydantic import TypeAdapter

from leadline.lab.network import members
from leadline.lab.network.placement import (
    CONSOLE,
    SWITCHES,
    End,
    LabNetwork,
    cables,
    failure_domain,
    place,
    shaping,
    top_of,
)
from leadline.lab.network.topology import LabHost, Link, MachineLimits, Switch, Topology, simple

GIGABIT = Link(1_000_000_000)
TWO_RACKS = simple(hosts=3, clients=2, switches=2, osds=4, link=GIGABIT, uplink=Link(2_000_000_000))


def network(topology: Topology = TWO_RACKS) -> LabNetwork:
    return LabNetwork(topology, "10.4.2.0/23", "llnd12345678", place(topology))


def with_back(topology: Topology) -> Topology:
    """The same with a cluster network apart."""
    back = {"cluster_switch": "back", "cluster_link": Link(10**10)}
    hosts = tuple(replace(host, **back) for host in topology.hosts)  # type: ignore[arg-type]
    return replace(topology, hosts=hosts, switches=(*topology.switches, Switch("back")))


def test_hosts_are_dealt_out_over_switches_and_osds_over_hosts() -> None:
    assert [(host.name, host.switch, host.osds) for host in TWO_RACKS.hosts] == [
        ("host1", "switch1", 2),
        ("host2", "switch1", 1),
        ("host3", "switch2", 1),
    ]
    assert {client.switch for client in TWO_RACKS.clients} == {"core"}


def test_one_switch_has_no_uplink() -> None:
    only = simple(3, 1, 1, 4, GIGABIT, GIGABIT)
    assert [switch.name for switch in only.switches] == ["core"]
    assert {cable.name for cable in cables(only, "x")} == {"host1", "host2", "host3", "client1", CONSOLE}


@pytest.mark.parametrize("topology", [TWO_RACKS, with_back(TWO_RACKS), replace(TWO_RACKS, scaled=("a", "b"))])
def test_topology_survives_json(topology: Topology) -> None:
    limited = replace(topology.hosts[0], limits=MachineLimits(cpu=0.5, disk_read_bytes_s=10_000_000))
    topology = replace(topology, hosts=(limited, *topology.hosts[1:]))
    assert TypeAdapter(Topology).validate_python(json.loads(json.dumps(asdict(topology)))) == topology


def test_three_monitors_are_on_three_hosts_and_osds_are_numbered_by_host() -> None:
    found = place(TWO_RACKS)
    assert [found[f"mon.{letter}"] for letter in "abc"] == ["host1", "host2", "host3"]
    assert [found[f"osd.{number}"] for number in range(4)] == ["host1", "host1", "host2", "host3"]
    assert network().daemons("mgr") == ["mgr.x", "mgr.y"]


def test_a_second_proxy_of_a_kind_has_a_number() -> None:
    proxies = tuple(LabHost(f"proxy{number}", "core", GIGABIT, runs=("xrootd",)) for number in (1, 2))
    found = network(replace(TWO_RACKS, hosts=(*TWO_RACKS.hosts, *proxies)))
    assert found.gateways == ["xrootd", "xrootd-2"]
    assert found.host_of("xrootd-2") == "proxy2"


def test_addresses_are_unique_and_the_cluster_network_is_apart_where_there_is_one() -> None:
    together, apart = network(), network(with_back(TWO_RACKS))
    names = [member.name for member in TWO_RACKS.members]
    addresses = [together.address(name) for name in names]
    assert len({*addresses, together.console_address}) == len(names) + 1
    assert together.cluster_address("host2") == together.address("host2") == "10.4.2.2"
    assert apart.cluster_address("host2") == "10.4.3.2"


def test_every_member_is_joined_with_its_switch_and_every_switch_with_the_one_above() -> None:
    found = {cable.name: cable for cable in cables(TWO_RACKS, "llnd1")}
    assert found["host3"].lower == End("host3", "up0")
    assert (found["host3"].upper, found["host3"].switch) == (End(SWITCHES, "p-host3"), "switch2")
    assert found["switch2"].ends == (End(SWITCHES, "u-switch2"), End(SWITCHES, "d-switch2"))
    assert found["switch2"].switch == "core"
    assert found[CONSOLE].lower == End("", "llnd1")
    assert top_of(TWO_RACKS, "switch1") == "core"


def test_no_device_has_a_name_longer_than_the_kernel_takes() -> None:
    hosts = tuple(replace(host, name=f"abcdefghijk{number}") for number, host in enumerate(TWO_RACKS.hosts))
    devices = [
        end.device for cable in cables(with_back(replace(TWO_RACKS, hosts=hosts)), "") for end in cable.ends
    ]
    assert max(map(len, devices)) <= 15


def test_a_burst_is_never_below_what_the_kernel_hands_over_at_once() -> None:
    assert "burst 131072 " in shaping("up0", Link(100_000_000))
    assert "burst 1000000 " in shaping("up0", Link(2_000_000_000))
    assert shaping("up0", Link()) == ""


def test_hosts_are_the_failure_domain_where_there_are_enough_of_them() -> None:
    assert failure_domain(TWO_RACKS, 3) == "host"
    assert failure_domain(TWO_RACKS, 4) == "osd"
    assert failure_domain(None, 3) == "osd"


def test_a_mount_that_failed_tells_what_the_client_said_and_not_what_its_log_had_after_that() -> None:
    lines = [
        "ceph-fuse[812]: starting ceph client",
        "ceph-fuse[812]: ceph mount failed with (2) No such file or directory",
        "2026-11-26T09:44:45.977+0000 7f04056af240 -1 init, newargv = 0x556cdee4c620 newargc=15",
    ]
    assert members._last_words(lines) == lines[1]
    assert members._last_words(lines[2:]) == lines[2]
    assert members._last_words([]) == ""
