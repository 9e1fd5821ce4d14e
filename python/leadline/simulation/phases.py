"""A failure in time: OSDs down, then out while others fill, then whole again. Rates are steady in each.

Limits of recovery are Ceph's: so many backfills at once of an OSD (osd_max_backfills), and the share of an
OSD that a profile of its scheduler keeps for recovery.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from leadline.errors import UsageError
from leadline.simulation.demands import Demand, RequestCosts
from leadline.simulation.model import OBJECT_BYTES, SimulatedCluster, SimulatedWork
from leadline.simulation.parameters import COMMON, Parameters
from leadline.simulation.simulate import Simulated, on_maps, places, pools_of, simulate

# Of an OSD what is reserved for background recovery: Ceph's documentation, mClock Config Reference (Reef).
PROFILES: Mapping[str, float] = {"high_client_ops": 0.4, "balanced": 0.5, "high_recovery_ops": 0.7}
DOWN_OUT_S = 600.0  # mon_osd_down_out_interval
BACKFILLS = 1  # osd_max_backfills
RECOVERY = "recovery"


@dataclass(frozen=True)
class RecoveryAsked:
    """`stored_bytes` of users are in the pool; limits, and for how long OSDs are down before they are out."""

    stored_bytes: float
    backfills: int = BACKFILLS
    profile: str = "balanced"
    down_out_s: float = DOWN_OUT_S


@dataclass(frozen=True)
class MovedShards:
    """How many shards go from which primary to which OSD; `lost_groups` have too little left to move."""

    shards: Mapping[tuple[int, int], int]
    bytes_each: float
    lost_groups: int

    @property
    def bytes(self) -> float:
        """All that is written anew."""
        return sum(self.shards.values()) * self.bytes_each

    @property
    def at_once(self) -> int:
        """Primaries and receivers reserve a place for each group: the fewer of both have it."""
        return min(len({first for first, _ in self.shards}), len({to for _, to in self.shards}))


def damaged(placement: np.ndarray, out: Collection[int]) -> np.ndarray:
    """The same groups while these OSDs are down and not out yet: their places stay empty."""
    return np.where(np.isin(placement, list(out)), -1, placement)


def moved(before: np.ndarray, after: np.ndarray, work: SimulatedWork, stored_bytes: float) -> MovedShards:
    """By group, primary and new member. Groups of which too little is left are counted, and do not move."""
    coded = work.protection.k or 0
    shards: dict[tuple[int, int], int] = defaultdict(int)
    lost = 0
    for old, new in zip(before, after, strict=True):
        old_ones, new_ones = {int(one) for one in old if one >= 0}, [int(one) for one in new if one >= 0]
        kept = [one for one in new_ones if one in old_ones]
        fresh = [one for one in new_ones if one not in old_ones]
        if fresh and len(kept) < max(coded, 1):
            lost += 1
            continue
        for one in fresh:
            shards[kept[0], one] += 1
    return MovedShards(dict(shards), stored_bytes / len(before) / max(coded, 1), lost)


def recovery_demand(
    cluster: SimulatedCluster,
    work: SimulatedWork,
    after: np.ndarray,
    found: MovedShards,
    asked: RecoveryAsked,
    parameters: Parameters,
) -> Demand:
    """Of one object's shard: read (k of them where it is coded), sent, and written; the mean of all."""
    costs = RequestCosts(cluster, work, after, parameters)
    coded = work.protection.k or 1
    size = OBJECT_BYTES / coded
    demand = Demand(work, 1, window=float(asked.backfills * max(found.at_once, 1)))
    total = sum(found.shards.values())
    by_host: dict[tuple[str, str], float] = defaultdict(float)
    reads, writes = np.zeros(len(cluster.osd_hosts)), np.zeros(len(cluster.osd_hosts))
    for (first, to), count in found.shards.items():
        by_host[cluster.osd_hosts[first], cluster.osd_hosts[to]] += count / total
        reads[first] += count / total
        writes[to] += count / total
    for (source, sink), share in by_host.items():
        costs.wire(
            demand, cluster.behind.get(source, source), cluster.behind.get(sink, sink), size * share, False
        )
    if coded > 1:
        _gathered(costs, demand, cluster, size * (coded - 1))
        reads = reads + (coded - 1) * costs.members / max(costs.members.sum(), 1e-9)
    costs.on_osds(demand, reads, "read", size)
    costs.on_osds(demand, writes, "write", size)
    # The scheduler keeps recovery its share: it does not wait behind clients' requests, who do behind its.
    alone_s = sum(demand.waited.values()) + 2 * parameters.value(COMMON, "latency_s")
    demand.waited = defaultdict(float)
    # A profile's share is of devices; of links and processors nobody keeps one, and half and half is thought.
    rate = PROFILES[asked.profile] / max(demand.seconds.values())
    demand.delay_s = max(alone_s, demand.window / rate)
    return demand


