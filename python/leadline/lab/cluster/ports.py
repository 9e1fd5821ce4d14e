"""Free TCP ports for a monitor: tried by binding, outside the range that outgoing connections use."""

from __future__ import annotations

import errno
import random
import socket

from leadline.errors import LabError

# Below Linux's ephemeral ports (32768 up) and above Ceph's own 6800 to 7300.
PORT_MIN, PORT_MAX = 10_000, 32_000
_ATTEMPTS_MAX = 200
_ADDRESS_ERRORS = frozenset({errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT})


def is_free(address: str, port: int) -> bool:
    """True where a server could bind to `address`:`port` now. Raises LabError for a foreign address."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        # As Ceph does it: a port in TIME_WAIT counts as free, a listening one does not.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
            probe.listen(1)
        except OSError as error:
            if error.errno in _ADDRESS_ERRORS:
                raise LabError(
                    f"the address {address} is not this machine's: {error.strerror}",
                    "Use 127.0.0.1, or an address that `ip address` lists.",
                ) from error
            return False
    return True


def choose_port(address: str, chance: random.Random) -> int:
    """A port of `address` that is free now, drawn with `chance`. Raises LabError where none is found."""
    for _ in range(_ATTEMPTS_MAX):
        port = chance.randint(PORT_MIN, PORT_MAX)
        if is_free(address, port):
            return port
    raise LabError(
        f"no free TCP port between {PORT_MIN} and {PORT_MAX} on {address} in {_ATTEMPTS_MAX} attempts",
        "See `ss -ltn` for what holds them.",
    )
