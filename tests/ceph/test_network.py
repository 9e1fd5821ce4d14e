"""A lab with hosts as its clients use it: commands behind their links, mounts, ways, what status shows."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from leadline import lab as leadline_lab
from leadline.lab import mounts
from leadline.lab.cluster.process import poll
from leadline.lab.gateways.gateway import has_session
from leadline.lab.record import read_record
from support import Command, command_line

pytestmark = pytest.mark.ceph
SLOW_BIT_S = 200e6  # client1's link


def inside(leadline: Command, lab: leadline_lab.Lab, member: str, *words: str) -> str:
    """What a command on a host or client printed."""
    done = leadline("lab", "exec", member, "--dir", str(lab.directory), "--", *words)
    assert done.returncode == 0, done.stderr
    return done.stdout


def sent_bytes(leadline: Command, lab: leadline_lab.Lab, client: str) -> int:
    """What a client's device has sent, by the kernel (proc(5), /proc/net/dev)."""
    text = inside(leadline, lab, client, "cat", "/proc/net/dev")
    return int(text.partition("up0:")[2].split()[8])


def test_a_command_runs_in_its_clients_network_as_its_own_user(
    network_lab: leadline_lab.Lab, leadline: Command
) -> None:
    network = network_lab.record.network
    assert network is not None
    addresses = inside(leadline, network_lab, "client2", "ip", "-brief", "address", "show", "up0")
    assert f"{network.address('client2')}/24" in addresses
    assert inside(leadline, network_lab, "client2", "ceph", "fsid").strip() == network_lab.record.fsid
    told = inside(leadline, network_lab, "client2", "env").splitlines()
    assert f"CEPH_CONF={network_lab.record.paths.client_conf('client2')}" in told
    assert "CEPH_ARGS=--id client2" in told
    assert "LEADLINE_LAB_HOST=client2" in told


def test_exit_codes_and_pipes_are_the_commands_own(network_lab: leadline_lab.Lab, leadline: Command) -> None:
    asked = ("lab", "exec", "client1", "--dir", str(network_lab.directory), "--")
    assert leadline(*asked, "sh", "-c", "exit 9").returncode == 9
    assert leadline(*asked, "sh", "-c", "kill -TERM $$").returncode == -15
    assert leadline(*asked, "no-such-program").returncode == 127
    # What reads no further ends what writes, as in any pipe.
    assert leadline(*asked, "sh", "-c", "yes | head -n 1").stdout == "y\n"


def test_a_mount_is_the_clients_own_and_seen_from_the_machine(
    network_lab: leadline_lab.Lab, leadline: Command
) -> None:
    point = network_lab.record.paths.client_mount("client2")
    assert network_lab.record.network is not None
    asked = ("lab", "mount", "client2", "--dir", str(network_lab.directory))
    try:
        for words in ("has it mounted on", "had it mounted already on"):
            done = leadline(*asked)
            assert (done.returncode, done.stdout) == (0, f"client2 {words} {point}\n"), done.stderr
        assert (point / "replicated").is_dir()
        (daemon,) = (
            item for item in read_record(network_lab.directory).processes if item.name == "client.client2"
        )
        network = Path(f"/proc/{daemon.pid}/ns/net").stat()
        assert os.path.samestat(network, network_lab.record.paths.namespace("client2").stat())
        assert network_lab.status().client_mounts == {"client2": True}
        drawn = leadline("lab", "status", "--dir", str(network_lab.directory)).stdout
        assert f"{network_lab.record.network.address('client2')}; mounted\n" in drawn
        (way,) = (item for item in network_lab.targets_from("client2") if item.way == "ceph-fuse")
        assert (way.where, way.reason) == (str(point / "replicated"), "")
    finally:
        done = leadline("lab", "unmount", "client2", "--dir", str(network_lab.directory))
    assert done.returncode == 0, done.stderr
    assert not point.exists()
    assert network_lab.status().healthy


