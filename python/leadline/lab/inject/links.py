"""Faults of links: slower, cut, lossy, late, with a port that passes small packets only, or parted."""

from __future__ import annotations

import os
from collections.abc import Iterator

from leadline.errors import LabError, SpecError, UsageError
from leadline.lab.inject.fault import FaultKind, FaultOption, FaultScene, no_hosts, setting
from leadline.lab.inject.injection import FaultPlan, FaultStep, LabAction
from leadline.lab.inject.wires import DIRECTIONS, FROM, TO, drop_share, links, osds_of
from leadline.lab.network.placement import Cable
from leadline.lab.network.topology import Topology
from leadline.lab.record import LabRecord
from leadline.lab.requirements import refusal
from leadline.units import format_bit_rate, format_duration, parse_bit_rate, parse_duration, parse_percent

_LINK = "a link, such as host1, host1-back, client2 or switch1 (its uplink)"
_OTHERS = "others"
_MTU_MIN, _SMALL_MTU = 576, 1000  # RFC 791: what everybody must take; below what all of Ceph's packets fit in
_ONE_IN_MIN, _ONE_IN_MAX = 50, 1_000_000  # below it no OSD finishes anything


def _directions(text: str) -> tuple[str, ...]:
    if text == "both":
        return DIRECTIONS
    if text not in DIRECTIONS:
        raise SpecError(f"{text!r} is no direction of a link", "Write to, from or both.")
    return (text,)


_DIRECTION = FaultOption(
    "direction", "both", _directions, "`to` the host, client or lower switch, `from` it, or `both`"
)


def _of(record: LabRecord) -> list[str]:
    return [cable.name for cable in links(record)]


def _link(scene: FaultScene) -> Cable:
    return next(cable for cable in links(scene.record) if cable.name == scene.on)


def _words(scene: FaultScene) -> str:
    """Which way of which link."""
    which = {"both": "the link of", TO: "the way to", FROM: "the way from"}[scene.options["direction"]]
    return f"{which} {scene.on}"


def _each(scene: FaultScene, part: str, words: str, do: LabAction, undo: LabAction) -> FaultPlan:
    """One step for each direction. Link and direction are put in as the first words of a action."""
    directions = _directions(scene.options["direction"])
    steps = tuple(
        FaultStep(*(LabAction(action.kind, (scene.on, direction, *action.words)) for action in (do, undo)))
        for direction in directions
    )
    return FaultPlan(words, steps, tuple(f"{scene.on}/{part}/{direction}" for direction in directions))


def _rate(scene: FaultScene) -> FaultPlan:
    asked, made = parse_bit_rate(scene.options["rate"]), _link(scene).link.rate_bit_s
    was = format_bit_rate(made) if made else "unlimited"
    words = f"{_words(scene)} carries {format_bit_rate(asked)} (it was made {was})"
    return _each(scene, "queue", words, LabAction("link-rate", (str(asked),)), LabAction("link-rate", ()))


def _late(scene: FaultScene) -> FaultPlan:
    delay_us = parse_duration(scene.options["delay"]) // 1000
    words = f"each packet on {_words(scene)} comes {format_duration(delay_us / 1e6)} late (netem)"
    return _each(scene, "queue", words, LabAction("link-delay", (str(delay_us),)), LabAction("link-rate", ()))


def _lossy(scene: FaultScene) -> FaultPlan:
    fraction = parse_percent(scene.options["share"]) / 100
    words = f"{_words(scene)} loses {fraction:.3%} of its packets at random"
    do, undo = LabAction("drop", ("share", str(fraction))), LabAction("drop-end", ("share",))
    return _each(scene, "packets", words, do, undo)


def _mtu(text: str) -> int:
    if text == "auto":
        return _SMALL_MTU
    if not text.isdecimal() or not _MTU_MIN <= int(text) <= 65_535:
        raise SpecError(f"{text!r} is no MTU", f"Write bytes from {_MTU_MIN} on, such as 1500, or auto.")
    return int(text)


