"""The labs of bench/simulation_lab.py: what is built, what is limited on purpose, and what is done there."""

from __future__ import annotations

from dataclasses import dataclass, replace

OBJECT_BYTES, SIZE_BYTES, GROUPS = 256 * 1024, 32 * 1024**2, 256
_OBJECTS = SIZE_BYTES // OBJECT_BYTES
# Objects are dealt out to groups, and groups to OSDs: together as even as so many groups are.
EVEN_AS = round(1 / (1 / GROUPS + 1 / _OBJECTS))
POOLS = {"copies": "3", "coded": "2+1"}
_HEAD = "head1: {switch: core, runs: [mon, mgr, mds]}"


@dataclass(frozen=True)
class LabWork:
    """One work of a lab, in fio's words."""

    rw: str
    bs: str
    depth: int
    pools: tuple[str, ...] = ("copies", "coded")

    @property
    def name(self) -> str:
        """Of a study's work."""
        return f"{self.rw}_{self.bs}_{self.depth}"


@dataclass(frozen=True)
class LabCase:
    """A lab and its works. `bound`: a pattern of the stations that are limited on purpose, `words`: which.

    `out`: OSDs that are marked out. More than one client run at once, each on its own link.
    `bucket_bytes`: what a link lets pass at once, where it is not the lab's own.
    """

    name: str
    hosts: str
    clients: str
    works: tuple[LabWork, ...]
    bound: str
    words: str
    switches: str = "core:"
    out: tuple[int, ...] = ()
    clients_at_once: int = 1
    blocks: int = 1
    bucket_bytes: int = 0

    @property
    def topology(self) -> str:
        """As `lab up --topology` and `simulate` read it."""
        parts = (("switches", self.switches), ("hosts", f"{_HEAD}\n{self.hosts}"), ("clients", self.clients))
        return "ec: 2+1\n" + "".join(
            f"{name}:\n" + "".join(f"  {line}\n" for line in text.splitlines()) for name, text in parts
        )


def _works(*given: str) -> tuple[LabWork, ...]:
    found = []
    for one in given:
        rw, bs, depth = one.split()
        found.append(LabWork(rw, bs, int(depth)))
    return tuple(found)


FREE = "client1: {switch: core}"
CALIBRATION = LabCase(
    "calibration",
    "host[1-3]: {switch: core, osds: 1}",
    FREE,
    tuple(
        LabWork(rw, bs, depth, ("copies",))
        for rw, bs, depth in (
            ("randwrite", "64k", 1),
            ("randwrite", "64k", 4),
            ("write", "256k", 1),
            ("write", "256k", 4),
            ("randread", "64k", 1),
            ("randread", "64k", 4),
            ("read", "256k", 4),
        )
    ),
    "",
    "nothing",
    blocks=2,
)

FIRST = (
    LabCase(
        "client link, 3 OSDs",
        "host[1-3]: {switch: core, osds: 1}",
        "client1: {switch: core, link: 60Mbit}",
        _works("randwrite 64k 8", "write 256k 4", "randread 64k 16"),
        r"client link",
        "link of the client, 60 Mbit/s",
    ),
    LabCase(
        "host links, 4 OSDs",
        "host[1-4]: {switch: core, link: 60Mbit, osds: 1}",
        FREE,
        _works("randwrite 64k 16", "write 256k 16", "randread 64k 16"),
        r"host\d (up|down)",
        "links of the hosts, 60 Mbit/s each",
    ),
    LabCase(
        "uplinks, 6 OSDs",
        "host[1-6]: {switch: 'rack[1-2]', osds: 1}",
        FREE,
        _works("randwrite 64k 16", "write 256k 16", "randread 64k 16"),
        r"rack\d (up|down)",
        "uplinks of the two racks, 80 Mbit/s each",
        switches="core:\nrack[1-2]: {uplink: core, rate: 80Mbit}",
    ),
    LabCase(
        "disks, 9 OSDs in 3 hosts",
        "host[1-3]: {switch: core, osds: 3, disk: {write: 8M}}",
        FREE,
        _works("randwrite 64k 16", "write 256k 8", "randwrite 16k 16"),
        r"host\d disk writes",
        "what the OSDs of a host write together, 8 MiB/s",
    ),
    LabCase(
        "processors, 5 OSDs",
        "host[1-5]: {switch: core, osds: 1, cpu: 0.1}",
        FREE,
        _works("randwrite 64k 16", "randread 64k 16", "randwrite 16k 16"),
        r"host\d processors",
        "processors of each host, 0.1 of a core",
    ),
    LabCase(
        "one OSD of 3 out",
        "host[1-3]: {switch: core, link: 40Mbit, osds: 1}",
        FREE,
        _works("randwrite 64k 16", "write 256k 8", "randread 64k 16"),
        r"host\d (up|down)",
        "links of the hosts, 40 Mbit/s each; osd.2 out",
        out=(2,),
    ),
    LabCase(
        "4 clients, 6 OSDs",
        "host[1-6]: {switch: core, osds: 1}",
        "client[1-4]: {switch: core, link: 30Mbit}",
        _works("randwrite 64k 4", "write 256k 4", "randread 64k 4"),
        r"client link",
        "links of the four clients, 30 Mbit/s each",
        clients_at_once=4,
    ),
    LabCase(
        "few at once, 3 OSDs",
        "host[1-3]: {switch: core, link: 50Mbit, osds: 1}",
        FREE,
        _works("randwrite 64k 1", "randwrite 256k 1", "randread 256k 1"),
        r"what is in flight",
        "one request at a time, on links of 50 Mbit/s",
    ),
)
# Made after the first table was seen, for its one lab outside: a link of the lab lets 128 KiB pass at once
# (TBF's bucket), so that single requests below that hardly feel its rate.
SECOND = (
    replace(
        FIRST[-1],
        name="few at once, small buckets",
        bucket_bytes=4096,
        words="as few at once, with links that let 4 KiB pass at once instead of 128 KiB",
    ),
)
TABLES = {"first": FIRST, "second": SECOND}