def test_a_mount_whose_daemon_died_is_replaced(network_lab: leadline_lab.Lab, leadline: Command) -> None:
    point = network_lab.record.paths.client_mount("client1")
    asked = ("lab", "mount", "client1", "/replicated", "--dir", str(network_lab.directory))
    try:
        assert leadline(*asked).returncode == 0
        (daemon,) = (
            item for item in read_record(network_lab.directory).processes if item.name == "client.client1"
        )
        os.kill(daemon.pid, 9)
        assert not network_lab.status().healthy
        again = leadline(*asked)
        assert again.stdout == f"client1 has it mounted on {point}\n", again.stderr
        assert list(point.iterdir()) == []
    finally:
        assert leadline("lab", "unmount", "client1", "--dir", str(network_lab.directory)).returncode == 0
    assert not mounts.is_mounted(point)


def test_a_directory_that_is_not_there_is_not_mounted_and_leaves_nothing(
    network_lab: leadline_lab.Lab, leadline: Command
) -> None:
    done = leadline("lab", "mount", "client1", "/none", "--dir", str(network_lab.directory))
    assert done.returncode != 0
    assert "client1 could not mount /none" in done.stderr
    assert "No such file or directory" in done.stderr
    assert not network_lab.record.paths.client_mount("client1").exists()
    assert network_lab.status().healthy


def test_the_ways_of_a_client_lead_to_hosts_of_the_lab(
    network_lab: leadline_lab.Lab, leadline: Command
) -> None:
    where = ("--dir", str(network_lab.directory), "--json")
    ways = {
        item["name"]: item
        for item in json.loads(leadline("lab", "targets", *where, "--host", "client1").stdout)["targets"]
    }
    network = network_lab.record.network
    assert network is not None
    assert ways["rados"]["where"].endswith("clients/client1.conf&user=client1")
    assert "lab mount client1" in ways["ceph-fuse"]["reason"]
    assert ways["nfs"]["reason"] == "no host of the topology runs nfs"
    if not ways["xrootd"]["reason"]:
        assert ways["xrootd"]["where"].startswith(f"root://{network.address('proxy1')}:")
    every = json.loads(leadline("lab", "targets", *where).stdout)
    assert set(every["clients"]) == {"client1", "client2"}


def test_the_file_systems_users_are_found_after_a_failover(network_lab: leadline_lab.Lab) -> None:
    def active() -> str:
        ranks = network_lab.ceph.json("status")["fsmap"]["by_rank"]
        return next((rank["name"] for rank in ranks if rank["status"] == "up:active"), "")

    before = active()
    assert has_session(network_lab.ceph, "admin")
    network_lab.ceph.run("mds", "fail", before)
    assert poll(lambda: active() not in ("", before), 60.0)
    assert has_session(network_lab.ceph, "admin")


def test_traffic_of_a_client_passes_its_own_link(
    network_lab: leadline_lab.Lab, leadline: Command, tmp_path: Path
) -> None:
    size = 4 << 20
    (tmp_path / "data").write_bytes(os.urandom(size))

    before = sent_bytes(leadline, network_lab, "client1")
    inside(leadline, network_lab, "client1", "rados", "-p", "objects", "put", "sent", str(tmp_path / "data"))
    assert sent_bytes(leadline, network_lab, "client1") - before > size
    inside(leadline, network_lab, "client1", "rados", "-p", "objects", "rm", "sent")


@contextmanager
def writing(lab: leadline_lab.Lab, leadline: Command, client: str) -> Iterator[None]:
    """A client writes objects as fast as it can."""
    asked = ("lab", "exec", client, "--dir", str(lab.directory), "--", "rados", "-p", "objects")
    with subprocess.Popen(
        command_line(*asked, "bench", "60", "write", "-b", "1M"), stdout=subprocess.DEVNULL
    ) as bench:
        try:
            yield
        finally:
            bench.terminate()
    assert leadline(*asked, "cleanup").returncode == 0


