"""What links carry for each byte of the clients, and so what all of them can reach together, wherever the
primaries of their writes lie.

A tree of switches: what leaves a machine goes up its link and uplinks to the first switch above both ends,
and down from there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from leadline.analysis.models.simple import Computed, ModelSaid, Protection, exactly
from leadline.errors import UsageError

_DRAWS = 400
_SPAN = (5.0, 95.0)  # percent of the draws
_SEED = 1


def aggregate(
    wired: Wired,
    protection: Protection,
    *,
    reads: bool = False,
    primaries: Mapping[str, int] | None = None,
    groups: int | None = None,
) -> ModelSaid:
    """The ceiling of all clients by the links, bytes per second.

    `primaries`: placement groups by the host of their primary, as the map has them; else `groups`: how many
    there are, each at a host by chance. Neither: dealt out evenly. Raises UsageError for hosts that are none,
    and for fewer hosts than copies or shards.
    """
    _require(wired, protection, primaries)
    even = {host: float(osds) for host, osds in wired.storage.items() if osds}
    total = sum(even.values())
    shares = {host: osds / total for host, osds in even.items()}
    best, full = ceiling(wired, carried(wired, protection, shares, reads=reads))
    found = [exactly("with primaries dealt out evenly", best, "B/s", f"full then: {_words(full)}")]
    if primaries is not None:
        count = sum(primaries.values())
        own = {host: held / count for host, held in primaries.items() if held}
        most, full = ceiling(wired, carried(wired, protection, own, reads=reads))
        words = ", ".join(f"{held} of {count} on {host}" for host, held in primaries.items() if held)
        found.insert(0, exactly("as the map has them", most, "B/s", f"{words}; full then: {_words(full)}"))
    elif groups is not None:
        low, high = _by_chance(wired, protection, shares, groups, reads)
        words = f"{_SPAN[0]:.0f} to {_SPAN[1]:.0f} % of {_DRAWS} maps of {groups} groups drawn by OSDs"
        found.insert(0, Computed("as chance deals them out", low, high, "B/s", words))
    return ModelSaid(
        tuple(found),
        "Ceph's documentation, Architecture: who sends which parts to whom; a tree of switches",
        "An upper bound: processors, devices and the queue depth may allow less. Recovery, and traffic that"
        " is not the clients', come on top.",
    )


def _by_chance(
    wired: Wired, protection: Protection, shares: Mapping[str, float], groups: int, reads: bool
) -> tuple[float, float]:
    """What is carried is linear in the shares of primaries: one load a host, and their mixtures."""
    hosts = list(shares)
    loads = [carried(wired, protection, {host: 1.0}, reads=reads) for host in hosts]
    ports = sorted({port for load in loads for port in load if port[0] in wired.rates})
    if not ports:
        return float("inf"), float("inf")
    table = np.array([[load.get(port, 0.0) / wired.rates[port[0]] for port in ports] for load in loads])
    drawn = np.random.default_rng(_SEED).multinomial(groups, [shares[one] for one in hosts], size=_DRAWS)
    ceilings = 1.0 / np.max(drawn / groups @ table, axis=1)
    low, high = np.percentile(ceilings, _SPAN)
    return float(low), float(high)


def _require(wired: Wired, protection: Protection, primaries: Mapping[str, int] | None) -> None:
    hosts = [host for host, osds in wired.storage.items() if osds]
    if len(hosts) < protection.shards:
        raise UsageError(
            f"{protection.shards} copies or shards do not fit on {len(hosts)} hosts with OSDs",
            "give more hosts, or another --protection",
        )
    unknown = sorted(set(primaries or ()) - set(hosts))
    if unknown:
        raise UsageError(f"{', '.join(unknown)}: no host with OSDs", f"there are: {', '.join(hosts)}")


def _words(ports: Sequence[Port]) -> str:
    return ", ".join(f"{name} {way}" for name, way in ports) or "nothing: no link has a limit"


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
