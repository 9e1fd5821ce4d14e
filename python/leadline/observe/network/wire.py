"""Counts bytes on the wire to and from a target's servers, by network interface.

Used where no client daemon's own count can be read itself.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from leadline.observe.host.proc_parse import parse_net_dev
from leadline.observe.mounts.limits import wire_limit
from leadline.observe.reading import Counters, joined, missing

if TYPE_CHECKING:
    from leadline.study.target import TargetFacts

WIRE = ("wire_sent_bytes", "wire_received_bytes")
INTERFACE = ("interface_sent_bytes", "interface_received_bytes")
_ADDRESS = re.compile(r"(?:^|,)(\[[0-9a-fA-F:]+\]|[0-9]+\.[0-9]+\.[0-9]+\.[0-9]+)")


def server_addresses(facts: TargetFacts) -> tuple[str, ...]:
    """Servers named by the mount itself: `addr=` of NFS and SMB, monitors of the CephFS kernel client."""
    options = dict(option.partition("=")[::2] for option in facts.options)
    if options.get("addr"):
        return (options["addr"],)
    monitors = options.get("mon_addr", "").replace("/", ",") or (facts.source or "")
    if facts.access == "ceph-kernel":
        return tuple(found.strip("[]") for found in _ADDRESS.findall(monitors))
    return ()


def interface_towards(address: str, interfaces: Callable[[], dict[str, list[str]]]) -> str | None:
    """The interface that packets to an address leave by (`lo` where it is this host's own)."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((address, 9))  # sends nothing: only asks the kernel for its route
            own = str(probe.getsockname()[0])
    except OSError:
        return None
    if own == address:
        return "lo"
    return next((name for name, addresses in interfaces().items() if own in addresses), None)


def interface_totals(names: Sequence[str], proc: Path = Path("/proc"), sys: Path = Path("/sys")) -> Counters:
    """Everybody's bytes on the interfaces towards the servers, and what these carry at most."""
    limit = wire_limit(names, proc, sys)
    found = parse_net_dev((proc / "net" / "dev").read_text())
    if "lo" in names:
        totals = missing(
            INTERFACE, "servers are on this host: loopback carries what they send each other, too"
        )
    elif not names or any(name not in found for name in names):
        totals = missing(INTERFACE, "the network interface towards the servers is not known")
    else:
        values = {
            INTERFACE[0]: sum(found[name].sent_bytes for name in names),
            INTERFACE[1]: sum(found[name].received_bytes for name in names),
        }
        totals = Counters(values, dict.fromkeys(INTERFACE, f"network interface {' and '.join(names)}"))
    return joined(totals, limit)


def interface_counters(names: Sequence[str], why: str, proc: Path = Path("/proc")) -> Counters:
    """Bytes of whole interfaces, everybody's traffic."""
    found = parse_net_dev((proc / "net" / "dev").read_text())
    absent = [name for name in names if name not in found]
    if not names or absent:
        return missing(WIRE, f"{why}; the network interface towards the servers is not known")
    # A packet on loopback is counted as sent and as received: either figure is the sum of both directions.
    loopback = ", servers on this host, both directions in each figure" if "lo" in names else ""
    source = f"network interface {' and '.join(names)}, everybody's traffic{loopback} ({why})"
    values = {
        WIRE[0]: sum(found[name].sent_bytes for name in names),
        WIRE[1]: sum(found[name].received_bytes for name in names),
    }
    return Counters(values, dict.fromkeys(WIRE, source))
