"""Does a sweep find the knee, in how many trials, and do its intervals hold? On surfaces whose knee is known.

Surfaces are drawn by chance: sharp knees and slow ones, queues in a row (mean value analysis), steps of
striped objects, rates that fall again beyond the knee, cells that are off by some percent. The fit knows a
form for the first two only. A full grid is judged by its means, the highest of which is its plateau, and by
the same fit.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from harness import table
from leadline.analysis.knee import Grid, Knee, Place, find_knee, next_cells
from leadline.plan.make import first_cells

GRID = Grid.whole([2.0**power for power in range(16, 31)], [2.0**power for power in range(9)])
SHARE, TRIALS = 0.95, 60
NOISES = (0.05, 0.10, 0.20)
SURFACES, SURFACES_FULL = 100, 20
Surface = Mapping[Place, float]


def surface(chance: random.Random) -> Surface:
    """A rate in every cell of the grid, bytes per second."""
    plateau = 10 ** chance.uniform(7, 10)
    kind = chance.choice((_sharp, _adding, _queues, _striped))
    rate = kind(plateau, chance)
    falls, least = chance.random() < 0.3, 2 ** chance.uniform(30, 36)
    found = {}
    for cell in GRID.cells:
        buffer, requests = (levels[at] for levels, at in zip(GRID.levels, cell, strict=True))
        fall = max(buffer * requests / least, 1.0) ** -0.2 if falls else 1.0
        found[cell] = rate(buffer, requests) * fall
    return found


def _quirks(rates: Surface, chance: random.Random) -> Surface:
    """The same with each cell off by some percent, always the same way: no repetition averages that out."""
    off = chance.choice((0.0, 0.01, 0.03))
    return {cell: rate * math.exp(chance.gauss(0, off)) for cell, rate in rates.items()}


Rate = Callable[[float, float], float]


def _sharp(plateau: float, chance: random.Random) -> Rate:
    """min(plateau, W / (t0 + b / v))."""
    latency, speed = _latency(plateau, chance), plateau / 2 ** chance.uniform(-1, 6)
    return lambda buffer, requests: min(plateau, buffer * requests / (latency + buffer / speed))


def _adding(plateau: float, chance: random.Random) -> Rate:
    """Times that add up: a slow approach."""
    latency, speed = _latency(plateau, chance), plateau / 2 ** chance.uniform(-1, 5)
    most = 10 ** chance.uniform(3, 6)  # requests for each second
    return lambda buffer, requests: (
        1 / (1 / plateau + latency / (buffer * requests) + 1 / (speed * requests) + 1 / (most * buffer))
    )


def _queues(plateau: float, chance: random.Random) -> Rate:
    """Exact mean value analysis of a closed loop through a bottleneck, another station and a delay."""
    delay, share = _latency(plateau, chance), chance.uniform(0.3, 0.9)
    overhead = 10 ** chance.uniform(-6, -4)

    def rate(buffer: float, requests: float) -> float:
        services = [overhead + buffer / plateau, share * (overhead + buffer / plateau)]
        queues, found = [0.0, 0.0], 0.0
        for count in range(1, int(requests) + 1):
            stays = [service * (1 + queue) for service, queue in zip(services, queues, strict=True)]
            found = count / (delay + sum(stays))
            queues = [found * stay for stay in stays]
        return found * buffer

    return rate


def _striped(plateau: float, chance: random.Random) -> Rate:
    """A buffer goes to as many objects of 4 MiB at once as it has."""
    latency, each = _latency(plateau, chance), plateau / 2 ** chance.uniform(2, 7)
    disks = 2 ** chance.randrange(3, 9)

    def rate(buffer: float, requests: float) -> float:
        wide = min(max(math.ceil(buffer / 2**22), 1) * requests, disks)
        return min(plateau, wide * each, buffer * requests / latency)

    return rate


def _latency(plateau: float, chance: random.Random) -> float:
    """Such that the knee lies somewhere in the grid, or a little beyond."""
    return 2 ** chance.uniform(18, 36) / plateau


@dataclass(frozen=True)
class SweepTried:
    """What became of a sweep: the trials and cells it took, and what it said beside what is true."""

    trials: int
    cells: int
    steps: float  # from the true knee, as doublings of the product
    share: float  # that the cell gives in truth
    holds: bool  # the interval of the knee
    plateau: float  # said / true
    plateau_holds: bool
    doublings: float  # that the interval of the knee spans


def true_knee(rates: Surface) -> Place:
    """The least product of levels that gives the share of the most; of several the quickest."""
    most = max(rates.values())
    enough = [cell for cell, rate in rates.items() if rate >= SHARE * most]
    return min(enough, key=lambda cell: (GRID.amount(cell), -rates[cell]))


def sweep(rates: Surface, noise: float, chance: random.Random) -> SweepTried:
    """One adaptive sweep; a block has half of the noise in common, and one trial in fifty stalls."""
    seen: dict[Place, dict[int, float]] = {}
    real = _quirks(rates, chance)
    cells, block, trials = first_cells([len(levels) for levels in GRID.levels], GRID.cells), 0, 0
    while cells:
        block, common = block + 1, chance.gauss(0, noise / 2)
        for cell in cells:
            seen.setdefault(cell, {})[block] = _measured(real[cell], common, noise, chance)
        trials += len(cells)
        cells = next_cells(GRID, seen, SHARE, (), TRIALS - trials)
    found = find_knee(GRID, seen, SHARE)
    assert found is not None
    return _judged(found, rates, trials, len(seen))


def _measured(rate: float, common: float, noise: float, chance: random.Random) -> float:
    stalled = 0.6 if chance.random() < 0.02 else 1.0
    return rate * stalled * math.exp(common + chance.gauss(0, noise))


def _judged(found: Knee, rates: Surface, trials: int, cells: int) -> SweepTried:
    most, truth = max(rates.values()), math.log2(GRID.amount(true_knee(rates)))
    low, high = (math.log2(amount) for amount in found.amounts)
    plateau, least, greatest = found.plateau
    return SweepTried(
        trials,
        cells,
        math.log2(GRID.amount(found.knee)) - truth,
        rates[found.knee] / most,
        low - 0.01 <= truth <= high + 0.01,
        plateau / most,
        least <= most <= greatest,
        high - low,
    )


def full_grid(rates: Surface, noise: float, blocks: int, chance: random.Random) -> tuple[float, float]:
    """How far off a full grid is by its means, and by the fit, as doublings."""
    commons = [chance.gauss(0, noise / 2) for _ in range(blocks)]
    seen = {
        cell: {n: _measured(rate, common, noise, chance) for n, common in enumerate(commons)}
        for cell, rate in _quirks(rates, chance).items()
    }
    truth = math.log2(GRID.amount(true_knee(rates)))
    means = {cell: math.exp(fmean(map(math.log, own.values()))) for cell, own in seen.items()}
    fitted = find_knee(GRID, seen, SHARE)
    assert fitted is not None
    by_means, by_fit = (math.log2(GRID.amount(cell)) - truth for cell in (true_knee(means), fitted.knee))
    return by_means, by_fit


def knees() -> Iterator[str]:
    """Cells and trials that sweeps take, and how often they are right."""
    yield from ["## The knee of a sweep", ""]
    yield (
        f"{SURFACES} surfaces a row, a grid of {len(GRID.cells)} cells, at most {TRIALS} trials. A step is a"
        " doubling of the bytes in flight; `gives` is what the cell gives in truth, of the true plateau"
        " (median and fifth percentile)."
    )
    headings = (
        "noise of a trial | cells | trials | knee right | within a step | gives | interval of the knee holds"
    )
    headings += " | it spans (steps) | plateau off (median) | interval of the plateau holds"
    yield from ["", *table(headings, map(_knees, NOISES))]


def _knees(noise: float) -> Sequence[str]:
    chance = random.Random(f"knees {noise}")  # noqa: S311 - reproducible, no secret
    tried = [sweep(surface(chance), noise, chance) for _ in range(SURFACES)]
    shares = sorted(one.share for one in tried)
    return (
        f"{noise:.0%}",
        f"{fmean(one.cells for one in tried):.0f}",
        f"{fmean(one.trials for one in tried):.0f}",
        _share(abs(one.steps) < 0.5 for one in tried),
        _share(abs(one.steps) < 1.5 for one in tried),
        f"{median(shares):.0%}, {shares[len(shares) // 20]:.0%}",
        _share(one.holds for one in tried),
        f"{median(one.doublings for one in tried):.0f}",
        f"{median(abs(one.plateau - 1) for one in tried):.1%}",
        _share(one.plateau_holds for one in tried),
    )


def grids() -> Iterator[str]:
    """The same of full grids."""
    yield from ["## The same of full grids", ""]
    yield f"Every cell of the grid, {SURFACES_FULL} surfaces a row: within a step of the knee (and right)."
    rows = []
    for noise in NOISES:
        for blocks in (1, 3):
            chance = random.Random(f"grids {noise} {blocks}")  # noqa: S311
            off = [full_grid(surface(chance), noise, blocks, chance) for _ in range(SURFACES_FULL)]
            near = (_near([one[way] for one in off]) for way in (0, 1))
            rows.append((f"{noise:.0%}", len(GRID.cells) * blocks, *near))
    yield from ["", *table("noise of a trial | trials | by the means | by the fit", rows)]


def _near(steps: Sequence[float]) -> str:
    """Of some within a step, and right."""
    return f"{_share(abs(one) < 1.5 for one in steps)} ({_share(abs(one) < 0.5 for one in steps)})"


def _share(found: Iterable[bool]) -> str:
    every = list(found)
    return f"{sum(every) / len(every):.0%}"