def test_status_shows_the_limit_of_a_link_reached(network_lab: leadline_lab.Lab, leadline: Command) -> None:
    """The share is held against the device's own counter, read in the client's namespace."""
    where = ("--dir", str(network_lab.directory))

    def link() -> Any:
        value = json.loads(leadline("lab", "status", *where, "--json").stdout)
        return next(item for item in value["network"]["links"] if item["name"] == "client1")

    def is_full() -> bool:
        return float(link()["sends"]["rate_bit_s"]) > 0.8 * SLOW_BIT_S

    with writing(network_lab, leadline, "client1"):
        assert poll(is_full, 40.0)
        begin, before = time.monotonic(), sent_bytes(leadline, network_lab, "client1")
        drawn = leadline("lab", "status", *where).stdout.splitlines()
        after, end = sent_bytes(leadline, network_lab, "client1"), time.monotonic()
    assert 0.5 * SLOW_BIT_S < (after - before) * 8 / (end - begin) < 1.1 * SLOW_BIT_S
    (line,) = (line for line in drawn if "─ client1 " in line)
    assert "200 Mbit/s" in line
    assert max(map(len, drawn[drawn.index("core") :])) <= 80
    assert poll(lambda: link()["sends"]["rate_bit_s"] < 0.1 * SLOW_BIT_S, 20.0)


def test_a_study_on_a_client_takes_its_ways_and_elsewhere_those_of_all_clients(
    network_lab: leadline_lab.Lab, leadline: Command
) -> None:
    elsewhere = leadline("plan", "quick", "--lab", "network", "--json")
    assert elsewhere.returncode == 0, elsewhere.stderr
    assert "on all clients of the lab, as with --hosts lab: client1, client2" in elsewhere.stderr
    assert "clients/client1.conf&user=client1" in elsewhere.stdout
    planned = inside(leadline, network_lab, "client2", *command_line("plan", "quick", "--lab", "--json"))
    assert "clients/client2.conf&user=client2" in planned
    network = network_lab.record.network
    assert network is not None
    ways = {item.name: item for item in network_lab.targets_from("client2")}
    # Asked for space, its server says where to go: to its host's address, not to where its name leads.
    assert ways["xrootd"].reason or f"root://{network.address('proxy1')}:" in planned


def test_what_a_client_writes_is_held_to_the_rate_of_its_link(
    network_lab: leadline_lab.Lab, leadline: Command, tmp_path: Path
) -> None:
    network, size_bytes = network_lab.record.network, 24 << 20
    assert network is not None
    client = network.topology.member("client1")
    assert client is not None
    file = tmp_path / "data"
    file.write_bytes(os.urandom(size_bytes))

    def shaped() -> tuple[int, int]:
        """Bytes that the client's end of its link has sent, and how often it had to hold one back."""
        words = ("tc", "-json", "-statistics", "qdisc", "show", "dev", "up0")
        (found,) = json.loads(inside(leadline, network_lab, "client1", *words))
        return found["bytes"], found["overlimits"]

    sent, held = shaped()
    began = time.monotonic()
    inside(leadline, network_lab, "client1", "rados", "--pool", "objects", "put", "held", str(file))
    took_s = time.monotonic() - began
    inside(leadline, network_lab, "client1", "rados", "--pool", "objects", "rm", "held")
    sent, held = shaped()[0] - sent, shaped()[1] - held
    assert sent > size_bytes
    assert held > 0
    burst_bytes = 1 << 20
    assert took_s > (sent - burst_bytes) * 8 / client.link.rate_bit_s


def test_no_two_parts_of_anything_are_on_one_host_and_crush_knows_the_switches(
    network_lab: leadline_lab.Lab,
) -> None:
    network = network_lab.record.network
    assert network is not None
    groups = network_lab.ceph.json("pg", "dump", "pgs_brief")["pg_stats"]
    assert groups
    for group in groups:
        hosts = [network.host_of(f"osd.{number}") for number in group["acting"]]
        assert len(set(hosts)) == len(hosts) == 3, group
    nodes = {node["id"]: node for node in network_lab.ceph.json("osd", "tree")["nodes"]}
    below = {
        (node["type"], node["name"]): {nodes[child]["name"] for child in node.get("children", ())}
        for node in nodes.values()
    }
    for host in network.topology.hosts:
        osds = {name for name in network.daemons("osd") if network.host_of(name) == host.name}
        if osds:
            assert below["host", host.name] == osds
            assert host.name in below["rack", host.switch]
