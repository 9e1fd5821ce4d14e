"""What a lab's data centre is asked to be: switches, hosts, clients and the rates of links. Values only.

Switches form a tree: each but the top one has an uplink to the switch above it. A host hangs on a
switch by its link, and where its cluster network is apart, on another by a second one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

REPLICAS = 3
CEPH_ROLES = ("mon", "mgr", "mds")
MTU_DEFAULT = 1500
MEMBERS_MAX = 200  # hosts and clients: each has an address of a network of 254
COMPUTED_MAX = 20_000  # of those that are computed only


@dataclass(frozen=True)
class Link:
    """A cable and its limits in both directions. `rate_bit_s` 0 means that nothing holds it back."""

    rate_bit_s: int = 0
    mtu_bytes: int = MTU_DEFAULT


@dataclass(frozen=True)
class MachineLimits:
    """What a host or client may use of this machine; 0 is no limit. `cpu` is in cores, the rest in bytes.

    The rates hold for the disk under its OSDs, and for all of them together.
    """

    cpu: float = 0.0
    memory_bytes: int = 0
    disk_read_bytes_s: int = 0
    disk_write_bytes_s: int = 0

    @property
    def any(self) -> bool:
        """True where anything is limited."""
        return bool(self.cpu or self.memory_bytes or self.disk_read_bytes_s or self.disk_write_bytes_s)


@dataclass(frozen=True)
class Switch:
    """A switch. `above` is the switch that its uplink goes to, "" for a top one."""

    name: str
    above: str = ""
    uplink: Link = Link()


@dataclass(frozen=True)
class LabHost:
    """A storage host or proxy. `runs` names what it carries besides OSDs: mon, mgr, mds, or gateways.

    `cluster_switch` "" means that OSDs speak to each other through `link`.
    """

    name: str
    switch: str
    link: Link
    osds: int = 0
    runs: tuple[str, ...] = ()
    limits: MachineLimits = MachineLimits()
    cluster_switch: str = ""
    cluster_link: Link = Link()


@dataclass(frozen=True)
class LabClient:
    """A machine that uses the storage."""

    name: str
    switch: str
    link: Link
    limits: MachineLimits = MachineLimits()


@dataclass(frozen=True)
class Topology:
    """One data centre. Names are unique among hosts, clients and switches together.

    `reference` is the document's cluster that it stands for and `source` that document; `scaled` is what was
    made smaller or left out. `metadata` names the hosts whose OSDs hold the file system's metadata pool and
    nothing else (none of them: it lies where all else does). `striped_erasure` codes the pool of XRootD and
    libradosstriper as the erasure-coded directory is.
    """

    switches: tuple[Switch, ...]
    hosts: tuple[LabHost, ...]
    clients: tuple[LabClient, ...] = ()
    reference: str = ""
    scaled: tuple[str, ...] = field(default=())
    source: str = ""
    metadata: tuple[str, ...] = ()
    striped_erasure: bool = False

    @property
    def osd_count(self) -> int:
        """OSDs of all hosts together."""
        return sum(host.osds for host in self.hosts)

    @property
    def data_osd_count(self) -> int:
        """OSDs for everything but a metadata pool with OSDs of its own."""
        return sum(host.osds for host in self.hosts if host.name not in self.metadata)

    @property
    def metadata_replicas(self) -> int:
        """Copies of the metadata pool: three, or as many as OSDs of its own."""
        apart = self.osd_count - self.data_osd_count
        return min(REPLICAS, apart) if self.metadata else REPLICAS

    @property
    def gateways(self) -> tuple[str, ...]:
        """What hosts run besides monitors, managers and metadata servers, each kind once."""
        found = (role for host in self.hosts for role in host.runs if role not in CEPH_ROLES)
        return tuple(dict.fromkeys(found))

    @property
    def members(self) -> Iterator[LabHost | LabClient]:
        """Hosts, then clients."""
        yield from self.hosts
        yield from self.clients

    def member(self, name: str) -> LabHost | LabClient | None:
        """The host or client of this name."""
        return next((item for item in self.members if item.name == name), None)


def simple(hosts: int, clients: int, switches: int, osds: int, link: Link, uplink: Link) -> Topology:
    """Hosts dealt out over switches, clients on the core above them; with one switch, all on that.

    So every byte between a client and a host goes through that client's link, one uplink and the host's link.
    The first host carries what there is one of; monitors, managers and metadata servers have stand-ins where
    there are hosts for them.
    """
    core = Switch("core")
    racks = tuple(Switch(f"switch{number + 1}", core.name, uplink) for number in range(switches))
    racks = racks if switches > 1 else ()
    homes = [item.name for item in racks] or [core.name]
    made = tuple(
        LabHost(
            f"host{number + 1}",
            homes[number * len(homes) // hosts],
            link,
            osds=osds // hosts + (number < osds % hosts),
            runs=roles_of(number, hosts),
        )
        for number in range(hosts)
    )
    users = tuple(LabClient(f"client{number + 1}", core.name, link) for number in range(clients))
    return Topology((core, *racks), made, users)


def roles_of(number: int, hosts: int) -> tuple[str, ...]:
    """What host `number` (from 0) of so many carries where nobody said."""
    monitors, managers = (3 if hosts >= 3 else 1), min(hosts, 2)
    roles = (("mon", monitors), ("mgr", managers), ("mds", managers))
    return tuple(role for role, count in roles if number < count)


def with_gateways(topology: Topology, gateways: Sequence[str]) -> Topology:
    """Each of `gateways` on a host of its own, from the last one up: the first carries monitors already."""
    hosts = list(topology.hosts)
    for number, gateway in enumerate(gateways):
        index = len(hosts) - 1 - number % len(hosts)
        hosts[index] = replace(hosts[index], runs=(*hosts[index].runs, gateway))
    return replace(topology, hosts=tuple(hosts))
