"""A lab's network in lines of text: as it is asked for, and as it is now with what passes each link."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from leadline.lab.network.links import LinkFlow, LinkRates, NetworkStatus
from leadline.lab.network.placement import CONSOLE, top_of
from leadline.lab.network.topology import LabClient, LabHost, Link, MachineLimits, Switch, Topology
from leadline.units import format_bit_rate, format_rate, format_size

_STEP = "  "


def outline(topology: Topology) -> Iterator[str]:
    """Depth first, from each switch that has none above it."""
    for switch in topology.switches:
        if not switch.above:
            yield from _outlined(topology, switch, "")


def _outlined(topology: Topology, switch: Switch, indent: str) -> Iterator[str]:
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
            yield from _outlined(topology, lower, inner)


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


WIDTH = 80
_NAME_MIN, _BAR = 18, 8
_FORK, _LAST, _ON, _OVER = "├─ ", "└─ ", "│  ", "   "


@dataclass(frozen=True)
class _Node:
    """One line of the tree: a link's name as it is shown, what it was made with, and what is below it."""

    name: str
    link: Link | None
    rates: LinkRates | None
    words: tuple[str, ...] = ()
    below: tuple[_Node, ...] = ()


def drawing(
    status: NetworkStatus, ended: Collection[str] = (), notes: Mapping[str, str] | None = None
) -> Iterator[str]:
    """Each switch with what hangs on it; `ended` names the daemons that run no more, `notes` are of members.

    `sends` is from below into the switch above, `receives` the other way.
    """
    topology = status.topology
    said = {
        member.name: (*_daemons(status, member.name, ended), *filter(None, [(notes or {}).get(member.name)]))
        for member in topology.members
    }
    console_at = top_of(topology, topology.hosts[0].switch)
    roots = [
        _Node(item.name, None, None, (), tuple(_below(status, item.name, console_at, said)))
        for item in topology.switches
        if not item.above
    ]
    width = max(_NAME_MIN, *(_width(root, 0) for root in roots))
    yield f"{'':<{width}} {'limit':<12}{'sends':>12}     {'receives':>12}"
    for root in roots:
        yield root.name
        yield from _lines(root.below, "", width)


def _below(
    status: NetworkStatus, switch: str, console_at: str, said: Mapping[str, tuple[str, ...]]
) -> Iterator[_Node]:
    topology = status.topology
    for lower in topology.switches:
        if lower.above == switch:
            nodes = tuple(_below(status, lower.name, console_at, said))
            yield _Node(lower.name, lower.uplink, status.link(lower.name), (), nodes)
    for member in topology.members:
        if member.switch == switch:
            words = (status.addresses[member.name], *said[member.name])
            words += tuple(limit_words(member.limits))
            yield _Node(member.name, member.link, status.link(member.name), words)
        if isinstance(member, LabHost) and member.cluster_switch == switch:
            name = f"{member.name}, among OSDs"
            yield _Node(name, member.cluster_link, status.link(f"{member.name}-back"))
    if switch == console_at:
        yield _Node("this machine", Link(), status.link(CONSOLE))


def _daemons(status: NetworkStatus, member: str, ended: Collection[str]) -> tuple[str, ...]:
    names = [name for name, host in status.placement.items() if host == member]
    return (" ".join(f"{name} (ended)" if name in ended else name for name in names),) if names else ()


def _width(node: _Node, depth: int) -> int:
    return max(len(_FORK) * depth + len(node.name), *(_width(item, depth + 1) for item in node.below), 0)


def _lines(nodes: tuple[_Node, ...], before: str, width: int) -> Iterator[str]:
    for node in nodes:
        last = node is nodes[-1]
        yield f"{before + (_LAST if last else _FORK) + node.name:<{width}} {_figures(node)}".rstrip()
        inner = before + (_OVER if last else _ON)
        own = inner + (_ON if node.below else _OVER)
        words = "; ".join((*node.words, *_unusual(node)))
        yield from (own + line for line in textwrap.wrap(words, WIDTH - len(own)))
        yield from _lines(node.below, inner, width)


def _figures(node: _Node) -> str:
    rates = node.rates
    if rates is None:
        return ""
    if not rates.is_up:
        return "link down"
    limit = rates.sends.limit_bit_s or rates.receives.limit_bit_s
    text = f"{format_bit_rate(limit) if limit else 'none':<12}{_flow(rates.sends)}{_flow(rates.receives)}"
    shares = [item.share for item in (rates.sends, rates.receives) if item.share is not None]
    return f"{text} {'█' * min(_BAR, round(_BAR * max(shares, default=0.0)))}"


def _flow(found: LinkFlow) -> str:
    share = "" if found.share is None else f"{found.share:.0%}"
    return f"{format_bit_rate(found.rate_bit_s):>12}{share:>5}"


def _unusual(node: _Node) -> Iterator[str]:
    """What a healthy link is not: another rate than it was made with, a loss, large packets."""
    if node.rates is None or node.link is None:
        return
    flows = (node.rates.sends, node.rates.receives)
    if any(item.limit_bit_s != node.link.rate_bit_s for item in flows) and node.rates.is_up:
        each = " and ".join(
            format_bit_rate(item.limit_bit_s) if item.limit_bit_s else "no limit" for item in flows
        )
        yield f"made with {link_words(node.link)}, now {each}"
    elif node.link.mtu_bytes != Link().mtu_bytes:
        yield f"MTU {node.link.mtu_bytes}"
    lost = sum(item.dropped for item in flows)
    if lost:
        yield f"{lost} packet{'' if lost == 1 else 's'} dropped"
