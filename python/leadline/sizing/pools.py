"""Pools on devices of a class of their own, such as metadata on fast ones beside disks: what each holds.

Their bytes on links are not counted: what is asked of links is all of clients' data.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from leadline.sizing.hardware import HardwareHost
from leadline.sizing.request import AskedSizing, Pool, protection_of


@dataclass(frozen=True)
class PoolHeld:
    """One pool: what it has to hold in the last year, what its devices hold; None where a host has none."""

    name: str
    device_class: str
    protection: str
    asked_bytes: float
    usable_bytes: float | None

    @property
    def lacks(self) -> str:
        """What is in the way; "" where it holds all."""
        if self.usable_bytes is None:
            return f"devices of class {self.device_class}"
        return "" if self.usable_bytes >= self.asked_bytes else f"pool {self.name}"


def pools_held(asked: AskedSizing, one: HardwareHost, hosts: int) -> Iterator[PoolHeld]:
    """Each pool by itself. Several on one class share its devices in parts of what each stores."""
    raw = {name: _raw_bytes(asked, pool) for name, pool in asked.pools.items()}
    for name, pool in asked.pools.items():
        devices = one.classes.get(pool.device_class)
        usable = None
        if devices is not None:
            beside = sum(
                raw[other] for other, two in asked.pools.items() if two.device_class == pool.device_class
            )
            left = (hosts - asked.hosts_lost) * devices.bytes_held * asked.filled
            usable = left * raw[name] / beside / protection_of(pool.protection).amplification
        wanted = pool.bytes_in(asked.growth, asked.years)
        yield PoolHeld(name, pool.device_class, pool.protection, wanted, usable)


def fewest_hosts(asked: AskedSizing, text: str) -> int:
    """One for each shard of the pool with most, and those that may be lost."""
    texts = (text, *(pool.protection for pool in asked.pools.values()))
    return max(protection_of(one).shards for one in texts) + asked.hosts_lost


def rebuilt_of_pools(asked: AskedSizing, one: HardwareHost) -> float:
    """What hosts send each other to make one host's devices of all classes anew that pools use."""
    found = 0.0
    for device_class in {pool.device_class for pool in asked.pools.values()} & one.classes.keys():
        own = [pool for pool in asked.pools.values() if pool.device_class == device_class]
        whole = sum(_raw_bytes(asked, pool) for pool in own)
        sent = sum(_raw_bytes(asked, pool) / whole * (protection_of(pool.protection).k or 1) for pool in own)
        found += one.classes[device_class].bytes_held * asked.filled * sent
    return found


def _raw_bytes(asked: AskedSizing, pool: Pool) -> float:
    return pool.bytes_in(asked.growth, asked.years) * protection_of(pool.protection).amplification