def _gathered(costs: RequestCosts, demand: Demand, cluster: SimulatedCluster, size: float) -> None:
    """The other shards come to primaries from all hosts alike."""
    hosts = sorted(set(cluster.osd_hosts))
    pairs = [(source, sink) for source in hosts for sink in hosts if source != sink]
    for source, sink in pairs:
        near, far = cluster.behind.get(source, source), cluster.behind.get(sink, sink)
        costs.wire(demand, near, far, size / len(pairs), False)


@dataclass(frozen=True)
class Phase:
    """From `begins_s` to `ends_s`, each the most likely value with its interval; the last one has no end."""

    name: str
    begins_s: tuple[float, float, float]
    ends_s: tuple[float, float, float] | None
    found: Simulated
    moved_bytes: float = 0.0
    recovery_bytes_s: tuple[float, ...] = ()
    lost_groups: int = 0


def failure(
    cluster: SimulatedCluster,
    works: Sequence[SimulatedWork],
    parameters: Parameters,
    lost: Collection[int],
    asked: RecoveryAsked,
    *,
    draws: int,
    seed: int = 1,
    until_s: float = float("inf"),
) -> tuple[Phase, ...]:
    """The phases after OSDs fail at once, at time 0. Raises UsageError as `simulate` does."""
    if not lost:
        raise UsageError("nothing fails", "give --osd-out or --host-out with --stored")
    after = simulate(cluster, works, parameters, out=lost, draws=draws, seed=seed)
    numbers = pools_of(cluster, works)
    whole = [places(cluster, works, pool) for pool in numbers]
    filled = [places(cluster, works, pool, lost) for pool in numbers]
    down = [[damaged(one, lost) for one in maps] for maps in whole]
    found = on_maps(cluster, works, parameters, down, draws=draws, seed=seed)
    out_s = (asked.down_out_s,) * 3
    phases = [Phase("down", (0.0, 0.0, 0.0), out_s, found)]
    moves = [
        moved(old[0], new[0], works[0], asked.stored_bytes) for old, new in zip(whole, filled, strict=True)
    ]
    size = OBJECT_BYTES / (works[0].protection.k or 1)
    ends = out_s
    if any(one.shards for one in moves):
        beside = _Beside(cluster, works[0], filled, moves, asked)
        busy = on_maps(cluster, works, parameters, filled, draws=draws, seed=seed, beside=beside)
        total = sorted(moves, key=lambda one: one.bytes)[len(moves) // 2].bytes
        rates = tuple(one * size for one in busy.beside)
        slow_first = (rates[0], rates[2], rates[1]) if len(rates) == 3 else rates * 3
        seconds = tuple(total / rate for rate in slow_first)
        ends = (out_s[0] + seconds[0], out_s[0] + seconds[1], out_s[0] + seconds[2])
        most_lost = max(one.lost_groups for one in moves)
        phases.append(Phase(RECOVERY, out_s, ends, busy, total, rates, most_lost))
    phases.append(Phase("after", ends, None, after))
    return tuple(_until(phases, until_s))


@dataclass(frozen=True)
class _Beside:
    """Recovery of each map."""

    cluster: SimulatedCluster
    work: SimulatedWork
    filled: Sequence[Sequence[np.ndarray]]
    moves: Sequence[MovedShards]
    asked: RecoveryAsked

    def __call__(self, place: int, parameters: Parameters) -> Demand:
        number = (
            place
            if self.moves[place].shards
            else next(number for number, one in enumerate(self.moves) if one.shards)
        )
        found = self.filled[number][0]
        work = replace(self.work, name=RECOVERY, rw="write", clients=1)
        return recovery_demand(self.cluster, work, found, self.moves[number], self.asked, parameters)


def _until(phases: Sequence[Phase], until_s: float) -> Iterator[Phase]:
    for one in phases:
        if one.begins_s[0] >= until_s:
            return
        if one.ends_s is None or one.ends_s[0] <= until_s:
            yield one
        else:
            yield replace(one, ends_s=None)
