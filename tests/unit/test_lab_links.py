"""What passes a lab's links, from the kernel's counters to the drawing; and the ways of a client."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from leadline.errors import UsageError
from leadline.lab.network import members
from leadline.lab.network.drawing import WIDTH, drawing
from leadline.lab.network.links import EndCounters, LinkFlow, LinkRates, NetworkStatus, flow, parse
from leadline.lab.network.placement import LabNetwork, cables, place, wires_of
from leadline.lab.network.topology import LabHost, Link, MachineLimits, Topology, simple
from leadline.lab.record import GatewayRecord, LabRecord
from leadline.lab.spec import LabSpec
from leadline.lab.targets import targets_of
from leadline.wires import Wire

MBIT, GBIT = 10**6, 10**9


def topology(*, apart: bool = False) -> Topology:
    found = simple(3, 2, 2, 4, Link(GBIT), Link(2 * GBIT))
    proxy = LabHost("proxy1", "core", Link(GBIT), runs=("xrootd",), limits=MachineLimits(cpu=0.5))
    hosts = (*found.hosts, proxy, replace(proxy, name="proxy2", limits=MachineLimits()))
    if apart:
        hosts = tuple(
            replace(host, cluster_switch="core", cluster_link=Link(100 * MBIT)) if host.osds else host
            for host in hosts
        )
    return replace(found, hosts=hosts)


def made(shape: Topology) -> LabNetwork:
    return LabNetwork(shape, "10.1.2.0/23", "llnd0001", place(shape))


def status(shape: Topology, **changed: LinkRates) -> NetworkStatus:
    network = made(shape)
    links = [
        LinkRates(
            cable.name,
            cable.switch,
            *(LinkFlow(0.0, cable.link.rate_bit_s, 0) for _ in cable.ends),
            is_up=True,
        )
        for cable in cables(shape, network.console)
    ]
    found = {link.name: link for link in links} | changed
    addresses = {member.name: network.address(member.name) for member in shape.members}
    return NetworkStatus(shape, network.base, network.placement, addresses, tuple(found.values()))


def test_a_drawing_has_each_switch_with_its_links_and_daemons_in_eighty_columns() -> None:
    sends, receives = LinkFlow(190 * MBIT, GBIT, 0), LinkFlow(940 * MBIT, GBIT, 7)
    busy = LinkRates("host1", "switch1", sends, receives, is_up=True)
    lines = list(drawing(status(topology(), host1=busy), ["osd.1"], {"client2": "mounted"}))
    assert max(map(len, lines)) <= WIDTH
    assert lines[1] == "core"
    place = next(number for number, line in enumerate(lines) if "host1" in line)
    assert lines[place].startswith("│  ├─ host1 ")
    words = lines[place].split("host1")[1].split()
    assert words == ["1.00", "Gbit/s", "190", "Mbit/s", "19%", "940", "Mbit/s", "94%", "████████"]
    below = " ".join(lines[place + 1 : place + 3])
    assert "10.1.2.1; mon.a mgr.x mds.a osd.0 osd.1 (ended); 7 packets dropped" in below
    assert any("10.1.2.4; xrootd; cpu 0.5" in line for line in lines)
    assert any("10.1.2.5; xrootd-2" in line for line in lines)
    assert any(line.endswith("10.1.2.7; mounted") for line in lines)
    assert lines[-1].split()[:4] == ["└─", "this", "machine", "none"]


def test_a_drawing_tells_a_link_that_is_down_and_one_that_was_made_faster() -> None:
    idle = LinkFlow(0.0, GBIT, 0)
    down = LinkRates("client1", "core", idle, idle, is_up=False)
    slow = LinkRates("client2", "core", replace(idle, limit_bit_s=100 * MBIT), idle, is_up=True)
    lines = list(drawing(status(topology(), client1=down, client2=slow)))
    assert next(line for line in lines if "client1" in line).endswith("link down")
    assert any("made with 1.00 Gbit/s, now 100 Mbit/s and 1.00 Gbit/s" in line for line in lines)


def test_a_cluster_network_of_its_own_is_drawn_at_its_own_switch() -> None:
    lines = list(drawing(status(topology(apart=True))))
    (line,) = (line for line in lines if "host3, among OSDs" in line)
    assert line.startswith("├─ ")
    assert "100 Mbit/s" in line


def end(time_s: float, sent: int, dropped: int = 0) -> EndCounters:
    return EndCounters(time_s, sent, dropped, 100 * MBIT, is_up=True)


def test_a_rate_is_of_bytes_over_the_time_between_two_readings() -> None:
    found = flow(end(10.0, 1_000_000, 1), end(10.5, 6_000_000, 4))
    assert (found.rate_bit_s, found.dropped) == (80 * MBIT, 3)
    assert found.share == pytest.approx(0.8)
    assert LinkFlow(5.0, 0, 0).share is None


def test_a_queue_made_anew_between_two_readings_shows_no_negative_rate() -> None:
    assert flow(end(1.0, 9_000, 5), end(1.5, 20, 0)) == LinkFlow(0.0, 100 * MBIT, 0)


def test_counters_are_the_queues_where_it_limits_and_the_devices_where_nothing_does() -> None:
    def device(name: str, *flags: str) -> dict[str, Any]:
        return {"ifname": name, "flags": list(flags), "stats64": {"tx": {"bytes": 50, "dropped": 2}}}

    queues: list[dict[str, Any]] = [
        {"kind": "tbf", "dev": "p-a", "root": True, "options": {"rate": 125000}, "bytes": 70, "drops": 9},
        {"kind": "noqueue", "dev": "p-b", "root": True, "options": {}, "bytes": 0, "drops": 0},
    ]
    found = parse(queues, [device("p-a", "UP"), device("p-b")], 1.0)
    assert found == {
        "p-a": EndCounters(1.0, 70, 9, MBIT, is_up=True),
        "p-b": EndCounters(1.0, 50, 2, 0, is_up=False),
    }


def with_hosts(directory: Path) -> LabRecord:
    shape = topology()
    gateways = (GatewayRecord("xrootd", 1094), GatewayRecord("xrootd-2", 1095, "has ended"))
    spec = LabSpec(topology=shape)
    return LabRecord(
        "lab", "0001", spec, directory, directory / "run", True, 0, 0.0,
        state="up", gateways=gateways, network=made(shape),
    )  # fmt: skip


def test_a_client_has_its_own_user_and_each_gateway_at_its_host(tmp_path: Path) -> None:
    ways = {item.name: item for item in targets_of(with_hosts(tmp_path), "client1")}
    assert ways["rados"].where == f"rados://objects?conf={tmp_path}/clients/client1.conf&user=client1"
    assert ways["rados"].variables["CEPH_ARGS"] == "--id client1"
    assert ways["xrootd"].where == "root://10.1.2.4:1094//"
    assert (ways["xrootd-2"].where, ways["xrootd-2"].reason) == ("", "has ended")
    assert ways["nfs"].reason == "no host of the topology runs nfs"
    assert ways["ceph-fuse"].reason == "not mounted; mount it with: leadline lab mount client1"


def test_a_host_is_told_the_administrators_user(tmp_path: Path) -> None:
    found = members.member_variables(with_hosts(tmp_path), "host2", {"CEPH_CONF": "/other", "HOME": "/root"})
    assert (found["CEPH_ARGS"], found["HOME"]) == ("--id admin", "/root")
    assert found["CEPH_CONF"] == f"{tmp_path}/ceph.conf"
    assert found["LEADLINE_LAB_HOST"] == "host2"
    assert found["LEADLINE_LAB_DIR"] == str(tmp_path)


def test_who_is_no_member_is_told_who_is(tmp_path: Path) -> None:
    lab = with_hosts(tmp_path)
    with pytest.raises(UsageError, match="no host or client 'clent1'") as caught:
        members.member_of(lab, "clent1")
    assert "Did you mean client1?" in caught.value.remedy
    with pytest.raises(UsageError, match="has no hosts") as caught:
        members.member_of(replace(lab, network=None), "client1")
    assert "--hosts" in caught.value.remedy
    with pytest.raises(UsageError, match="is not up: stopping"):
        members.member_of(replace(lab, state="stopping"), "client1")
    with pytest.raises(UsageError, match="network of client1 is gone"):
        members.member_of(lab, "client1")


def test_a_record_with_a_clients_mount_survives_its_file(tmp_path: Path) -> None:
    lab = replace(with_hosts(tmp_path), client_mounts={"client1": "/replicated"})
    assert LabRecord.from_json(lab.as_json()) == lab


def test_every_cable_between_parts_of_the_lab_is_a_wire_of_the_switches_namespace() -> None:
    found = {wire.name: wire for wire in wires_of(topology(apart=True), "/lab/net/switches")}
    assert {wire.namespace for wire in found.values()} == {"/lab/net/switches"}
    assert found["switch1"] == Wire("switch1", "uplink", "u-switch1", "/lab/net/switches", 2 * GBIT)
    assert (found["host1"].kind, found["host1"].device) == ("host", "p-host1")
    assert (found["host1-back"].device, found["host1-back"].rate_bits_per_s) == ("c-host1", 100 * MBIT)
    assert (found["client2"].kind, found["client2"].device) == ("client", "p-client2")
    assert "console" not in found
    unlimited = replace(topology().switches[1], uplink=Link(0))
    one = replace(topology(), switches=(topology().switches[0], unlimited, *topology().switches[2:]))
    assert next(wires_of(one, "")).rate_bits_per_s is None
