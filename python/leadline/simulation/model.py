"""What is simulated, as frozen values: a cluster of links and OSDs, and what clients do to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from leadline.analysis.models.simple import Protection

Kind = Literal["read", "write", "randread", "randwrite", "metadata"]
KINDS: tuple[Kind, ...] = ("read", "write", "randread", "randwrite", "metadata")
OBJECT_BYTES = 4 * 1024**2
CLIENT_BYTES_MAX = 100 * 1024**2  # objecter_inflight_op_bytes
CLIENT_OPERATIONS_MAX = 1024  # objecter_inflight_ops


@dataclass(frozen=True)
class SimulatedCluster:
    """Machines and switches by what is above each, cables by bytes per second without headers, OSDs by host.

    `behind`: by which cable the OSDs of a host speak to others', where it is not the host's own. `cores` has
    the hosts whose processors are known; `machine_cores` above 0: all of it shares those of one machine.
    `disks`: bytes per second (read, write) that a host's OSDs have together.
    """

    above: Mapping[str, str]
    rates: Mapping[str, float]
    osd_hosts: tuple[str, ...]
    osd_classes: tuple[str, ...]
    clients: tuple[str, ...]
    behind: Mapping[str, str] = field(default_factory=dict)
    cores: Mapping[str, float] = field(default_factory=dict)
    disks: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    proxies: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    machine_cores: float = 0.0
    metadata_servers: int = 1


@dataclass(frozen=True)
class SimulatedWork:
    """What each of `clients` clients (0: all of them) does, in fio's words; `through` names a proxy's role.

    `depth` is iodepth x numjobs, `jobs` numjobs alone: each has a
    thread of its own. `cached`: the share of reads that no device sees. `think_s` passes between
    an answer and the next request.
    """

    name: str
    rw: Kind
    protection: Protection
    bs_bytes: int = OBJECT_BYTES
    depth: int = 1
    jobs: int = 1
    clients: int = 0
    groups: int = 0
    through: str = ""
    cached: float = 0.0
    think_s: float = 0.0

    @property
    def piece_bytes(self) -> int:
        """What one request to an OSD moves: at most an object."""
        return min(self.bs_bytes, OBJECT_BYTES)

    @property
    def in_flight(self) -> float:
        """Pieces of one client at once, as far as the client's library lets it have."""
        pieces = self.depth * max(self.bs_bytes / OBJECT_BYTES, 1.0)
        if self.rw == "metadata":
            return float(self.depth)
        return min(pieces, max(CLIENT_BYTES_MAX / self.piece_bytes, 1.0), CLIENT_OPERATIONS_MAX)
