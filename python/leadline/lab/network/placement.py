"""Which daemon is on which host, and which address each host and client has. Pure."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field

from leadline.lab.network.topology import LabHost, Topology
from leadline.lab.spec import GATEWAYS

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
