"""What one request of each work costs where, and the rates of closed loops over these shared stations.

Queues by approximate mean value analysis: Schweitzer 1979; several servers as a faster one and a delay:
Seidmann and others 1987. Full stations by max-min fairness, progressive filling: Bertsekas and Gallager, Data
Networks, 6.5.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from leadline.analysis.models.simple import STRIPE_UNIT_BYTES
from leadline.analysis.models.storage import partial_reads
from leadline.errors import UsageError
from leadline.simulation.model import SimulatedCluster, SimulatedWork
from leadline.simulation.parameters import COMMON, Parameters

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

    logs = np.log(_start(windows, delay, load, way, counts))
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


def _start(
    windows: np.ndarray, delay: np.ndarray, load: np.ndarray, way: np.ndarray, counts: np.ndarray
) -> np.ndarray:
    """Rates to start from: every station has room.

    A demand that waits nowhere, such as recovery, has a fixed rate and starts there. From a lower rate,
    Newton's first step moves it all the way, past what the queues of the others allow, and is halved until
    nothing moves. The others start with half of the room that is left.
    """
    rates: np.ndarray = windows / (delay + way.sum(axis=1))
    fixed: np.ndarray = np.logical_not(way.any(axis=1))
    used = counts * rates[:, None] * load
    held, rising = used[fixed].sum(axis=0), used[~fixed].sum(axis=0)
    if (held >= 1).any():  # more than a station can do: the shares hold it
        fixed[:] = False
        held, rising = np.zeros_like(held), used.sum(axis=0)
    shrink = float(np.min(0.5 * (1 - held[rising > 0]) / rising[rising > 0], initial=1.0))
    rates[~fixed] *= shrink
    return rates


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
    return f"outstanding requests ({windows[row]:.4g} of a client), {columns[place][0]} next"


_NEARLY_FULL = 0.85


CLIENT_MESSENGER = "client messenger processor"
CORES = "processors"  # those that all daemons of a host have together


@dataclass
class Demand:
    """Of one client's request: `seconds` of service by station, `waited` on its way, `delay_s` beside.

    `own` are stations that each client has for itself; `clients` how many of them there are.
    `queue_spread`: how long queues are beside those of exponential times; `stored_bytes`: what all stores
    write for it; `window`: how many are in flight at once, where the work does not say it.
    """

    work: SimulatedWork
    clients: int
    seconds: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    waited: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    own: set[str] = field(default_factory=set)
    delay_s: float = 0.0
    queue_spread: float = 1.0
    stored_bytes: float = 0.0
    window: float = 0.0

    def add(self, station: str, seconds: float, on_way: float = 1.0) -> None:
        """`on_way`: the share of its seconds that the request waits for."""
        self.seconds[station] += seconds
        self.waited[station] += seconds * on_way


def demands(
    cluster: SimulatedCluster,
    works: Sequence[SimulatedWork],
    placements: Sequence[np.ndarray],
    parameters: Parameters,
) -> list[Demand]:
    """One of each work and kind of client: those that hang alike on the same switch are one."""
    return [
        RequestCosts(cluster, work, placement, parameters).of(group)
        for work, placement in zip(works, placements, strict=True)
        for group in _alike(cluster, work)
    ]


def _alike(cluster: SimulatedCluster, work: SimulatedWork) -> list[list[str]]:
    count = work.clients or len(cluster.clients)
    if count > len(cluster.clients):
        raise UsageError(
            f"{work.name} asks for {count} clients, and the topology has {len(cluster.clients)}",
            "add `clients` to the topology, or ask for fewer",
        )
    found: dict[tuple[str, float], list[str]] = {}
    for name in cluster.clients[:count]:
        found.setdefault((cluster.above[name], cluster.rates.get(name, 0.0)), []).append(name)
    return list(found.values())


class RequestCosts:
    """Mean costs over the placement groups of one pool: every object is as likely in each of them."""

    def __init__(
        self, cluster: SimulatedCluster, work: SimulatedWork, placement: np.ndarray, parameters: Parameters
    ) -> None:
        self.cluster, self.work, self.parameters = cluster, work, parameters
        size = len(cluster.osd_hosts)
        held = placement[placement >= 0]
        first = np.where(placement[:, 0] >= 0, placement[:, 0], placement.max(axis=1))
        self.primaries = np.bincount(first, minlength=size) / len(placement)
        self.members = np.bincount(held, minlength=size) / len(placement)
        self.shards = float(self.members.sum())
        self.spread = parameters.value(COMMON, "fork_spread")
        self.link = parameters.value(COMMON, "link_share")

    def of(self, group: list[str]) -> Demand:
        """Of one client of a group."""
        found = Demand(self.work, len(group), queue_spread=self.parameters.value(COMMON, "queue_spread"))
        self._client(found)
        found.delay_s += self.work.think_s + self.parameters.value(COMMON, "latency_s")
        if self.work.rw == "metadata":
            self._metadata(found)
            return found
        reads = self.work.rw in ("read", "randread")
        self._front(found, group, reads)
        if reads:
            self._reads(found)
        else:
            self._writes(found)
        return found

    def _client(self, found: Demand) -> None:
        """Each of a client's programs has a processor of its own, unless all share those of one machine."""
        found.own |= {"client link", "client processor", CLIENT_MESSENGER}
        seconds = self.parameters.value(COMMON, "client_operation_s")
        jobs = 1 if self.cluster.machine_cores else self.work.jobs
        found.add("client processor", seconds / jobs)
        found.delay_s += seconds * (1 - 1 / jobs)
        if self.work.rw != "metadata":
            each_byte = self.parameters.value(COMMON, "client_byte_s")
            found.add(CLIENT_MESSENGER, each_byte * self.work.piece_bytes / jobs)

    def _metadata(self, found: Demand) -> None:
        seconds = self.parameters.value(COMMON, "mds_operation_s") / self.cluster.metadata_servers
        found.add("metadata server", seconds)

    def _front(self, found: Demand, group: list[str], reads: bool) -> None:
        """Clients to primaries, or back: by a proxy each byte passes its link twice."""
        size, home = self.work.piece_bytes, group[0]
        ends: list[str] = []
        if self.work.through:
            ends = list(self.cluster.proxies.get(self.work.through, ()))
            if not ends:
                roles = ", ".join(self.cluster.proxies)
                others = f", or go through {roles}" if roles else ""
                remedy = f"write `runs: [{self.work.through}]` for a host of the topology{others}"
                raise UsageError(f"no host runs {self.work.through!r}", remedy)
            found.delay_s += self.parameters.value(COMMON, "latency_s")
            for proxy in ends:
                self.wire(found, home, proxy, size / len(ends), reads, home=home)
        for source in ends or [home]:
            for host, share in self._by_host(self.primaries).items():
                self.wire(found, source, host, size * share / max(len(ends), 1), reads, home=home)

    def _by_host(self, shares: np.ndarray) -> dict[str, float]:
        found: dict[str, float] = defaultdict(float)
        for osd, share in enumerate(shares):
            if share:
                found[self.cluster.osd_hosts[osd]] += float(share)
        return found

    def wire(
        self,
        found: Demand,
        source: str,
        sink: str,
        size: float,
        back: bool,
        home: str = "",
        on_way: float = 1.0,
        parts: float = 1.0,
    ) -> None:
        """`back`: the bytes go from sink to source. `home`: the client's own cable; `parts` leave the source.

        Packets are on all links of a way at once, so that a request waits for the slowest alone. Its parts
        pass the source's own link one after the other, and lie side by side elsewhere (`on_way`).
        """
        if source == sink or not size:
            return
        up, down = list(_up(self.cluster.above, source)), list(_up(self.cluster.above, sink))
        common = set(up) & set(down)
        ways = [(one, "down" if back else "up") for one in up if one not in common]
        ways += [(one, "up" if back else "down") for one in down if one not in common]
        rates = self.cluster.rates
        limited = [one for one in ways if rates.get(one[0])]
        slow = max(limited, key=lambda one: (parts if one[0] == source else 1) / rates[one[0]], default=None)
        for name, way in limited:
            waited = 0.0 if (name, way) != slow else 1.0 if name == source else on_way
            station = "client link" if name == home else f"{name} {way}"
            found.add(station, size / rates[name] / self.link, waited)

    def _peers(self, found: Demand, bytes_each: float, reads: bool) -> None:
        """Between primaries and the others of their groups: sent at once, the slowest is waited for."""
        others = self.members - self.primaries
        hosts, first = self._by_host(np.maximum(others, 0)), self._by_host(self.primaries)
        behind = self.cluster.behind
        on_way = self._slowest(self.shards - 1)
        for source, share in first.items():
            away = {host: part for host, part in hosts.items() if host != source}
            total = sum(away.values())
            parts = (self.shards - 1) if not reads else (self.work.protection.k or 1) - 1
            if not total or parts <= 0:
                continue
            for sink, part in away.items():
                size = bytes_each * share * parts * part / total
                near, far = behind.get(source, source), behind.get(sink, sink)
                self.wire(found, near, far, size, reads, on_way=on_way, parts=parts)

    def _slowest(self, parts: float) -> float:
        """Of the seconds of so many parallel parts, the share that one request waits for."""
        if parts <= 1:
            return 1.0
        harmonic = sum(1 / (number + 1) for number in range(round(parts)))
        return float((1 + self.spread * (harmonic - 1)) / parts)

    def _each(
        self, found: Demand, shares: np.ndarray, what: str, cost: Callable[[str], float], on_way: float
    ) -> None:
        for osd, share in enumerate(shares):
            if share:
                seconds = float(share) * cost(self.cluster.osd_classes[osd])
                station = f"osd.{osd} {what}"
                found.add(station, seconds, on_way)
                home = self.cluster.osd_hosts[osd]
                if what == "processor" and self.cluster.cores.get(home):
                    found.add(f"{home} {CORES}", seconds, on_way)

    def on_osds(self, found: Demand, shares: np.ndarray, way: str, size: float) -> None:
        """A read or write of a store by each OSD's share."""
        cpu = self.parameters.value(COMMON, f"osd_{way}_s")
        cpu += self.parameters.value(COMMON, "osd_byte_s") * size
        self._each(found, shares, "processor", lambda _: cpu, 1.0)
        self._each(found, shares, "device", lambda kind: self._device(kind, way, size), 1.0)
        self._disks(found, shares, f"{way}s", lambda _: size, 1.0)

    def _disks(
        self, found: Demand, shares: np.ndarray, way: str, size: Callable[[str], float], on_way: float
    ) -> None:
        """What a host's OSDs may read and write together, where that is limited."""
        for osd, share in enumerate(shares):
            limits = self.cluster.disks.get(self.cluster.osd_hosts[osd])
            limit = 0.0 if limits is None else limits[0 if way == "reads" else 1]
            if share and limit:
                seconds = float(share) * size(self.cluster.osd_classes[osd]) / limit
                found.add(f"{self.cluster.osd_hosts[osd]} disk {way}", seconds, on_way)

    def _stored(self, kind: str, size: float) -> float:
        """Bytes that a store writes for a write: small ones go to its log first."""
        twice = size < self.parameters.value(kind, "twice_below_bytes")
        return size * (2 if twice else 1) + self.parameters.value(kind, "write_extra_bytes")

    def _reads(self, found: Demand) -> None:
        size, coded = self.work.piece_bytes, self.work.protection.k
        missing = 1 - self.work.cached
        cpu = self.parameters.value(COMMON, "osd_read_s")
        each_byte = self.parameters.value(COMMON, "osd_byte_s")
        self._each(found, self.primaries, "processor", lambda _: cpu + each_byte * size, 1.0)
        if coded is None or coded == 1:
            self._each(
                found, self.primaries, "device", lambda kind: missing * self._device(kind, "read", size), 1.0
            )
            self._disks(found, self.primaries, "reads", lambda _: missing * size, 1.0)
            return
        part = max(size / coded, STRIPE_UNIT_BYTES)
        share = self.members * coded / self.shards
        on_way = self._slowest(coded)
        self._peers(found, part, reads=True)
        found.delay_s += self.parameters.value(COMMON, "latency_s")
        self._each(found, share, "processor", lambda _: cpu + each_byte * part, on_way)
        self._each(found, share, "device", lambda kind: missing * self._device(kind, "read", part), on_way)
        self._disks(found, share, "reads", lambda _: missing * part, on_way)

    def _writes(self, found: Demand) -> None:
        size, protection = self.work.piece_bytes, self.work.protection
        cpu = self.parameters.value(COMMON, "osd_write_s")
        each_byte = self.parameters.value(COMMON, "osd_byte_s")
        kv = self.parameters.value(COMMON, "kv_operation_s")
        part = float(size)
        if protection.k is not None:
            stripe = protection.k * STRIPE_UNIT_BYTES
            part = -(-size // stripe) * STRIPE_UNIT_BYTES
            first = (
                partial_reads(size, protection.k, STRIPE_UNIT_BYTES) if self.work.rw == "randwrite" else 0.0
            )
            if first:
                share = self.members * first / self.shards
                read = self.parameters.value(COMMON, "osd_read_s")
                self._each(found, share, "processor", lambda _: read, self._slowest(first))
                self._each(
                    found,
                    share,
                    "device",
                    lambda kind: self._device(kind, "read", STRIPE_UNIT_BYTES),
                    self._slowest(first),
                )
                found.delay_s += self.parameters.value(COMMON, "latency_s")
        on_way = self._slowest(self.shards)
        self._peers(found, part, reads=False)
        self._each(found, self.members, "processor", lambda _: cpu + each_byte * part, on_way)
        self._each(found, self.members, "kv", lambda _: kv, on_way)
        self._each(found, self.members, "device", lambda kind: self._device(kind, "write", part), on_way)
        self._disks(found, self.members, "writes", lambda kind: self._stored(kind, part), on_way)
        found.stored_bytes = sum(
            float(share) * self._stored(self.cluster.osd_classes[osd], part)
            for osd, share in enumerate(self.members)
        )
        classes = {self.cluster.osd_classes[osd] for osd in np.flatnonzero(self.members)}
        flush = max(self.parameters.value(kind, "flush_s") for kind in classes)
        # A commit waits for half of the flush before it, and then for its own.
        found.delay_s += self.parameters.value(COMMON, "latency_s") + 1.5 * flush

    def _device(self, kind: str, way: str, size: float) -> float:
        return self.parameters.value(kind, f"{way}_operation_s") + size / self.parameters.value(
            kind, f"{way}_bytes_s"
        )


def _up(above: Mapping[str, str], name: str) -> Iterator[str]:
    while name:
        yield name
        name = above.get(name, "")
