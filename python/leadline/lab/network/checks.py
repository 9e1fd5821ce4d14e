"""What is wrong with a topology and its names, before anything is made, and what is worth saying of it.

Names are those of devices and directories, with ranges as in ClusterShell.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from leadline.errors import SpecError, UsageError
from leadline.lab.network.placement import CONSOLE, LETTERS, SWITCHES, top_of
from leadline.lab.network.topology import COMPUTED_MAX, MEMBERS_MAX, REPLICAS, LabHost, Link, Topology
from leadline.lab.spec import GATEWAYS, OSDS_MAX, LabSpec
from leadline.units import MIB, format_bit_rate, format_size, printable
from leadline.yamlio.problems import suggest

NAME_MAX = 12  # a network device has at most 15 characters, and a port is `p-NAME`
_NAME = re.compile(rf"[A-Za-z][A-Za-z0-9-]{{0,{NAME_MAX - 1}}}")
_RESERVED = (SWITCHES, CONSOLE, "default")  # the last is CRUSH's root
_BACK_SUFFIX = "-back"  # ends the name of a host's second cable
_RANGE = re.compile(r"([A-Za-z0-9-]*)\[([0-9,-]+)\]([A-Za-z0-9-]*)")
_SPAN = re.compile(r"([0-9]{1,6})(?:-([0-9]{1,6}))?")
_EXAMPLES = "write a name such as host1, or a range such as host[1-11] or host[1-3,7]"


def check_member_name(name: str) -> None:
    """Raises SpecError for what cannot be a device, a directory and a place of CRUSH's map at once."""
    shown = repr(printable(name[:40]))
    if not _NAME.fullmatch(name):
        raise SpecError(
            f"{shown} cannot be the name of a device",
            f"use letters, digits and -, at most {NAME_MAX}, the first a letter",
        )
    if name in _RESERVED or name.endswith(_BACK_SUFFIX):
        raise SpecError(
            f"{shown} is a name that the lab or CRUSH has for something else",
            f"choose another: not {', '.join(_RESERVED)}, and none that ends with {_BACK_SUFFIX}",
        )


def expand(text: str, most: int = MEMBERS_MAX) -> tuple[str, ...]:
    """`host[1-3,7]` as four names, `host[01-03]` with its zeros, `host1` as itself: `most` at once.

    Raises SpecError.
    """
    if "[" not in text and "]" not in text:
        check_member_name(text)
        return (text,)
    shown = repr(printable(text[:40]))
    match = _RANGE.fullmatch(text)
    if match is None:
        raise SpecError(f"{shown} is neither a name nor a range of names", _EXAMPLES)
    names: list[str] = []
    for part in match[2].split(","):
        names += (f"{match[1]}{number}{match[3]}" for number in _numbers(part, shown, most))
        if len(names) > most:
            raise SpecError(f"{shown} is more than {most} names", "write a shorter range")
    for name in names:
        check_member_name(name)
    if len(set(names)) < len(names):
        raise SpecError(f"{shown} has a name twice", "name each once")
    return tuple(names)


def _numbers(part: str, shown: str, most: int) -> Sequence[str]:
    span = _SPAN.fullmatch(part)
    if span is None:
        raise SpecError(f"{shown} is neither a name nor a range of names", _EXAMPLES)
    first, last = int(span[1]), int(span[2] or span[1])
    if last < first:
        raise SpecError(f"{shown} counts down", _EXAMPLES)
    if last - first >= most:
        raise SpecError(f"{shown} is more than {most} names", "write a shorter range")
    return [str(number).zfill(len(span[1])) for number in range(first, last + 1)]