def _mismatched(scene: FaultScene) -> FaultPlan:
    made = _link(scene).link.mtu_bytes
    asked = 1500 if scene.options["mtu"] == "auto" and made > 1500 else _mtu(scene.options["mtu"])
    if asked >= made:
        raise UsageError(
            f"{scene.on} was made with an MTU of {made} bytes: all its packets pass a port of {asked}",
            "Name a smaller one: mtu=1000",
        )
    words = f"{_words(scene)} passes a port with an MTU of {asked} bytes, where both ends have {made}"
    do, undo = LabAction("drop", ("larger", str(asked))), LabAction("drop-end", ("larger",))
    return _each(scene, "packets", words, do, undo)


def _cut(scene: FaultScene) -> FaultPlan:
    step = FaultStep(LabAction("carrier", (scene.on, "down")), LabAction("carrier", (scene.on, "up")))
    return FaultPlan(f"the cable of {scene.on} is out", (step,), (f"{scene.on}/carrier",))


def _members(record: LabRecord) -> list[str]:
    """Hosts, clients, and switches with something below them."""
    if record.network is None:
        return []
    topology = record.network.topology
    names = [member.name for member in topology.members]
    return names + [switch.name for switch in topology.switches if switch.above]


def _expanded(topology: Topology, names: str) -> list[str]:
    """The hosts and clients of a list of names: a switch stands for all below it."""
    found: list[str] = []
    known = {member.name: [member.name] for member in topology.members}
    known |= {switch.name: list(_below(topology, switch.name)) for switch in topology.switches}
    for name in filter(None, (part.strip() for part in names.split(","))):
        if name not in known:
            raise UsageError(f"{name!r} is no host, client or switch", f"There are: {', '.join(known)}.")
        found += [item for item in known[name] if item not in found]
    return found


def _below(topology: Topology, switch: str) -> Iterator[str]:
    yield from (member.name for member in topology.members if member.switch == switch)
    for lower in topology.switches:
        if lower.above == switch:
            yield from _below(topology, lower.name)


def _parted(scene: FaultScene) -> FaultPlan:
    network = scene.record.network
    if network is None:
        raise LabError(f"lab {scene.record.name} has no hosts", no_hosts(scene.record))
    topology = network.topology
    ours = _expanded(topology, f"{scene.on},{scene.options['with']}")
    text = scene.options["from"]
    everybody = [member.name for member in topology.members]
    theirs = (
        [name for name in everybody if name not in ours] if text == _OTHERS else _expanded(topology, text)
    )
    both = [name for name in ours if name in theirs]
    if both or not theirs:
        raise UsageError(
            f"{both[0]} is on both sides" if both else "there is nobody on the other side",
            "Name two groups: partition host1 with=host2 from=host3,client1",
        )
    steps, holds = [], []
    cables = {cable.name: cable.lower.namespace for cable in links(scene.record)}
    for cable in (cable for name in ours for cable, member in cables.items() if member == name):
        holds.append(f"{cable}/partition")
        for direction in DIRECTIONS:
            undo = LabAction("drop-end", (cable, direction, "parted"))
            steps.append(FaultStep(LabAction("drop", (cable, direction, "parted", *theirs)), undo))
    words = f"nothing passes between {', '.join(ours)} and {', '.join(theirs)}"
    return FaultPlan(words, tuple(steps), tuple(holds))


def _with_osds(record: LabRecord) -> list[str]:
    if record.network is None:
        return []
    hosts = [host.name for host in record.network.topology.hosts if host.osds]
    return hosts + record.daemons("osd")


def _held(scene: FaultScene) -> FaultPlan:
    max_s = parse_duration(scene.options["max"]) / 1e9
    words = (
        f"each message that reaches {scene.on} waits 0 to {format_duration(max_s)}, "
        f"{format_duration(max_s / 2)} on average: Ceph's own messenger holds it, not the link"
    )
    step = FaultStep(
        LabAction("message-delay", (scene.on, str(max_s))), LabAction("message-delay-end", (scene.on,))
    )
    return FaultPlan(words, (step,), tuple(f"{osd}/delay" for osd in osds_of(scene.record, scene.on)[2]))


