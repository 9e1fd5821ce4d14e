"""Samples the ports of labs' switches: what passes each link, which no counter of a machine's own tells.

They are in a network namespace that the lab holds. This thread alone enters it, for as long as a read takes:
a lab is never kept from going by who looks at it. That needs root; without it there are no rows.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from leadline.errors import ResultError
from leadline.observe.host.proc_parse import Interface, parse_net_dev
from leadline.observe.network.sockets import entered
from leadline.observe.reading import Counters, Request, Row
from leadline.trusted import why_not_file
from leadline.wires import CLIENT, FILE, UPLINK, Wire, read_wires

SOURCE = "wire"
_NEVER_LINKED = os.O_NONBLOCK | os.O_NOFOLLOW
# Not /proc/net, which is that of the process's first thread.
_DEVICES = Path("/proc/thread-self/net/dev")


@dataclass(frozen=True)
class PortReading:
    """The devices of one lab at `t_ns`, by their names."""

    t_ns: int
    wires: tuple[Wire, ...]
    devices: dict[str, Interface]


class LabPortReader:
    """The labs in `directories` as a source."""

    name = "the ports of the lab"

    def __init__(self, directories: Sequence[str]) -> None:
        self._directories = [Path(directory) for directory in directories]
        self._before: dict[Path, PortReading] = {}

    def sample(self, now_ns: int, /) -> list[Row]:
        """Rates since the last call; nothing of a lab that cannot be read, or was made anew meanwhile."""
        rows: list[Row] = []
        for directory in self._directories:
            before = self._before.pop(directory, None)
            with suppress(OSError, ResultError):
                now = self._before[directory] = read_ports(directory, now_ns)
                rows += [] if before is None else port_rows(before, now)
        return rows

    def counters(self, _request: Request, /) -> Counters:
        """Nothing: no figure of a trial is made from it."""
        return Counters()


def read_ports(directory: Path, now_ns: int) -> PortReading:
    """What the kernel has counted at the ports of the lab there. Raises OSError or ResultError."""
    why = why_not_file(str(directory / FILE))
    if why:
        raise ResultError(why, "make the lab anew")
    wires = read_wires(directory)
    devices: dict[str, Interface] = {}
    for namespace in dict.fromkeys(wire.namespace for wire in wires):
        with entered(namespace, _NEVER_LINKED):
            devices |= parse_net_dev(_DEVICES.read_text())
    return PortReading(now_ns, wires, devices)


def port_rows(before: PortReading, now: PortReading) -> list[Row]:
    """What each port's host, client or lower switch sent and received per second, and what it may."""
    elapsed_s = (now.t_ns - before.t_ns) / 1e9
    rows: list[Row] = []
    for wire in now.wires:
        old, new = before.devices.get(wire.device), now.devices.get(wire.device)
        if old is None or new is None or elapsed_s <= 0:
            continue
        out, back = new.sent_bytes - old.sent_bytes, new.received_bytes - old.received_bytes
        if min(out, back) < 0:
            continue  # another lab by now
        # An uplink's device is its lower end; a host's or client's is the one at the switch, across from it.
        sent, received = (out, back) if wire.kind == UPLINK else (back, out)
        rows.append((SOURCE, wire.name, "tx_bytes_per_s", sent / elapsed_s, "B/s"))
        rows.append((SOURCE, wire.name, "rx_bytes_per_s", received / elapsed_s, "B/s"))
        if wire.rate_bits_per_s is not None:
            rows.append((SOURCE, wire.name, "rate_bytes_per_s", wire.rate_bits_per_s / 8, "B/s"))
        if wire.osds:
            rows.append((SOURCE, wire.name, "osds", float(wire.osds), "count"))
        if wire.kind == CLIENT:
            rows.append((SOURCE, wire.name, "clients", 1.0, "count"))
    return rows
