"""What goes over a design's links, evenly over its hosts, and how many times that they carry: an upper bound.

Clients' bytes, what OSDs send each other (docs/models.md, `aggregate`), and what a rebuild moves.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from leadline.analysis.models.simple import Protection, network_bytes
from leadline.sizing.hardware import HardwareHost
from leadline.sizing.request import Switched

GOODPUT = 0.949  # of a link with frames of 1500 bytes: 1448 of 1526 bytes on the wire are data
NO_LINK = "nothing: no rate is asked"


def switches_for(per: int, hosts: int) -> int:
    """As few as hold so many hosts, `per` on each at most."""
    return -(-hosts // per)


def hosts_below(per: int, hosts: int) -> int:
    """On the switch with most of them, where they are spread over the switches as evenly as can be."""
    return -(-hosts // switches_for(per, hosts))


@dataclass(frozen=True)
class ClientFlow:
    """What clients of one population, or of all, read and write together, in bytes a second."""

    read: float
    written: float


@dataclass(frozen=True)
class FullestLink:
    """One direction of the fullest link of its kind: its bytes a second, and what of each byte passes it.

    `of_read` and `of_written` are of a byte that a client reads or writes, `of_sent` of a byte that one host
    sends to another.
    """

    name: str
    bytes_s: float
    of_read: float
    of_written: float
    of_sent: float

    def load(self, flow: ClientFlow) -> float:
        """Bytes a second through it."""
        return flow.read * self.of_read + flow.written * self.of_written


def fullest_links(
    one: HardwareHost,
    protection: Protection,
    hosts: int,
    network: Switched | None,
    weight: float = 1.0,
) -> tuple[FullestLink, ...]:
    """Of hosts, and of the switch with most hosts, in and out; none where no host is left.

    `weight` is how much more than an equal part the fullest host has: another lacks a device.
    """
    if hosts < 1:
        return ()
    _, between_written = network_bytes(1.0, protection)
    between_read = 0.0 if protection.k is None else (protection.k - 1) / protection.k
    own, own_bytes_s = weight / hosts, one.link_bytes_s * GOODPUT
    place = "links of the hosts"
    found = [
        FullestLink(f"{place}, in", own_bytes_s, between_read * own, (1 + between_written) * own, own),
        FullestLink(f"{place}, out", own_bytes_s, (1 + between_read) * own, between_written * own, own),
    ]
    if network is not None:
        below = hosts_below(network.hosts_per_switch, hosts)
        share = min(1.0, below * own)
        # Of what a host sends to others, so much leaves its switch.
        leaves = (hosts - below) / max(1, hosts - 1)
        read, written = between_read * leaves, between_written * leaves
        place, wide = "links of the switches, uplinks", network.uplink_bytes_s * GOODPUT
        found += [
            FullestLink(f"{place}, in", wide, read * share, (1 + written) * share, leaves * share),
            FullestLink(f"{place}, out", wide, (1 + read) * share, written * share, leaves * share),
        ]
    return tuple(found)


def times_carried(
    links: Sequence[FullestLink], flow: ClientFlow, others: ClientFlow, sent: float = 0.0
) -> tuple[float, str]:
    """How many times a flow is carried where others and a rebuild stay as they are, and what is full first.

    1 is just enough, 0 none of it, and infinity where nothing is asked.
    """
    if not flow.read and not flow.written:
        return math.inf, NO_LINK
    found = [
        (max(0.0, link.bytes_s - link.load(others) - sent * link.of_sent) / link.load(flow), link.name)
        for link in links
        if link.load(flow)
    ]
    return min(found, default=(0.0, "no host is left"))


def seconds_to_send(links: Sequence[FullestLink], flow: ClientFlow, sent_bytes: float) -> float:
    """How long bytes take between hosts beside what clients do; infinity where no room is left for them."""
    rates = [(link.bytes_s - link.load(flow)) / link.of_sent for link in links if link.of_sent]
    rate = min(rates, default=0.0)
    return sent_bytes / rate if rate > 0 else math.inf
