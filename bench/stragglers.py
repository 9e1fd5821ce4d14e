"""Simulation of studies on many hosts: how often a host is called slow that is not, and one found that is.

What is judged is `analysis/stragglers.py` with the threshold of the code `straggler`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from leadline.analysis.stragglers import hosts_away
from leadline.verdict.hosts import is_straggler
from shares import random_of, share, table

Array = NDArray[np.float64]
Noise = Callable[[np.random.Generator, int, int], Array]

HOSTS = (2, 3, 4, 16, 64)
BLOCKS = (3, 6)
TRIES = {2: 200, 3: 200, 4: 200, 16: 100, 64: 60}
SLOW = 0.8
_LATE = 0.5  # correlation of neighbouring blocks


def _plain(deviation: float) -> Noise:
    return lambda random, hosts, blocks: random.normal(0, deviation, (hosts, blocks))


def _together(random: np.random.Generator, hosts: int, blocks: int) -> Array:
    """What happens to all of them is large beside what happens to each."""
    return np.asarray(random.normal(0, 0.3, (1, blocks)) + random.normal(0, 0.03, (hosts, blocks)))


def _one_noisy(random: np.random.Generator, hosts: int, blocks: int) -> Array:
    deviation = np.where(np.arange(hosts) == 0, 0.15, 0.03)[:, None]
    return np.asarray(random.normal(0, 1, (hosts, blocks)) * deviation)


def _heavy(random: np.random.Generator, hosts: int, blocks: int) -> Array:
    """Now and then a block of a host is slow: Student's t of three degrees."""
    return np.asarray(0.03 * random.standard_t(3, (hosts, blocks)))


def _correlated(random: np.random.Generator, hosts: int, blocks: int) -> Array:
    rows = random.normal(0, 0.05, (hosts, blocks))
    for block in range(1, blocks):
        rows[:, block] = _LATE * rows[:, block - 1] + np.sqrt(1 - _LATE**2) * rows[:, block]
    return np.asarray(rows)


_SCENARIOS: dict[str, Noise] = {
    "3 % from block to block": _plain(0.03),
    "10 %": _plain(0.1),
    "30 % that all hosts share, 3 % of each": _together,
    "one host five times as noisy": _one_noisy,
    "a slow block now and then (t, 3 degrees)": _heavy,
    "5 %, blocks correlated (0.5)": _correlated,
}


def equal_hosts() -> Iterator[str]:
    """The share of studies that call any host slow, of hosts that are equal."""
    yield "## Stragglers: false alarms on equal hosts"
    yield "In % of studies of one cell that name any host, with its 95 % interval. At most 5 was meant."
    yield ""
    yield _table(_tried(slow=1.0, key=1), any)


def power() -> Iterator[str]:
    """How often one host that is slower by a fifth is found, and how often another one is named."""
    found = _tried(slow=SLOW, key=2)
    yield "## Stragglers: one host 20 % slower than the others"
    yield "In % of studies of one cell that name it."
    yield ""
    yield _table(found, lambda named: named[0])
    yield ""
    yield "In % of these that name another host, with it or without."
    yield ""
    yield _table(found, lambda named: any(named[1:]))


# (scenario, hosts) -> of each study, which hosts it names
_Found = dict[tuple[str, int], list[list[bool]]]


def _tried(*, slow: float, key: int) -> _Found:
    return {
        (f"{name}, {blocks} blocks", hosts): [
            _named(random_of(950 + key, place, blocks, hosts, at), noise, hosts, blocks, slow)
            for at in range(TRIES[hosts])
        ]
        for place, (name, noise) in enumerate(_SCENARIOS.items())
        for blocks in BLOCKS
        for hosts in HOSTS
    }


def _table(found: _Found, hit: Callable[[list[bool]], bool]) -> str:
    scenarios = dict.fromkeys(name for name, _ in found)
    rows = [
        [name, *(share(sum(map(hit, found[name, hosts])), TRIES[hosts]) for hosts in HOSTS)]
        for name in scenarios
    ]
    return table(["scenario", *(f"{hosts} hosts" for hosts in HOSTS)], rows)


def _named(random: np.random.Generator, noise: Noise, hosts: int, blocks: int, slow: float) -> list[bool]:
    """Which hosts are called slow; the first one is."""
    speeds = np.exp(noise(random, hosts, blocks))
    speeds[0] *= slow
    names = [f"{host:03}" for host in range(hosts)]
    by_block = {block: dict(zip(names, speeds[:, block], strict=True)) for block in range(blocks)}
    return [is_straggler(one) for one in hosts_away({"cell": by_block})]
