"""Models of one line, and what a model says: a range and how it came about, never a figure that was
measured.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Computed:
    """One figure of a model, in base units (`B/s`, `1/s`, `s`, `B`, `x` for a ratio).

    `low` and `high` are what it may be by what the model leaves open, the same where it leaves nothing;
    `formula` has the figures that were put in.
    """

    what: str
    low: float
    high: float
    unit: str
    formula: str

    def against(self, measured: float) -> tuple[float, float]:
        """Measured over should be, least and most; below one it was less than the model says."""
        return measured / self.high, measured / self.low


@dataclass(frozen=True)
class ModelSaid:
    """What a model says to one question: its figures, where it is from, where it stops being true."""

    computed: tuple[Computed, ...]
    source: str
    ends: str


def exactly(what: str, value: float, unit: str, formula: str) -> Computed:
    """A figure that the model leaves nothing open of."""
    return Computed(what, value, value, unit, formula)


_POINTS_MIN = 3  # one more than C and s
STRIPE_OBJECT_BYTES = 4 * 1024**2  # the default object of CephFS, RBD and the RADOS striper


@dataclass(frozen=True)
class Protection:
    """Replication (`copies`) or erasure coding (`k` data and `m` coding shards)."""

    copies: int | None = None
    k: int | None = None
    m: int | None = None

    @property
    def shards(self) -> int:
        """Devices that each object is written to."""
        return self.copies if self.copies is not None else (self.k or 1) + (self.m or 0)

    @property
    def min_size(self) -> int:
        """The fewest shards with which Ceph serves a group of objects.

        Source: the defaults of `min_size` (OSDMonitor): size - size/2 copies; k+1 shards, k where m is 1.
        """
        if self.copies is not None:
            return self.copies - self.copies // 2
        return (self.k or 1) + min(1, (self.m or 0) - 1)

    @property
    def amplification(self) -> float:
        """Bytes stored per byte, for whole stripes."""
        return (
            float(self.copies) if self.copies is not None else ((self.k or 1) + (self.m or 0)) / (self.k or 1)
        )


def syncs_per_s(bytes_per_s: float, object_bytes: float, protection: Protection) -> float:
    """Commits per second that whole objects cause: each object is committed on every copy or shard.

    Source: the arithmetic of the CASTOR document (1 GB/s = 200 objects/s = 2200 syncs/s). BlueStore commits
    several writes in one flush, so this is an upper bound.
    """
    return bytes_per_s / object_bytes * protection.shards


def network_bytes(written_bytes: float, protection: Protection) -> tuple[float, float]:
    """Bytes on the clients' network and on the cluster's for a write of whole stripes.

    Front B; back (r-1) B for replicas, B (k+m-1)/k for erasure coding: the primary keeps one share.
    Source: Ceph's documentation of replicated and erasure-coded writes ("Architecture").
    """
    if protection.copies is not None:
        return written_bytes, written_bytes * (protection.copies - 1)
    k, m = protection.k or 1, protection.m or 0
    return written_bytes, written_bytes * (k + m - 1) / k


def stream_rate(link_bytes_per_s: float, in_flight_bytes: float, latency_s: float) -> float:
    """A stream's rate: its bytes in flight over the latency, or the link. Source: Little, see below.

    With a constant latency it is an upper bound: larger requests take longer.
    """
    return min(link_bytes_per_s, in_flight_bytes / latency_s) if latency_s > 0 else link_bytes_per_s


def line_rate(first: tuple[float, float], second: tuple[float, float], size_bytes: float) -> float | None:
    """The rate at a size when the time of one request grows in a straight line: `(size, rate)` of two sizes.

    None where the two give no rising line. It fails where large requests are split into parallel objects.
    """
    (size_1, rate_1), (size_2, rate_2) = first, second
    if size_1 == size_2 or min(rate_1, rate_2) <= 0:
        return None
    time_1, time_2 = size_1 / rate_1, size_2 / rate_2
    slope = (time_2 - time_1) / (size_2 - size_1)
    seconds = time_1 + slope * (size_bytes - size_1)
    return size_bytes / seconds if slope >= 0 and seconds > 0 else None


def closed_loop_latency_s(in_flight: float, operations_per_s: float) -> float:
    """The mean latency that a fixed number in flight and a rate imply.

    Source: Little, Operations Research 9 (1961).
    """
    return in_flight / operations_per_s if operations_per_s > 0 else math.inf


def copies_time_s(copies: float, compute_s: float, shared_s: float, cpus: float) -> float:
    """Run time of N copies of a program at once: T(N) = C max(1, N/c) + s min(N, c).

    C is computing, which c CPUs share; s is what copies at storage do one after the other. At most c of them
    are there at once: the others wait for a CPU. Fermilab's figures: within 3 % for 1 to 7 copies on 4 CPUs,
    13 % too high for 8 (where the document prints the time of 7 again).
    """
    return compute_s * max(1.0, copies / cpus) + min(copies, cpus) * shared_s


def fit_copies(times_s: Mapping[float, float], cpus: float) -> tuple[float, float] | None:
    """C and s of `copies_time_s` by least squares over the points with no more copies than CPUs.

    None with fewer than three of them: a line through two leaves nothing over that could contradict it.
    """
    points = [(n, t) for n, t in times_s.items() if n <= cpus]
    if len(points) < _POINTS_MIN:
        return None
    mean_n = sum(n for n, _ in points) / len(points)
    mean_t = sum(t for _, t in points) / len(points)
    slope = sum((n - mean_n) * (t - mean_t) for n, t in points) / sum((n - mean_n) ** 2 for n, _ in points)
    return mean_t - slope * mean_n, slope


STRIPE_UNIT_BYTES = 4096  # Ceph's default osd_pool_erasure_code_stripe_unit
ALLOCATION_BYTES = 4096  # BlueStore's smallest extent since Pacific (bluestore_min_alloc_size)


def small_write_amplification(
    write_bytes: int, protection: Protection, stripe_unit_bytes: int = STRIPE_UNIT_BYTES
) -> float:
    """Bytes stored per byte when writes of one size arrive one by one, each aligned to its size.

    With erasure coding every stripe that a write touches is written whole, on all shards; a replica is
    written in whole extents. Source: Ceph's documentation of erasure-coded overwrites. The write-ahead log,
    where OSDs put small writes first, and the stores' own metadata come on top.
    """
    if protection.copies is not None:
        extents = -(-write_bytes // ALLOCATION_BYTES)
        return protection.copies * extents * ALLOCATION_BYTES / write_bytes
    stripe_bytes = (protection.k or 1) * stripe_unit_bytes
    stripes = -(-write_bytes // stripe_bytes)
    return stripes * protection.shards * stripe_unit_bytes / write_bytes
