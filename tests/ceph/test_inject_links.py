"""Faults of links and gateways as a cluster and its clients meet them, seen by what the cluster counts."""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from healthy import wait_until_healthy

from leadline import lab as leadline_lab
from leadline.lab.cluster.process import poll
from leadline.lab.inject import engine
from leadline.lab.record import read_record
from support import Command

pytestmark = pytest.mark.ceph

REACHED_S = 90.0
GATEWAY, PROBABILITY = "xrootd", "ms_inject_delay_probability"


@pytest.fixture
def lab(network_lab: leadline_lab.Lab) -> Iterator[leadline_lab.Lab]:
    """The lab of three hosts; left as it was found."""
    yield network_lab
    assert engine.clear(network_lab.directory, os.environ)[1] == []


def inject(lab: leadline_lab.Lab, kind: str, on: str, **options: str) -> str:
    return engine.inject(lab.directory, os.environ, kind, on, options).id


def clear(lab: leadline_lab.Lab, identifier: str) -> None:
    assert engine.clear(lab.directory, os.environ, [identifier])[1] == []


def is_up(lab: leadline_lab.Lab, number: int) -> bool:
    rows: list[dict[str, Any]] = lab.ceph.json("osd", "dump")["osds"]
    return any(row["osd"] == number and row["up"] for row in rows)


@pytest.fixture(scope="module")
def attentive(network_lab: leadline_lab.Lab) -> Iterator[None]:
    """OSDs that look after each other each second, and miss each other after 4."""
    wanted = {"osd_heartbeat_interval": "1", "osd_heartbeat_grace": "4"}
    for name, value in wanted.items():
        network_lab.ceph.run("config", "set", "global", name, value)
    yield
    for name in wanted:
        network_lab.ceph.run("config", "rm", "global", name)
    wait_until_healthy(network_lab)


@pytest.mark.usefixtures("attentive")
@pytest.mark.parametrize(("kind", "options"), [("link-down", {}), ("partition", {"from": "host1,host2"})])
def test_a_host_that_is_cut_off_loses_its_osd_until_it_is_not(
    lab: leadline_lab.Lab, kind: str, options: dict[str, str]
) -> None:
    identifier = inject(lab, kind, "host3", **options)
    assert poll(lambda: not is_up(lab, 3), REACHED_S)
    clear(lab, identifier)
    assert poll(lambda: is_up(lab, 3), REACHED_S)


def mean_latency_s(leadline: Command, lab: leadline_lab.Lab) -> float:
    """Of small writes, one after the other, as `rados bench` has it."""
    words = ["rados", "-p", "objects", "bench", "2", "write", "-b", "4096", "-t", "1"]
    done = leadline("lab", "exec", "client1", "--dir", str(lab.directory), "--", *words)
    assert done.returncode == 0, done.stderr
    (line,) = (line for line in done.stdout.splitlines() if line.startswith("Average Latency"))
    return float(line.split(":")[1])


def test_messages_are_late_while_they_are_delayed(lab: leadline_lab.Lab, leadline: Command) -> None:
    before_s = mean_latency_s(leadline, lab)
    # Every object has a copy there, so each write waits at least for one message: 50 ms on average.
    identifier = inject(lab, "message-delay", "host3", max="100ms")
    assert mean_latency_s(leadline, lab) > before_s + 0.02
    clear(lab, identifier)
    assert float(lab.ceph.json("tell", "osd.3", "config", "get", PROBABILITY)[PROBABILITY]) == 0


def test_connections_break_and_are_made_again(lab: leadline_lab.Lab, leadline: Command) -> None:
    log = lab.record.paths.log("osd.3")

    def broken() -> int:
        return log.read_text(errors="replace").count("injecting socket failure")

    before = broken()
    inject(lab, "connection-resets", "host3", **{"one-in": "100"})
    mean_latency_s(leadline, lab)
    assert poll(lambda: broken() > before, REACHED_S)


def gateway(lab: leadline_lab.Lab) -> tuple[str, int]:
    (found,) = (item for item in read_record(lab.directory).gateways if item.name == GATEWAY)
    if found.reason:
        pytest.skip(f"NOT RUN: {found.reason}")
    return lab.record.address_of(GATEWAY), found.port


def replies(address: tuple[str, int], wait_s: float) -> bool:
    """True where the first words of XRootD's protocol are answered in this time."""
    try:
        with socket.create_connection(address, timeout=wait_s) as stream:
            stream.sendall(struct.pack(">iiiii", 0, 0, 0, 4, 2012))
            return len(stream.recv(16)) == 16
    except OSError:
        return False


def test_a_gateway_that_hangs_takes_connections_and_answers_nothing(lab: leadline_lab.Lab) -> None:
    address = gateway(lab)
    assert poll(lambda: replies(address, 5.0), REACHED_S)
    identifier = inject(lab, "gateway-paused", GATEWAY)
    assert not replies(address, 1.0)
    clear(lab, identifier)
    assert poll(lambda: replies(address, 5.0), REACHED_S)


def test_a_gateway_that_ended_is_back_on_its_port(lab: leadline_lab.Lab) -> None:
    address = gateway(lab)
    identifier = inject(lab, "gateway-down", GATEWAY)
    assert not replies(address, 1.0)
    assert not lab.status().healthy
    clear(lab, identifier)
    assert replies(address, 5.0)
    assert gateway(lab) == address


def test_a_gateway_with_little_cpu_is_in_a_group_of_its_own_meanwhile(lab: leadline_lab.Lab) -> None:
    gateway(lab)
    (found,) = (item for item in read_record(lab.directory).processes if item.name == GATEWAY)

    def groups() -> str:
        return Path(f"/proc/{found.pid}/cgroup").read_text()

    before = groups()
    identifier = inject(lab, "gateway-slow-cpu", GATEWAY, cpu="20%")
    assert f"/leadline-{lab.record.fsid[:8]}/fault:{GATEWAY}\n" in groups()
    clear(lab, identifier)
    assert groups() == before
