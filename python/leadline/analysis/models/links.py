"""What links carry for each byte of the clients, and so what all of them can reach together.

A tree of switches: what leaves a machine goes up its link and uplinks to the first switch above both ends,
and down from there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from leadline.analysis.models.simple import Protection

Way = Literal["up", "down"]
Port = tuple[str, Way]  # a machine's or a switch's cable to what is above it


@dataclass(frozen=True)
class Wired:
    """Machines and switches by what is above each ("" above the top), and the bytes per second of each cable.

    A cable without a limit is not in `rates`. `storage` has the hosts with OSDs and how many each has,
    `proxies` the machines that each byte of the clients goes through, if any, in turn over all. `behind`: by
    which cable a host's OSDs speak to others', where that is not its own.
    """

    above: Mapping[str, str]
    rates: Mapping[str, float]
    storage: Mapping[str, int]
    clients: Sequence[str]
    proxies: Sequence[str] = ()
    behind: Mapping[str, str] = field(default_factory=dict)


def carried(
    wired: Wired, protection: Protection, primaries: Mapping[str, float], *, reads: bool = False
) -> dict[Port, float]:
    """Bytes through each cable for one byte of the clients, who share them evenly.

    `primaries`: the share of primary OSDs of each storage host. Replicas and shards lie on hosts of their
    own, each but the primary's as likely as its OSDs are many. Source: Ceph's documentation of replicated and
    erasure-coded reads and writes ("Architecture").
    """
    found: dict[Port, float] = defaultdict(float)
    for source, destination, share in _flows(wired, protection, primaries, reads):
        for port in _ports(wired.above, source, destination):
            found[port] += share
    return dict(found)


def ceiling(wired: Wired, load: Mapping[Port, float]) -> tuple[float, tuple[Port, ...]]:
    """The most bytes per second of all clients, and the cables that are full then (within 1 %)."""
    limits = {
        port: wired.rates[port[0]] / share
        for port, share in load.items()
        if port[0] in wired.rates and share > 0
    }
    least = min(limits.values(), default=float("inf"))
    return least, tuple(sorted(port for port, limit in limits.items() if limit <= 1.01 * least))


def _flows(
    wired: Wired, protection: Protection, primaries: Mapping[str, float], reads: bool
) -> Iterator[tuple[str, str, float]]:
    """Who sends what to whom, for one byte of the clients."""
    fronts = list(wired.proxies) or list(wired.clients)
    for proxy in wired.proxies:
        for client in wired.clients:
            share = 1 / len(wired.proxies) / len(wired.clients)
            yield (proxy, client, share) if reads else (client, proxy, share)
    for primary, of_all in primaries.items():
        for front in fronts:
            yield (
                (primary, front, of_all / len(fronts)) if reads else (front, primary, of_all / len(fronts))
            )
        yield from _behind(wired, protection, primary, of_all, reads)


def _behind(
    wired: Wired, protection: Protection, primary: str, of_all: float, reads: bool
) -> Iterator[tuple[str, str, float]]:
    """Between a primary's host and the others: whole copies, or the k-th part that each has."""
    if protection.copies is not None:
        if reads:
            return
        parts, size = protection.copies - 1, 1.0
    else:
        k = protection.k or 1
        parts, size = (k - 1 if reads else protection.shards - 1), 1 / k
    others = {host: osds for host, osds in wired.storage.items() if host != primary and osds}
    here = wired.behind.get(primary, primary)
    for other, chance in _chances(others, parts).items():
        share, there = of_all * size * chance, wired.behind.get(other, other)
        yield (there, here, share) if reads else (here, there, share)


def _chances(hosts: Mapping[str, int], parts: int) -> dict[str, float]:
    """How likely each has one of so many parts, by its OSDs; none has two of them."""
    left, free, found = float(min(parts, len(hosts))), dict(hosts), dict[str, float]()
    while free:
        total = sum(free.values())
        full = [host for host, osds in free.items() if left * osds >= total]
        if not full:
            return found | {host: left * osds / total for host, osds in free.items()}
        for host in full:
            found[host] = 1.0
            left -= 1
            del free[host]
    return found


def _ports(above: Mapping[str, str], source: str, destination: str) -> Iterable[Port]:
    if source == destination:
        return
    ways = [list(_up(above, one)) for one in (source, destination)]
    common = {one for one in ways[0]} & {one for one in ways[1]}
    yield from ((one, "up") for one in ways[0] if one not in common)
    yield from ((one, "down") for one in ways[1] if one not in common)


def _up(above: Mapping[str, str], name: str) -> Iterator[str]:
    """It, and every switch above it."""
    while name:
        yield name
        name = above.get(name, "")
