"""Faults of clients: too little CPU or memory, a busy neighbour, a clock that is off."""

from __future__ import annotations

import os
from collections.abc import Mapping

from leadline.errors import LabError, SpecError
from leadline.lab.cgroups import ControlGroups
from leadline.lab.gateways.gateway import find_plugin
from leadline.lab.inject import daemons
from leadline.lab.inject.fault import FaultKind, FaultOption, FaultScene, no_hosts
from leadline.lab.inject.injection import FaultPlan, FaultStep, LabAction
from leadline.lab.network.topology import LabClient, Topology
from leadline.lab.record import LabRecord
from leadline.units import (
    format_bit_rate,
    format_duration,
    format_size,
    parse_bit_rate,
    parse_duration,
    parse_percent,
    parse_size,
)

_ON = "a client, such as client2"
_MEMORY_BYTES_MIN = 16 << 20  # below it no program of Ceph's starts
_CLOCK = "client-clock"
_FAKETIME = "faketime/libfaketimeMT.so.1"


def environment(record: LabRecord, member: str, inherited: Mapping[str, str]) -> dict[str, str]:
    """What a command that is started on a client is given while its clock is off; else nothing."""
    for item in record.injections:
        if item.kind == _CLOCK and item.on == member:
            preload = [str(find_plugin(_FAKETIME)), inherited.get("LD_PRELOAD", "")]
            return {
                "LD_PRELOAD": ":".join(filter(None, preload)),
                "FAKETIME": f"{_offset_s(item.options['offset']):+.9f}",
                "FAKETIME_DONT_FAKE_MONOTONIC": "1",
                # Else each process makes its own, and leaves them when it is killed.
                "FAKETIME_SHARED": "{0} {0}".format(clock_name(record.fsid, member)),
            }
    return {}


def clock_name(fsid: str, member: str) -> str:
    """The POSIX semaphore and shared memory that libfaketime wants for the processes of one client."""
    return f"/leadline-{fsid[:8]}-{member}"


def _clients(record: LabRecord) -> list[str]:
    return [client.name for client in record.network.topology.clients] if record.network else []


def _topology(scene: FaultScene) -> Topology:
    if scene.record.network is None:
        raise LabError(f"lab {scene.record.name} has no clients", no_hosts(scene.record))
    return scene.record.network.topology


def _slow_cpu(scene: FaultScene) -> FaultPlan:
    share = parse_percent(scene.options["cpu"]) / 100
    words = f"all that runs on {scene.on} is held to {share:.0%} of a core"
    return _limited(scene, words, "cpu", (str(share), "0"))


def _low_memory(scene: FaultScene) -> FaultPlan:
    size = _memory(scene.options["memory"])
    words = f"all that runs on {scene.on} may take {format_size(size)} more: what needs more is ended"
    return _limited(scene, words, "memory", ("0", str(size)))


def _limited(scene: FaultScene, words: str, controller: str, limits: tuple[str, str]) -> FaultPlan:
    do, undo = (
        LabAction("member-limit", (scene.on, *limits)),
        LabAction("member-unlimit", (scene.on, controller)),
    )
    return FaultPlan(words, (FaultStep(do, undo),), (f"{scene.on}/{controller}",))


def _memory(text: str) -> int:
    size = parse_size(text)
    if size < _MEMORY_BYTES_MIN:
        raise SpecError(f"{text!r}: no program of Ceph's starts with so little", "For example: memory=128M")
    return size


def _cores(text: str) -> int:
    most = os.cpu_count() or 1
    if not text.isdecimal() or not 1 <= int(text) <= most:
        raise SpecError(f"{text!r} is no number of this machine's cores", f"Write 1 to {most}.")
    return int(text)


def _busy_cpu(scene: FaultScene) -> FaultPlan:
    cores = _cores(scene.options["cores"])
    steps = tuple(_hog(scene.on, f"hog.{scene.on}.cpu{number}", "cpu") for number in range(cores))
    words = f"another program on {scene.on} uses {cores} of this machine's cores"
    return FaultPlan(words, steps, (f"{scene.on}/busy-cpu",))


