"""Rates of closed loops over shared stations: queues by mean value analysis, full stations by max-min shares.

Approximate mean value analysis: Schweitzer 1979; several servers as a faster one and a delay: Seidmann and
others 1987. Max-min fairness by progressive filling: Bertsekas and Gallager, Data Networks, 6.5.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from leadline.simulation.demands import Demand

ROUNDS = 100
SETTLED = 1e-6
_SHORTEST = 1e-9


@dataclass(frozen=True)
class Rates:
    """Requests per second of one client of each demand, seconds of each, and the share in use of stations.

    `off`: how far the iteration was from its end, as the logarithm of a rate.
    """

    each: np.ndarray
    seconds: np.ndarray
    use: Mapping[str, float]
    bounds: tuple[str, ...]
    off: float

    @property
    def settled(self) -> bool:
        """Whether the queues agree with the rates that make them: without it the rates are no prediction."""
        return self.off < SETTLED


def solve(demands: Sequence[Demand], servers: Mapping[str, float]) -> Rates:
    """`servers`: of stations that have not one."""
    names = sorted({name for one in demands for name in one.seconds} | {"client processor"})
    columns = [(name, own) for name in names for own in _owners(name, demands)]
    load, way, counts = _tables(demands, columns, servers)
    windows = np.array([one.window or one.work.in_flight for one in demands], dtype=float)
    many = np.array([[servers.get(name, 1.0) for name, _ in columns]])
    delay = np.array([one.delay_s for one in demands]) + (way * np.maximum(many - 1, 0)).sum(axis=1)
    total = np.maximum((counts * windows[:, None] * (load > 0)).sum(axis=0), 1.0)
    forks = np.maximum((load * (way > 0)).sum(axis=1) / np.maximum(way.sum(axis=1), 1e-300), 1.0)
    total = np.maximum(total * forks.max(initial=1.0), 1.0)
    arrive = (total - 1) / total
    spread = np.array([[one.queue_spread] for one in demands])
    queued = way.any(axis=0)  # where nobody waits there is no queue: only the shares below hold such stations
    tables = (load[:, queued], way[:, queued], counts[:, queued])
    rates, off = _balanced(windows, delay, *tables, arrive[queued], spread)
    rates = max_min(rates, load, counts)
    use = (counts * rates[:, None] * load).sum(axis=0)
    found: dict[str, float] = {}
    for (name, _), share in zip(columns, use, strict=True):
        found[name] = max(found.get(name, 0.0), float(share))
    bounds = tuple(_bound(row, load, use, columns, windows) for row in range(len(demands)))
    return Rates(rates, windows / np.maximum(rates, 1e-12), found, bounds, off)


def max_min(wanted: np.ndarray, load: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """No more than `wanted`, no station above one, and nobody's rate raised at the cost of a slower one's.

    Clients rise together, each by the same share of the station that it loads most.
    """
    rates, free = np.zeros_like(wanted), np.ones(len(wanted), dtype=bool)
    while free.any():
        step = np.where(free, 1 / np.maximum(load.max(axis=1), 1e-300), 0.0)
        used = (counts * rates[:, None] * load).sum(axis=0)
        rising = (counts * step[:, None] * load).sum(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            room = np.where(rising > 0, (1 - used) / rising, np.inf)
        left = float(np.min(np.where(free, (wanted - rates) / np.maximum(step, 1e-300), np.inf)))
        grow = max(min(float(room.min(initial=np.inf)), left), 0.0)
        rates = rates + grow * step
        full = room <= grow * (1 + 1e-9) + 1e-12
        done = (rates >= wanted * (1 - 1e-9)) | ((load > 0) & full[None, :]).any(axis=1)
        if not (done & free).any():
            break
        free &= ~done
    return rates


def _owners(name: str, demands: Sequence[Demand]) -> list[int]:
    """-1 for a station that all share; else a column for each demand that has its own."""
    owners = [row for row, one in enumerate(demands) if name in one.own]
    return owners or [-1]


def _tables(
    demands: Sequence[Demand], columns: Sequence[tuple[str, int]], servers: Mapping[str, float]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    shape = (len(demands), len(columns))
    load, way, counts = np.zeros(shape), np.zeros(shape), np.ones(shape)
    for place, (name, owner) in enumerate(columns):
        for row, one in enumerate(demands):
            if owner in (-1, row) and one.seconds.get(name):
                load[row, place] = one.seconds[name] / servers.get(name, 1.0)
                way[row, place] = one.waited[name] / servers.get(name, 1.0)
                counts[row, place] = 1 if owner == row else one.clients
    return load, way, counts


def _balanced(
    windows: np.ndarray,
    delay: np.ndarray,
    load: np.ndarray,
    way: np.ndarray,
    counts: np.ndarray,
    arrive: np.ndarray,
    spread: np.ndarray,
) -> tuple[np.ndarray, float]:
    """Rates whose queues take as long as the windows over them, and how far off they are.

    Newton's method on logarithms of rates. Near a full station a small step changes its queue a lot, so
    that plain steps swing without end: a step that does not come nearer is halved. Queues of times that
    scatter less than exponential ones are shorter (`spread`): then rates may pass what a station can do, and
    the shares hold them.
    """

    def look(logs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        part = counts * np.exp(logs)[:, None] * load
        left = 1 - arrive * part.sum(axis=0)
        if left.min(initial=1.0) <= 0:
            return np.full(len(logs), np.inf), part
        seconds = delay + (way * (1 + spread * arrive * part.sum(axis=0) / left)).sum(axis=1)
        slope = (way * spread * arrive / left**2) @ part.T / seconds[:, None]
        return np.log(windows / seconds) - logs, slope + np.eye(len(logs))

    rates = windows / (delay + way.sum(axis=1))
    fullest = float((counts * rates[:, None] * load).sum(axis=0).max(initial=0.0))
    logs = np.log(rates * min(1.0, 0.5 / max(fullest, 1e-300)))
    off, slope = look(logs)
    for _ in range(ROUNDS):
        if np.abs(off).max() < SETTLED:
            break
        step, part = np.linalg.solve(slope, off), 1.0
        nearer, slope = look(logs + step)
        while not np.linalg.norm(nearer) < np.linalg.norm(off) and part > _SHORTEST:
            part /= 2
            nearer, slope = look(logs + part * step)
        if not np.isfinite(nearer).all():
            break
        logs, off = logs + part * step, nearer
    return np.exp(logs), float(np.abs(off).max())


def _bound(
    row: int,
    load: np.ndarray,
    use: np.ndarray,
    columns: Sequence[tuple[str, int]],
    windows: np.ndarray,
) -> str:
    """The fullest station of its way; its own window where nothing of it is nearly full."""
    own = np.where(load[row] > 0, use, 0.0)
    place = int(np.argmax(own))
    if own[place] >= _NEARLY_FULL:
        return columns[place][0]
    return f"what is in flight ({windows[row]:.4g} of a client), {columns[place][0]} next"


_NEARLY_FULL = 0.85
