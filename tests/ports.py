"""Free ports for servers of tests: outside the range from which outgoing connections take theirs.

A port that the kernel names for port 0 is of that range: between being named and being used, any connection
of another test may take it.
"""

from __future__ import annotations

import random

from leadline.lab.cluster.process import PORT_MAX, PORT_MIN, is_free_port

_ATTEMPTS = 200


def free_ports(count: int = 1, addresses: tuple[str, ...] = ("127.0.0.1",)) -> int:
    """The first of so many ports in a row on which nobody listens at any of these addresses."""
    chance = random.SystemRandom()
    for _ in range(_ATTEMPTS):
        first = chance.randint(PORT_MIN, PORT_MAX - count)
        if all(is_free_port(address, first + more) for address in addresses for more in range(count)):
            return first
    raise AssertionError(f"no {count} free ports in a row in {_ATTEMPTS} tries")
