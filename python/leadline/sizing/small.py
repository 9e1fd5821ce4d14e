"""A design in small: a topology for a lab, and what its links carry by the model that sized it."""

from __future__ import annotations

from dataclasses import dataclass

from leadline.sizing.designs import Design
from leadline.sizing.hardware import (
    GOODPUT,
    ClientFlow,
    fullest_links,
    hosts_below,
    switches_for,
    times_carried,
)
from leadline.sizing.moved import Inputs
from leadline.sizing.request import Switched, protection_of
from leadline.units import format_count

LINK_BIT_S = 1e9  # what a core of a small machine still moves
_NO_OTHERS = ClientFlow(0.0, 0.0)
_CLIENTS_MOST = 4
_LAB_HOSTS_LEAST = 3  # with fewer hosts than copies a lab would place by OSD


@dataclass(frozen=True)
class Carried:
    """At most so many bytes a second of all clients together, and what is full then."""

    bytes_s: float
    by: str


@dataclass(frozen=True)
class SmallTopology:
    """A topology of the format leadline.topology/1; what clients can read, or else write, through it."""

    text: str
    hosts: int
    read: Carried
    written: Carried


def in_small(inputs: Inputs, one: Design, link_bit_s: float = LINK_BIT_S) -> SmallTopology:
    """A design whose links have `link_bit_s` at most; every departure from it is in `scaled`."""
    asked, host, protection = inputs.asked, inputs.catalogue.hosts[one.kind], protection_of(one.protection)
    hosts = min(one.hosts, max(_LAB_HOSTS_LEAST, protection.shards + asked.hosts_lost))
    full_bit_s = host.link_bytes_s * 8
    divided = max(1.0, full_bit_s / link_bit_s)
    scaled = [
        f"{format_count(hosts, 'host')} of one OSD instead of {one.hosts} of {host.bays}",
        f"all links divided by {divided:g}",
        "devices are this machine's",
    ]
    if asked.pools:
        scaled.append(f"no devices of other classes: pools {', '.join(asked.pools)} are where the data are")
    link = _whole(full_bit_s / divided)
    switches, place, network = "  core: {}\n", "core", None
    if asked.network is not None:
        per = asked.network.hosts_per_switch
        racks = min(hosts, switches_for(per, one.hosts))
        below = -(-hosts // racks)
        # An uplink keeps its share of the links below it.
        uplink = _whole(asked.network.uplink_bytes_s * 8 / divided * below / hosts_below(per, one.hosts))
        scaled.append(f"{racks} switches; an uplink carries as much for each host below it as in the design")
        place = f"rack[1-{racks}]"
        switches += f'  "{place}": {{uplink: core, rate: {_rate(uplink)}}}\n'
        network = Switched(hosts_per_switch=below, uplink=f"{uplink / 1e6} Mb/s")
    coded = f"ec: {one.protection}\n" if protection.k is not None else ""
    clients = min(_CLIENTS_MOST, max(1, sum(group.clients for group in asked.clients.values())))
    lines = "".join(f'  - "{line}"\n' for line in scaled)
    text = (
        f"# {format_count(one.hosts, 'host')}, protection {one.protection}, in small:"
        " leadline lab up --topology FILE\n"
        f'format: leadline.topology/1\nsource: "A design of leadline size, {one.protection}"\n'
        f"scaled:\n{lines}{coded}switches:\n{switches}hosts:\n"
        f'  "store[1-{hosts}]": {{switch: "{place}", link: {_rate(link)}, osds: 1}}\n'
        f'clients:\n  "user[1-{clients}]": {{switch: core, link: {_rate(link)}}}\n'
    )
    links = fullest_links(host.model_copy(update={"link": f"{link / 1e6} Mb/s"}), protection, hosts, network)
    through = Carried(clients * link / 8 * GOODPUT, "links of the clients")

    def carried(flow: ClientFlow) -> Carried:
        return min(Carried(*times_carried(links, flow, _NO_OTHERS)), through, key=lambda one: one.bytes_s)

    return SmallTopology(text, hosts, carried(ClientFlow(1.0, 0.0)), carried(ClientFlow(0.0, 1.0)))


def _whole(bit_s: float) -> int:
    """To what a lab is told: a thousand bits a second."""
    return max(1000, round(bit_s / 1e3) * 1000)


def _rate(bit_s: int) -> str:
    return f"{bit_s // 10**6}Mbit" if bit_s % 10**6 == 0 else f"{bit_s // 1000}kbit"
