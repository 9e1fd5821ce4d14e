"""A design in small, as a topology for a lab: fewer hosts of one OSD, all rates divided by one figure."""

from __future__ import annotations

from leadline.sizing.asked import protection_of
from leadline.sizing.designs import Design
from leadline.sizing.links import hosts_below, switches_for
from leadline.sizing.moved import Inputs

LINK_BIT_S = 1e9  # what a core of a small machine still moves
_CLIENTS_MOST = 4
_LAB_HOSTS_LEAST = 3  # with fewer hosts than copies a lab would place by OSD


def topology_text(inputs: Inputs, one: Design) -> str:
    """YAML of the format leadline.topology/1; every departure from the design is in `scaled`."""
    asked, host, protection = inputs.asked, inputs.catalogue.hosts[one.kind], protection_of(one.protection)
    hosts = min(one.hosts, max(_LAB_HOSTS_LEAST, protection.shards + asked.hosts_lost))
    link_bit_s = host.link_bytes_s * 8
    divided = max(1.0, link_bit_s / LINK_BIT_S)
    scaled = [
        f"{hosts} hosts of one OSD instead of {one.hosts} of {host.bays}",
        f"all links divided by {divided:g}",
        "devices are this machine's",
    ]
    if asked.pools:
        scaled.append(f"no devices of other classes: pools {', '.join(asked.pools)} are where the data are")
    link = _rate(link_bit_s / divided)
    switches, place = "  core: {}\n", "core"
    if asked.network is not None:
        per = asked.network.hosts_per_switch
        racks = min(hosts, switches_for(per, one.hosts))
        # An uplink keeps its share of the links below it.
        uplink = (
            asked.network.uplink_bytes_s * 8 / divided * (-(-hosts // racks)) / hosts_below(per, one.hosts)
        )
        scaled.append(f"{racks} switches; an uplink carries as much for each host below it as in the design")
        place = f"rack[1-{racks}]"
        switches += f'  "{place}": {{uplink: core, rate: {_rate(uplink)}}}\n'
    coded = f"ec: {one.protection}\n" if protection.k is not None else ""
    clients = min(_CLIENTS_MOST, max(1, sum(group.clients for group in asked.clients.values())))
    lines = "".join(f'  - "{line}"\n' for line in scaled)
    return (
        f"# {one.hosts} hosts, protection {one.protection}, in small: leadline lab up --topology FILE\n"
        f'format: leadline.topology/1\nsource: "A design of leadline size, {one.protection}"\n'
        f"scaled:\n{lines}{coded}switches:\n{switches}hosts:\n"
        f'  "store[1-{hosts}]": {{switch: "{place}", link: {link}, osds: 1}}\n'
        f'clients:\n  "user[1-{clients}]": {{switch: core, link: {link}}}\n'
    )


def _rate(bit_s: float) -> str:
    return f"{max(1, round(bit_s / 1e6))}Mbit"
