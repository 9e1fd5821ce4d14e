"""A data centre in lines of text: each switch with what hangs on it below it."""

from __future__ import annotations

from collections.abc import Iterator

from leadline.lab.network.topology import LabClient, LabHost, Link, MachineLimits, Switch, Topology
from leadline.units import format_bit_rate, format_rate, format_size

_STEP = "  "


def outline(topology: Topology) -> Iterator[str]:
    """Depth first, from each switch that has none above it."""
    for switch in topology.switches:
        if not switch.above:
            yield from _below(topology, switch, "")


def _below(topology: Topology, switch: Switch, indent: str) -> Iterator[str]:
    yield f"{indent}{switch.name}" + (f"  uplink {link_words(switch.uplink)}" if switch.above else "")
    inner = indent + _STEP
    for member in topology.members:
        if member.switch == switch.name:
            yield f"{inner}{member.name}  {link_words(member.link)}{_has(topology, member)}"
    for host in topology.hosts:
        if host.cluster_switch == switch.name:
            yield f"{inner}{host.name}, cluster network  {link_words(host.cluster_link)}"
    for lower in topology.switches:
        if lower.above == switch.name:
            yield from _below(topology, lower, inner)


def link_words(link: Link) -> str:
    """`1.00 Gbit/s`, with the MTU where it is not Ethernet's own."""
    rate = format_bit_rate(link.rate_bit_s) if link.rate_bit_s else "no limit"
    return rate if link.mtu_bytes == Link().mtu_bytes else f"{rate}, MTU {link.mtu_bytes}"


def _has(topology: Topology, member: LabHost | LabClient) -> str:
    words: list[str] = []
    if isinstance(member, LabHost):
        if member.osds:
            words.append(f"{member.osds} OSD{'' if member.osds == 1 else 's'}")
        if member.name in topology.metadata:
            words.append("for metadata")
        words += member.runs
    return "".join(f"; {part}" for part in (" ".join(words), *limit_words(member.limits)) if part)


def limit_words(limits: MachineLimits) -> Iterator[str]:
    """What a host or client may use of this machine, a part at a time."""
    if limits.cpu:
        yield f"cpu {limits.cpu:g}"
    if limits.memory_bytes:
        yield format_size(limits.memory_bytes)
    if limits.disk_read_bytes_s:
        yield f"reads {format_rate(limits.disk_read_bytes_s)}"
    if limits.disk_write_bytes_s:
        yield f"writes {format_rate(limits.disk_write_bytes_s)}"
