"""What many clients reach together, by their links, wherever the primaries of their writes lie."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from leadline.analysis.models.computed import Computed, ModelSaid, exactly
from leadline.analysis.models.links import Port, Wired, carried, ceiling
from leadline.analysis.models.simple import Protection
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
        "An upper bound: processors, devices and what is in flight may be less. Recovery, and traffic that"
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
