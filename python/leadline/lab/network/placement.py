"""What follows from a topology: the host of each daemon, each one's address, and the cables. Pure.

Every switch is a bridge in one namespace of its own, so that removing that removes them all.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from dataclasses import dataclass, field

from leadline.lab.network.topology import LabHost, Link, Topology
from leadline.lab.spec import GATEWAYS
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


# Names of daemons in the order of the hosts that carry them; more monitors than five serve no lab.
LETTERS = {"mon": "abcde", "mgr": "xyz", "mds": "abcdefgh"}


@dataclass(frozen=True)
class LabNetwork:
    """A lab's network as it was made. `placement` is daemon to host.

    `base` is a network of 510 addresses: hosts and clients are in the lower half, and where the
    cluster network is apart, hosts have the same numbers in the upper half of it.
    """

    topology: Topology
    base: str
    console: str
    placement: dict[str, str] = field(default_factory=dict)

    @property
    def networks(self) -> tuple[ipaddress.IPv4Network, ipaddress.IPv4Network]:
        """The public and the cluster network."""
        public, cluster = ipaddress.IPv4Network(self.base).subnets(new_prefix=24)
        return public, cluster

    @property
    def console_address(self) -> str:
        """The machine's own address in it."""
        return str(self.networks[0][254])

    def address(self, member: str) -> str:
        """A host's or client's address on the public network."""
        return str(self.networks[0][self._number(member)])

    def cluster_address(self, host: str) -> str:
        """A host's address on the cluster network; the public one where it has no cable there."""
        found = self.topology.member(host)
        apart = isinstance(found, LabHost) and found.cluster_switch
        return str(self.networks[1][self._number(host)]) if apart else self.address(host)

    def host_of(self, daemon: str) -> str:
        """The host that carries a daemon; "" for what runs outside the network."""
        return self.placement.get(daemon, "")

    def daemons(self, kind: str) -> list[str]:
        """The names of all daemons of a kind, such as `mon`."""
        return [name for name in self.placement if name.partition(".")[0] == kind]

    @property
    def gateways(self) -> list[str]:
        """The names of all gateways: a kind's, with a number behind it from the second on."""
        return [name for name in self.placement if name.partition("-")[0] in GATEWAYS]

    def _number(self, member: str) -> int:
        names = [item.name for item in self.topology.members]
        return names.index(member) + 1


def place(topology: Topology) -> dict[str, str]:
    """Daemon to host: OSDs numbered host by host, the others named in the order of their hosts."""
    found: dict[str, str] = {}
    for kind, letters in LETTERS.items():
        carriers = [host.name for host in topology.hosts if kind in host.runs]
        found |= {f"{kind}.{letter}": name for letter, name in zip(letters, carriers, strict=False)}
    homes = [host.name for host in topology.hosts for _ in range(host.osds)]
    found |= {f"osd.{number}": name for number, name in enumerate(homes)}
    for kind in GATEWAYS:
        carriers = [host.name for host in topology.hosts if kind in host.runs]
        found |= {kind if not index else f"{kind}-{index + 1}": name for index, name in enumerate(carriers)}
    return found


def failure_domain(topology: Topology | None, chunks: int) -> str:
    """`host` where so many have OSDs that each of `chunks` has one of its own, else `osd`."""
    if topology is None:
        return "osd"
    homes = sum(host.osds > 0 and host.name not in topology.metadata for host in topology.hosts)
    return "host" if homes >= chunks else "osd"


def metadata_domain(topology: Topology) -> str:
    """The same for the copies of a metadata pool that has OSDs of its own."""
    homes = sum(host.osds > 0 for host in topology.hosts if host.name in topology.metadata)
    return "host" if homes >= topology.metadata_replicas else "osd"
