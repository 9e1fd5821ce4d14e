"""A failure in time: OSDs down, then out while others fill, then whole again. Rates are steady in each."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from leadline.errors import UsageError
from leadline.simulation.demands import Demand
from leadline.simulation.model import OBJECT_BYTES, SimulatedCluster, SimulatedWork
from leadline.simulation.parameters import Parameters
from leadline.simulation.recovery import RECOVERY, MovedShards, RecoveryAsked, damaged, moved, recovery_demand
from leadline.simulation.simulate import Simulated, on_maps, places, pools_of, simulate


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