def _one_in(text: str) -> int:
    if not text.isdecimal() or not _ONE_IN_MIN <= int(text) <= _ONE_IN_MAX:
        raise SpecError(f"{text!r} is no number of operations", f"Write {_ONE_IN_MIN} to {_ONE_IN_MAX}.")
    return int(text)


def _reset(scene: FaultScene) -> FaultPlan:
    count, (who, _, osds) = _one_in(scene.options["one-in"]), osds_of(scene.record, scene.on)
    step = setting(scene, who, "ms_inject_socket_failures", str(count))
    words = (
        f"{scene.on} breaks a connection at one in {count} operations on it: Ceph's own messenger does it, "
        "not the link"
    )
    return FaultPlan(words, (step,), tuple(f"{osd}/resets" for osd in osds))


def _tried(lines: str, otherwise: str) -> str:
    """Tries lines of `tc`; "" or `otherwise`, with what the kernel says against them."""
    said = refusal("tc", lines, os.environ)
    return f"{otherwise} (tried: {said})" if said else ""


def _no_filter(record: LabRecord) -> str:
    program = f"bpf bytecode '{drop_share(0.5)}' direct-action"
    lines = f"qdisc add dev lo clsact\nfilter add dev lo ingress protocol all {program}\n"
    otherwise = "the kernel cannot drop packets by a filter: it needs sch_ingress and cls_bpf"
    return no_hosts(record) or _tried(lines, otherwise)


def _no_netem(record: LabRecord) -> str:
    otherwise = (
        "the kernel has no netem: it needs sch_netem (CONFIG_NET_SCH_NETEM; Debian's kernels have it); "
        "message-delay delays by Ceph's own messenger"
    )
    return no_hosts(record) or _tried("qdisc add dev lo root netem delay 1ms\n", otherwise)


KINDS = (
    FaultKind(
        "link-rate", "A link of another rate", _LINK, _of, _rate, lacking=no_hosts,
        options=(FaultOption("rate", "100Mbit", parse_bit_rate, "bits per second"), _DIRECTION),
    ),
    FaultKind("link-down", "A cable that is out", _LINK, _of, _cut, lacking=no_hosts),
    FaultKind(
        "link-loss", "A link that loses packets at random", _LINK, _of, _lossy, lacking=_no_filter,
        options=(FaultOption("share", "1%", parse_percent, "of the packets, each for itself"), _DIRECTION),
    ),
    FaultKind(
        "link-delay", "A link on which each packet comes late", _LINK, _of, _late, lacking=_no_netem,
        options=(FaultOption("delay", "5ms", parse_duration, "for each packet of a direction"), _DIRECTION),
    ),
    FaultKind(
        "mtu-mismatch", "A port that drops large packets and says nothing", _LINK, _of, _mismatched,
        lacking=_no_filter,
        options=(
            FaultOption("mtu", "auto", _mtu, f"of the port; auto: 1500, or {_SMALL_MTU} where all have 1500"),
            _DIRECTION,
        ),
    ),
    FaultKind(
        "partition", "Nothing passes between two groups", "a host, client or switch (all below it)",
        _members, _parted, lacking=_no_filter,
        options=(
            FaultOption("with", "", str, "who else is on its side, such as host2,host3"),
            FaultOption("from", _OTHERS, str, "the other side; `others`: all but the machine itself"),
        ),
    ),
    FaultKind(
        "message-delay", "OSDs that get each message late, by Ceph's own messenger",
        "a host, or an OSD such as osd.1", _with_osds, _held, lacking=no_hosts,
        options=(FaultOption("max", "100ms", parse_duration, "a message waits from 0 to this, evenly"),),
    ),
    FaultKind(
        "connection-resets", "OSDs whose connections break, by Ceph's own messenger",
        "a host, or an OSD such as osd.1", _with_osds, _reset, lacking=no_hosts,
        options=(FaultOption("one-in", "100", _one_in, "reads and writes of a socket breaks it"),),
    ),
)  # fmt: skip
