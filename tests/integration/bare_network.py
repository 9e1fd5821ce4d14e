"""A lab's network with nothing in it: two hosts, two clients, three switches; and traffic to judge it by."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from leadline.lab import record
from leadline.lab.cluster import process
from leadline.lab.inject import engine, wires
from leadline.lab.network import make
from leadline.lab.network.placement import LabNetwork, place
from leadline.lab.network.topology import Link, simple
from leadline.lab.record import LabRecord
from leadline.lab.spec import LabSpec

GIGABIT = Link(1_000_000_000)
PORT = 5201
# Takes what comes, and says how much of it: bytes of TCP, or datagrams of UDP.
SINK = """
import socket, sys
kind, address = sys.argv[1], (sys.argv[2], int(sys.argv[3]))
if kind == "udp":
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.setsockopt(socket.SOL_SOCKET, 33, 64 << 20)  # SO_RCVBUFFORCE
    server.bind(address)
    print("ready", flush=True)
    found = 0
    while server.recv(65536) != b"end":
        found += 1
    print(found, flush=True)
else:
    server = socket.create_server(address)
    print("ready", flush=True)
    while True:
        stream, _ = server.accept()
        while stream.recv(1 << 20):
            pass
"""
SOURCE = """
import socket, sys, time
kind, address, count, size = sys.argv[1], (sys.argv[2], int(sys.argv[3])), int(sys.argv[4]), int(sys.argv[5])
if kind == "udp":
    out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    out.setsockopt(socket.SOL_SOCKET, 32, 64 << 20)  # SO_SNDBUFFORCE
    out.connect(address)
    for number in range(count):
        out.send(bytes(size))
        if number % 50 == 49:
            time.sleep(0.002)
    time.sleep(0.2)
    for _ in range(100):
        out.send(b"end")
else:
    out = socket.create_connection(address)
    while True:
        out.sendall(bytes(size))
"""


@contextmanager
def made_lab(directory: Path, link: Link) -> Iterator[LabRecord]:
    directory.mkdir(mode=0o700)
    topology = simple(hosts=2, clients=2, switches=2, osds=2, link=link, uplink=Link(0, link.mtu_bytes))
    fsid = str(uuid.uuid4())
    network = LabNetwork(topology, "10.199.2.0/23", make.console_for(fsid), place(topology))
    made = LabRecord(
        name="wires", fsid=fsid, spec=replace(LabSpec(directory=directory, mount=False), topology=topology),
        directory=directory, run_directory=directory / "run", made_directory=True, owner_uid=os.geteuid(),
        created_unix_s=time.time(), state="up", network=network,
    )  # fmt: skip
    made.paths.logs.mkdir()
    (directory / record.LOCK).touch()
    record.write_record(made)
    variables = process.environment(fsid, directory, os.environ)
    try:
        make.make(network, made.paths, variables)
        yield made
    finally:
        for item in process.find_marked(fsid):
            os.kill(item.pid, 9)
        make.remove(fsid, made.paths, variables)
    assert not Path("/sys/class/net", network.console).exists()


def inside(lab: LabRecord, member: str, *words: str) -> list[str]:
    return [*make.entered(lab.paths, member), *words]


def asked(lab: LabRecord, member: str, *words: str) -> str:
    return subprocess.run(inside(lab, member, *words), capture_output=True, text=True, check=True).stdout


def everything(lab: LabRecord) -> dict[str, list[str]]:
    """What `tc` and `ip` say of each end, without the handles that the kernel draws."""
    found = {}
    for cable in wires.links(lab):
        for end in cable.ends:
            device = ("dev", end.device)
            queues = json.loads(asked(lab, end.namespace, "tc", "-json", "qdisc", "show", *device))
            (link,) = json.loads(asked(lab, end.namespace, "ip", "-d", "-json", "link", "show", *device))
            kept = {key: link[key] for key in ("flags", "mtu", "operstate", "gso_max_segs", "gso_max_size")}
            found[f"{end.namespace}/{end.device}"] = [
                *(f"{item['kind']} {item.get('options')}" for item in queues), str(kept),
            ]  # fmt: skip
    return found


def started(lab: LabRecord, member: str, program: str, *words: str) -> subprocess.Popen[str]:
    variables = process.environment(lab.fsid, lab.directory, os.environ)
    command = inside(lab, member, sys.executable, "-I", "-c", program, *words)
    return subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, text=True)


def ended(*children: subprocess.Popen[str]) -> None:
    for child in children:
        child.kill()
        child.wait()
        if child.stdout:
            child.stdout.close()


def sink(lab: LabRecord, member: str, kind: str) -> subprocess.Popen[str]:
    assert lab.network is not None
    child = started(lab, member, SINK, kind, lab.network.address(member), str(PORT))
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    return child


def received(lab: LabRecord, source: str, target: str, count: int, size: int) -> int:
    """How many of `count` datagrams arrive."""
    assert lab.network is not None
    taker = sink(lab, target, "udp")
    words = ("udp", lab.network.address(target), str(PORT), str(count), str(size))
    giver = started(lab, source, SOURCE, *words)
    try:
        giver.wait(60)
        assert taker.stdout is not None
        return int(taker.stdout.readline())
    finally:
        ended(giver, taker)


def rate_bit_s(lab: LabRecord, device: str = "p-host1", counter: str = "tx", over_s: float = 1.0) -> float:
    """What a port of the switches carries, by the kernel's counter of the interface."""

    def count() -> int:
        (link,) = json.loads(asked(lab, "switches", "ip", "-s", "-json", "link", "show", "dev", device))
        return int(link["stats64"][counter]["bytes"])

    before, began_s = count(), time.monotonic()
    time.sleep(over_s)
    return (count() - before) * 8 / (time.monotonic() - began_s)


def inject(lab: LabRecord, kind: str, on: str, **options: str) -> str:
    return engine.inject(lab.directory, os.environ, kind, on, options).id


def clear(lab: LabRecord, identifier: str) -> None:
    assert engine.clear(lab.directory, os.environ, [identifier])[1] == []


def reaches(lab: LabRecord, source: str, target: str, size: int = 64) -> bool:
    """True where datagrams of this size get there."""
    assert lab.network is not None
    taker = sink(lab, target, "udp")
    giver = started(lab, source, SOURCE, "udp", lab.network.address(target), str(PORT), "5", str(size))
    try:
        giver.wait(10)
        taker.wait(0.5)
        assert taker.stdout is not None
        return taker.stdout.readline() == "5\n"
    except subprocess.TimeoutExpired:
        return False
    finally:
        ended(giver, taker)
