"""The cables of a topology: which device in which namespace is joined with which, and how fast. Pure.

Every switch is a bridge in one namespace of its own, so that removing that removes them all.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from leadline.lab.network.topology import LabHost, Link, Topology
from leadline.wires import BACK as BACK_PORT
from leadline.wires import CLIENT, HOST, Wire
from leadline.wires import UPLINK as UPLINK_PORT

SWITCHES = "switches"  # the namespace of all bridges
CONSOLE = "console"  # the cable to the machine itself, from where the lab is looked after
UPLINK, BACK = "up0", "back0"  # a member's devices: to everybody, and among OSDs where that is apart
# What TBF may send at once: below the 64 KiB that the kernel hands over as one packet a core is lost to it.
_BURST_BYTES_MIN, _BURST_S = 128 << 10, 0.004
_QUEUE_MS = 20


@dataclass(frozen=True)
class End:
    """One end of a cable: a device in a namespace ("" is the machine's own)."""

    namespace: str
    device: str


@dataclass(frozen=True)
class Cable:
    """A pair of devices. `lower` is the member's or the lower switch's end, `upper` is at `switch`.

    `name` is the member's or lower switch's, with `-back` behind it on the cluster network.
    """

    name: str
    lower: End
    upper: End
    switch: str
    link: Link

    @property
    def ends(self) -> tuple[End, End]:
        """Both."""
        return self.lower, self.upper


def bridge_of(switch: str) -> str:
    """The device of a switch."""
    return f"s-{switch}"


def top_of(topology: Topology, switch: str) -> str:
    """The switch above all that are above `switch`."""
    above = {item.name: item.above for item in topology.switches}
    while above[switch]:
        switch = above[switch]
    return switch


def cables(topology: Topology, console: str) -> Iterator[Cable]:
    """Every cable; `console` is the device of the machine itself."""
    for switch in topology.switches:
        if switch.above:
            lower, upper = End(SWITCHES, f"u-{switch.name}"), End(SWITCHES, f"d-{switch.name}")
            yield Cable(switch.name, lower, upper, switch.above, switch.uplink)
    for member in topology.members:
        upper = End(SWITCHES, f"p-{member.name}")
        yield Cable(member.name, End(member.name, UPLINK), upper, member.switch, member.link)
        if isinstance(member, LabHost) and member.cluster_switch:
            lower, upper = End(member.name, BACK), End(SWITCHES, f"c-{member.name}")
            yield Cable(f"{member.name}{BACK_PORT}", lower, upper, member.cluster_switch, member.cluster_link)
    top = top_of(topology, topology.hosts[0].switch)
    # As large packets as anybody's: what leaves it must fit, what comes to it may be large.
    mtu = max(member.link.mtu_bytes for member in topology.members)
    yield Cable(CONSOLE, End("", console), End(SWITCHES, "p-console"), top, Link(0, mtu))


def wires_of(topology: Topology, switches: str) -> Iterator[Wire]:
    """Every cable between parts of the lab, by its port in the namespace that `switches` holds."""
    hosts = {host.name: 0 if host.name in topology.metadata else host.osds for host in topology.hosts}
    for cable in cables(topology, ""):
        inner, rate = cable.lower.namespace, cable.link.rate_bit_s or None
        if inner == SWITCHES:
            yield Wire(cable.name, UPLINK_PORT, cable.lower.device, switches, rate)
        elif inner:
            kind = HOST if inner in hosts else CLIENT
            yield Wire(cable.name, kind, cable.upper.device, switches, rate, hosts.get(cable.name, 0))


def shaping(device: str, link: Link) -> str:
    """The line for `tc -batch` that holds what leaves `device` to the link's rate; "" where it has none."""
    if not link.rate_bit_s:
        return ""
    burst = max(_BURST_BYTES_MIN, int(link.rate_bit_s / 8 * _BURST_S))
    return (
        f"qdisc replace dev {device} root tbf rate {link.rate_bit_s}bit burst {burst} latency {_QUEUE_MS}ms\n"
    )
