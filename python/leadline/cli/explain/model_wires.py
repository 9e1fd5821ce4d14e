"""A lab's topology, or a data centre's written as one, as the links that a model computes with."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from leadline.errors import UsageError

if TYPE_CHECKING:
    from leadline.analysis.models.links import Wired
    from leadline.lab.network.topology import Link, Topology

# Of a full frame: Ethernet's header, which tc(8) counts, and IP's and TCP's with time stamps: no user's data.
_FRAME_HEADER, _INNER_HEADERS = 14, 52


def wired_of(file: Path | None, reference: str | None, through: str | None) -> Wired:
    """The links of a topology. Raises UsageError, or SpecError for what is wrong in the file."""
    from leadline.analysis.models.links import Wired
    from leadline.lab.network.topology_file import load_topology, read_topology, reference_text

    if (file is None) == (reference is None):
        raise UsageError("which links are meant?", "give --topology FILE or --reference NAME")
    if file is not None:
        shape = load_topology(file, os.environ, made_here=False).topology
    else:
        shape = read_topology(
            reference_text(reference or ""), f"{reference} (built-in)", {}, made_here=False
        ).topology
    if not shape.clients:
        raise UsageError(
            "the topology has no clients", "add `clients` to it: it is their bytes that are asked for"
        )
    proxies = tuple(host.name for host in shape.hosts if through and through in host.runs)
    if through and not proxies:
        roles = ", ".join(shape.gateways) or "none"
        raise UsageError(f"no host of the topology runs {through!r}", f"it has: {roles}")
    above, rates, behind = cables_of(shape)
    return Wired(
        above,
        rates,
        {host.name: host.osds for host in shape.hosts if host.name not in shape.metadata},
        tuple(client.name for client in shape.clients),
        proxies,
        behind,
    )


def cables_of(shape: Topology) -> tuple[dict[str, str], dict[str, float], dict[str, str]]:
    """What is above each, the bytes per second of each cable, and by which OSDs speak where it is apart."""
    above = {switch.name: switch.above for switch in shape.switches}
    rates: dict[str, float] = {}
    behind: dict[str, str] = {}
    for switch in shape.switches:
        _limit(rates, switch.name, switch.uplink)
    for member in shape.members:
        above[member.name] = member.switch
        _limit(rates, member.name, member.link)
    for host in shape.hosts:
        if host.cluster_switch:
            back = behind[host.name] = f"{host.name} (cluster)"
            above[back] = host.cluster_switch
            _limit(rates, back, host.cluster_link)
    return above, rates, behind


def _limit(rates: dict[str, float], name: str, link: Link) -> None:
    if link.rate_bit_s:
        share = (link.mtu_bytes - _INNER_HEADERS) / (link.mtu_bytes + _FRAME_HEADER)
        rates[name] = link.rate_bit_s / 8 * share