def dealt(names: Sequence[str], index: int, count: int) -> str:
    """Which of `names` the member `index` of `count` gets: neighbours together, as evenly as can be."""
    return names[index * len(names) // count]


ROLES = (*LETTERS, *GATEWAYS)
SWITCHES_MAX = 100
RATE_MIN_BIT_S = 1_000_000  # Ceph's own heartbeats need some of it
RATE_MAX_BIT_S = 400_000_000_000
MTU_MIN, MTU_MAX = 576, 9216
OSD_MEMORY_BYTES = 160 * MIB  # resident, after some load: 50 when idle, up to 400
_ROLE_MEMORY_BYTES = {"mgr": 300 * MIB}
_OTHER_MEMORY_BYTES = 60 * MIB
_FAST_BIT_S = 20_000_000_000  # about what a core moves between two namespaces
_MEMORY_INFORMATION = Path("/proc/meminfo")


@dataclass(frozen=True)
class Wrong:
    """What is wrong, and with what: `path` is section, name and key, as a topology file has them."""

    path: tuple[str, ...]
    message: str
    remedy: str


def check_topology(spec: LabSpec) -> None:
    """Raises UsageError for a topology that could not work, or not on this machine."""
    if spec.topology is None:
        return
    for wrong in wrongs(spec.topology, (spec.erasure_k, spec.erasure_m), available_bytes()):
        raise UsageError(f"{'.'.join(wrong.path)}: {wrong.message}", wrong.remedy)


def wrongs(
    topology: Topology, erasure: tuple[int, int], memory_bytes: int | None, *, made_here: bool = True
) -> Iterator[Wrong]:
    """Everything wrong. Whoever takes the first need not care that the later ones may follow from it.

    `memory_bytes` is what this machine can still give, None where nobody knows. Of one that is not
    `made_here` only its links matter: what is computed may have more OSDs than a lab, and no daemons.
    """
    found = False
    most = MEMBERS_MAX if made_here else COMPUTED_MAX
    for rule in (partial(_names, most), _uplinks, _places, _links):  # the others walk from switch to switch
        for wrong in rule(topology):
            found = True
            yield wrong
    if found:
        return
    for rule in (_joined, _frames):
        yield from rule(topology)
    if not made_here:
        return
    yield from _roles(topology)
    yield from _osds(topology, erasure)
    yield from _memory(topology, memory_bytes)


def available_bytes(file: Path = _MEMORY_INFORMATION) -> int | None:
    """The memory that this machine can still give without swapping; None where it does not say."""
    try:
        rows = dict(line.split(":", 1) for line in file.read_text().splitlines() if ":" in line)
        return int(rows["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError, IndexError):
        return None


def notes(topology: Topology) -> Iterator[str]:
    """What is possible and yet not what somebody may expect of this machine."""
    fastest = max((cable.rate_bit_s for _, cable in _cables(topology)), default=0)
    if fastest > _FAST_BIT_S:
        yield (
            f"a link of {format_bit_rate(fastest)} is more than a core of this machine moves: the core will"
            " be the limit, not the link"
        )
    cores = os.cpu_count() or 1
    many = [member.name for member in topology.members if member.limits.cpu > cores]
    if many:
        yield f"{', '.join(many)}: more cores than the {cores} of this machine, so cpu limits nothing there"


def _cables(topology: Topology) -> Iterator[tuple[tuple[str, ...], Link]]:
    """Each cable with the path of its rate."""
    for switch in topology.switches:
        yield ("switches", switch.name, "rate"), switch.uplink
    for host in topology.hosts:
        yield ("hosts", host.name, "link"), host.link
        if host.cluster_switch:
            yield ("hosts", host.name, "cluster", "link"), host.cluster_link
    for client in topology.clients:
        yield ("clients", client.name, "link"), client.link


def _names(most: int, topology: Topology) -> Iterator[Wrong]:
    if not topology.switches or not topology.hosts:
        yield Wrong((), "a data centre has a switch and a host at least", "write `switches:` and `hosts:`")
    if len(topology.switches) > SWITCHES_MAX:
        yield Wrong(("switches",), f"more than {SWITCHES_MAX} switches", "use fewer")
    members = len(topology.hosts) + len(topology.clients)
    if members > most:
        section = "hosts" if len(topology.hosts) > most else "clients"
        yield Wrong((section,), f"{members} hosts and clients are more than {most}", "use fewer of them")
    seen: dict[str, str] = {}
    sections = (("switches", topology.switches), ("hosts", topology.hosts), ("clients", topology.clients))
    for section, items in sections:
        for item in items:
            path = (section, item.name)
            try:
                check_member_name(item.name)
            except SpecError as error:
                yield Wrong(path, error.message, error.remedy)
            if item.name in seen:
                yield Wrong(
                    path, f"the name {item.name} is one of {seen[item.name]} already", "choose another"
                )
            seen[item.name] = section


def _uplinks(topology: Topology) -> Iterator[Wrong]:
    above = {switch.name: switch.above for switch in topology.switches}
    for name, asked in above.items():
        path = ("switches", name, "uplink")
        if asked and asked not in above:
            yield Wrong(path, f"there is no switch {asked!r}", suggest(asked, above))
            continue
        way, upper = [name], asked
        while upper in above and upper not in way:
            way.append(upper)
            upper = above[upper]
        if upper == name:  # others on the way say the same of themselves
            loop = " -> ".join((*way, name))
            yield Wrong(path, f"the uplinks make a loop: {loop}", "leave out `uplink` of the topmost switch")


def _places(topology: Topology) -> Iterator[Wrong]:
    switches = [switch.name for switch in topology.switches]
    found: list[tuple[tuple[str, ...], str]] = [
        (("hosts", host.name, "switch"), host.switch) for host in topology.hosts
    ]
    found += [
        (("hosts", host.name, "cluster", "switch"), host.cluster_switch)
        for host in topology.hosts
        if host.cluster_switch
    ]
    found += [(("clients", client.name, "switch"), client.switch) for client in topology.clients]
    for path, switch in found:
        if switch not in switches:
            yield Wrong(path, f"there is no switch {switch!r}", suggest(switch, switches))
    hosts = [host.name for host in topology.hosts]
    for name in topology.metadata:
        if name not in hosts:
            yield Wrong(("metadata",), f"there is no host {name!r}", suggest(name, hosts))


def _links(topology: Topology) -> Iterator[Wrong]:
    for path, link in _cables(topology):
        if link.rate_bit_s and not RATE_MIN_BIT_S <= link.rate_bit_s <= RATE_MAX_BIT_S:
            yield Wrong(
                path,
                f"{format_bit_rate(link.rate_bit_s)} is no rate that a lab works with",
                f"use {RATE_MIN_BIT_S // 10**6}Mbit to {RATE_MAX_BIT_S // 10**9}Gbit, or leave it out",
            )
        if not MTU_MIN <= link.mtu_bytes <= MTU_MAX:
            where = (*path[:-1], "mtu")
            yield Wrong(where, f"an MTU of {link.mtu_bytes} cannot be", f"use {MTU_MIN} to {MTU_MAX}")


def _joined(topology: Topology) -> Iterator[Wrong]:
    """All who speak to each other are on switches of one tree."""
    public = topology.hosts[0].switch
    for path, switch in (
        *((("hosts", host.name, "switch"), host.switch) for host in topology.hosts),
        *((("clients", client.name, "switch"), client.switch) for client in topology.clients),
    ):
        yield from _apart(topology, path, switch, public)
    behind = [host for host in topology.hosts if host.osds]
    apart = [host for host in behind if host.cluster_switch]
    for host in topology.hosts:
        back = ("hosts", host.name, "cluster")
        if apart and host.osds and not host.cluster_switch:
            yield Wrong(
                back,
                f"{apart[0].name} has a cluster network and {host.name} has OSDs without one",
                "give every host with OSDs a `cluster`, or none",
            )
        elif host.cluster_switch and apart:
            yield from _apart(topology, (*back, "switch"), host.cluster_switch, apart[0].cluster_switch)


def _apart(topology: Topology, path: tuple[str, ...], switch: str, other: str) -> Iterator[Wrong]:
    if top_of(topology, switch) != top_of(topology, other):
        yield Wrong(
            path,
            f"{switch} and {other} are not joined: no uplink leads from one to the other",
            f"give {top_of(topology, switch)} an uplink to {top_of(topology, other)}, or to one above both",
        )


def _frames(topology: Topology) -> Iterator[Wrong]:
    """An uplink drops without a word what is larger than its MTU, and no OSD would ever come up."""
    largest: dict[str, tuple[int, str]] = {}
    for member in topology.members:
        ends = [(member.switch, member.link)]
        if isinstance(member, LabHost) and member.cluster_switch:
            ends.append((member.cluster_switch, member.cluster_link))
        for home, link in ends:
            top = top_of(topology, home)
            largest[top] = max(largest.get(top, (0, "")), (link.mtu_bytes, member.name))
    for switch in topology.switches:
        frame, name = largest.get(top_of(topology, switch.name), (0, ""))
        if switch.above and switch.uplink.mtu_bytes < frame:
            yield Wrong(
                ("switches", switch.name, "mtu"),
                f"{name} sends frames of {frame} bytes and the uplink of {switch.name} carries"
                f" {switch.uplink.mtu_bytes}",
                f"write `mtu: {frame}` here, or once at the top for every link",
            )


def _roles(topology: Topology) -> Iterator[Wrong]:
    for host in topology.hosts:
        path = ("hosts", host.name, "runs")
        for role, times in Counter(host.runs).items():
            if role not in ROLES:
                yield Wrong(path, f"{role!r} is nothing that a host runs", suggest(role, ROLES))
            elif times > 1:
                yield Wrong(path, f"{host.name} runs {role} twice", "name it once")
    for role, letters in LETTERS.items():
        carriers = [host.name for host in topology.hosts if role in host.runs]
        if not carriers:
            yield Wrong(("hosts",), f"no host runs {role}", f"add {role} to `runs` of a host")
        if len(carriers) > len(letters):
            over = carriers[len(letters)]
            yield Wrong(
                ("hosts", over, "runs"),
                f"{len(carriers)} hosts run {role}",
                f"{len(letters)} are the most that a lab has",
            )


def _osds(topology: Topology, erasure: tuple[int, int]) -> Iterator[Wrong]:
    if topology.osd_count == 0:
        yield Wrong(("hosts",), "no host has an OSD", "write `osds: 1` or more for the hosts that store")
        return
    if topology.osd_count > OSDS_MAX:
        yield Wrong(("hosts",), f"{topology.osd_count} OSDs are too many", f"use at most {OSDS_MAX}")
    need, have = max(REPLICAS, sum(erasure)), topology.data_osd_count
    if have < need:
        apart = " next to those for the metadata" if topology.metadata else ""
        yield Wrong(
            ("hosts",),
            f"{have} OSDs{apart} are too few for {erasure[0]}+{erasure[1]} and {REPLICAS} replicas",
            f"each chunk needs one of its own: have {need} or more, or a smaller `ec`",
        )
    for name in topology.metadata:
        host = topology.member(name)
        if isinstance(host, LabHost) and not host.osds:
            yield Wrong(("metadata",), f"{name} has no OSD for the metadata", "name hosts with OSDs")
    if topology.metadata and topology.metadata_replicas < 2:
        yield Wrong(
            ("metadata",), "one OSD holds no second copy of the metadata", "name hosts with 2 OSDs or more"
        )


def _memory(topology: Topology, memory_bytes: int | None) -> Iterator[Wrong]:
    """What the daemons take, by host and together. A fault may show what less does; a start needs this."""
    total = 0
    for host in topology.hosts:
        roles = sum(_ROLE_MEMORY_BYTES.get(role, _OTHER_MEMORY_BYTES) for role in host.runs)
        need = host.osds * OSD_MEMORY_BYTES + roles
        total += need
        if 0 < host.limits.memory_bytes < need:
            yield Wrong(
                ("hosts", host.name, "memory"),
                f"{format_size(host.limits.memory_bytes)} do not hold what {host.name} runs",
                f"its {host.osds} OSDs and {len(host.runs)} other daemons take about {format_size(need)}",
            )
    if memory_bytes is not None and total > memory_bytes:
        yield Wrong(
            ("hosts",),
            f"its daemons take about {format_size(total)} of memory, and this machine has"
            f" {format_size(memory_bytes)} to give",
            f"use fewer OSDs (each takes about {format_size(OSD_MEMORY_BYTES)})",
        )