def _busy_link(scene: FaultScene) -> FaultPlan:
    """Datagrams to or from another client, where there is one: a host's link would be loaded, too."""
    rate_bit_s, topology, network = (
        parse_bit_rate(scene.options["rate"]),
        _topology(scene),
        scene.record.network,
    )
    others = sorted(
        (member for member in topology.members if member.name != scene.on),
        key=lambda member: isinstance(member, LabClient),
    )
    peer = others[-1].name
    source, target = (scene.on, peer) if scene.options["direction"] == "from" else (peer, scene.on)
    address = network.address(target) if network else ""
    step = _hog(source, f"hog.{scene.on}.link", "link", address, str(rate_bit_s / 8))
    words = f"other traffic of {format_bit_rate(rate_bit_s)} goes from {source} to {target}"
    return FaultPlan(words, (step,), (f"{scene.on}/busy-link",))


def _hog(member: str, name: str, *words: str) -> FaultStep:
    return FaultStep(LabAction("hog", (name, member, *words)), LabAction("hog-end", (name,)))


def _direction(text: str) -> str:
    if text not in ("to", "from"):
        raise SpecError(f"{text!r} is no direction of a link", "Write to or from.")
    return text


def _offset_s(text: str) -> float:
    """Seconds of `5s`, `+5s` or `-1m`. Raises SpecError."""
    magnitude = parse_duration(text.removeprefix("+").removeprefix("-")) / 1e9
    if not magnitude:
        raise SpecError(f"{text!r}: a clock that is off by nothing is right", "For example: offset=5s")
    return -magnitude if text.startswith("-") else magnitude


def _clock(scene: FaultScene) -> FaultPlan:
    offset_s = _offset_s(scene.options["offset"])
    words = (
        f"the clock of what `lab exec {scene.on}` starts from now on is {format_duration(abs(offset_s))} "
        f"{'fast' if offset_s > 0 else 'slow'} (libfaketime)"
    )
    step = FaultStep(LabAction("clock", (scene.on,)), LabAction("clock-end", (scene.on,)))
    return FaultPlan(words, (step,), (f"{scene.on}/clock",))


def _no_cpu(record: LabRecord) -> str:
    return no_hosts(record) or ControlGroups(record.fsid).lacking("cpu")


def _no_memory(record: LabRecord) -> str:
    return no_hosts(record) or ControlGroups(record.fsid).lacking("memory")


def _no_faketime(record: LabRecord) -> str:
    reason = "libfaketime is not there; as root: apt-get install --no-install-recommends faketime"
    return no_hosts(record) or ("" if find_plugin(_FAKETIME) else reason)


KINDS = (
    FaultKind(
        "client-slow-cpu", "A client with too little CPU", _ON, _clients, _slow_cpu, (daemons.CPU,), _no_cpu
    ),
    FaultKind(
        "client-low-memory", "A client with too little memory", _ON, _clients, _low_memory,
        (FaultOption("memory", "256M", _memory, "for all that runs on it"),), _no_memory,
    ),
    FaultKind(
        "client-busy-cpu", "A client with a neighbour that computes", _ON, _clients, _busy_cpu,
        (FaultOption("cores", "1", _cores, "of this machine's"),), no_hosts,
    ),
    FaultKind(
        "client-busy-link", "A client with a neighbour that sends", _ON, _clients, _busy_link,
        (
            FaultOption("rate", "100Mbit", parse_bit_rate, "of the other traffic: UDP, it never gives way"),
            FaultOption("direction", "from", _direction, "`to` the client, or `from` it"),
        ),
        no_hosts,
    ),
    FaultKind(
        _CLOCK, "A client whose clock is off, for commands of `lab exec`", _ON, _clients, _clock,
        (FaultOption("offset", "5s", _offset_s, "fast; -5s is slow"),), _no_faketime,
    ),
)  # fmt: skip
