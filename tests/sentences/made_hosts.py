"""Results of studies on several hosts, made by chance; some hosts are slow."""

from __future__ import annotations

import random
from pathlib import Path

from host_studies import names, stored

MIB = 1 << 20


def random_hosts(chance: random.Random, path: Path) -> Path:
    """Two to twelve hosts, none or some of them slow, in few or many blocks."""
    hosts = names(chance.choice([2, 3, 4, 7, 12]))
    slow = {host: chance.choice([0.5, 0.8, 0.9]) for host in hosts if chance.random() < 0.25}
    slow = slow if len(slow) * 2 < len(hosts) else {}
    only = chance.choice(["", "randread"])
    noise = chance.choice([0.005, 0.02, 0.1])
    begins = {host: round(chance.expovariate(1 / 2e6)) for host in hosts}

    def rate(host: str, _block: int, cell: str) -> float:
        factor = slow.get(host, 1.0) if only in cell else 1.0
        return 100 * MIB * factor * chance.lognormvariate(0, noise)

    stored(
        path, hosts, rate, blocks=chance.choice([1, 3, 6, 8]), begins_ns=lambda host: begins[host], seconds=2
    )
    return path


def random_many_slow(chance: random.Random, path: Path) -> Path:
    """Six of sixteen hosts lie far behind the others."""
    hosts = names(16)
    slow = chance.sample(hosts, 6)

    def rate(host: str, _block: int, _cell: str) -> float:
        return 100 * MIB * (0.6 if host in slow else 1.0) * chance.lognormvariate(0, 0.01)

    stored(path, hosts, rate, blocks=6, seconds=2)
    return path
