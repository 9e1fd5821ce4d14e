"""Network interfaces of this host, and ports of labs: addresses, bytes, and what links and devices carry."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from leadline.errors import ResultError
from leadline.observe.host.host import group_path, is_virtual
from leadline.observe.host.proc_parse import Interface, parse_net_dev
from leadline.observe.network.sockets import entered, parse_messages
from leadline.observe.reading import Counters, Request, Row, joined, missing
from leadline.trusted import why_not_file
from leadline.wires import CLIENT, FILE, UPLINK, Wire, read_wires

if TYPE_CHECKING:
    from leadline.study.target import TargetFacts


_NETLINK_ROUTE = 0
_GET_ADDRESS, _NEW_ADDRESS = 22, 20
_REQUEST_DUMP = 0x301
_MESSAGE_ERROR, _MESSAGE_DONE = 2, 3
_BODY_BYTES = 8  # struct ifaddrmsg (linux/if_addr.h)
_ADDRESS_HEAD, _LOCAL = 1, 2  # of a point-to-point link `address` is the other end
_DEADLINE_S = 1.0


def host_interfaces() -> dict[str, list[str]]:
    """Addresses by interface. Raises OSError where the kernel does not say."""
    found: dict[str, list[str]] = {}
    head = struct.pack("=IHHII", 17, _GET_ADDRESS, _REQUEST_DUMP, 1, 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_ROUTE) as kernel:
        kernel.settimeout(_DEADLINE_S)
        kernel.send(head + struct.pack("=B", socket.AF_UNSPEC))
        for kind, payload in _answer(kernel):
            entry = parse_address(payload) if kind == _NEW_ADDRESS else None
            if entry is not None:
                with contextlib.suppress(OSError):  # an interface that is gone by now
                    found.setdefault(socket.if_indextoname(entry[0]), []).append(entry[1])
    return found


def _answer(kernel: socket.socket) -> Iterator[tuple[int, bytes]]:
    while True:
        for kind, payload in parse_messages(kernel.recv(1 << 16)):
            if kind == _MESSAGE_DONE:
                return
            if kind == _MESSAGE_ERROR:
                (code,) = struct.unpack_from("=i", payload)
                raise OSError(-code, os.strerror(-code))
            yield kind, payload


def parse_address(payload: bytes) -> tuple[int, str] | None:
    """The number of an interface and one address of its own; None for what is no IP address."""
    if len(payload) < _BODY_BYTES:
        return None
    family, index = struct.unpack_from("=BxxxI", payload)
    if family not in (socket.AF_INET, socket.AF_INET6):
        return None
    length_of = 4 if family == socket.AF_INET else 16
    found: dict[int, str] = {}
    place = _BODY_BYTES
    while place + 4 <= len(payload):
        length, kind = struct.unpack_from("=HH", payload, place)
        value = payload[place + 4 : place + length]
        if kind in (_ADDRESS_HEAD, _LOCAL) and len(value) == length_of:
            found[kind] = socket.inet_ntop(family, value)
        place += max((length + 3) & ~3, 4)
    address = found.get(_LOCAL, found.get(_ADDRESS_HEAD))
    return None if address is None else (index, address)


WIRE_LIMIT = "wire_limit_bytes_per_s"
DEVICE_LIMITS = ("device_read_limit_bytes_per_s", "device_write_limit_bytes_per_s")
_MBIT_BYTES_PER_S = 1_000_000 // 8
_STACK_DEPTH_MAX = 4  # VLAN on bond on bridge
# Payload of what a lane transfers: 8b/10b up to 5 GT/s, 128b/130b above (PCI Express Base Specification).
_PCIE_SLOW_GT = 5.0
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?")


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return ""


def wire_limit(interfaces: Sequence[str], proc: Path = Path("/proc"), sys: Path = Path("/sys")) -> Counters:
    """What the interfaces towards a target's servers carry in one direction, together."""
    if not interfaces:
        return missing((WIRE_LIMIT,), "the network interface towards the servers is not known")
    if is_virtual(proc, sys):
        return missing((WIRE_LIMIT,), "a virtual machine's network interface does not bind to a speed")
    speeds = [interface_speed(name, sys) for name in interfaces]
    unknown = [name for name, speed in zip(interfaces, speeds, strict=True) if speed is None]
    if unknown:
        return missing((WIRE_LIMIT,), f"network interface {unknown[0]} has no speed of a physical link")
    total = sum(speed for speed in speeds if speed is not None)
    words = f"the link of {' and '.join(interfaces)} ({total / 125e6:g} Gbit/s)"
    return Counters({WIRE_LIMIT: total}, {WIRE_LIMIT: words})


def interface_speed(name: str, sys: Path = Path("/sys"), depth: int = 0) -> int | None:
    """Bytes per second of a physical link, or of all links below a bond, VLAN or bridge; None: not known."""
    base = sys / "class" / "net" / name
    below = sorted(link.name.removeprefix("lower_") for link in base.glob("lower_*"))
    if below and depth < _STACK_DEPTH_MAX:
        speeds = [interface_speed(one, sys, depth + 1) for one in below]
        return None if None in speeds else sum(speed for speed in speeds if speed is not None)
    mbit = _text(base / "speed")
    if not (base / "device").exists() or not mbit.isdigit() or int(mbit) == 0:
        return None
    return int(mbit) * _MBIT_BYTES_PER_S


def device_limits(device: str | None, proc: Path = Path("/proc"), sys: Path = Path("/sys")) -> Counters:
    """What the target's device, or the control group's limit on it, lets through in each direction."""
    whole = _whole_device(device, sys) if device else None
    if whole is None:
        return missing(DEVICE_LIMITS, "the target has no single block device on this host")
    link = None if is_virtual(proc, sys) else link_speed(whole, sys)
    values: dict[str, int | None] = {}
    sources: dict[str, str] = {}
    for name, of_group in zip(DEVICE_LIMITS, _group_limits(whole, proc, sys), strict=True):
        found = [
            (limit, words)
            for limit, words in (
                (of_group, f"the control group's limit on {whole}"),
                (link, f"the link of {whole}"),
            )
            if limit is not None
        ]
        values[name], words = min(found, default=(None, ""))
        if found:
            sources[name] = words
    why = f"neither a control group nor a link that is known bounds {whole}"
    return Counters(values, sources, {name: why for name, value in values.items() if value is None})


def _whole_device(device: str, sys: Path) -> str | None:
    """The device itself, or the one that a partition belongs to."""
    here = (sys / "class" / "block" / device).resolve()
    if not here.exists():
        return None
    return here.parent.name if (here / "partition").exists() else here.name


def link_speed(device: str, sys: Path = Path("/sys")) -> int | None:
    """Bytes per second of the PCI Express link of an NVMe device, in one direction; None: not known."""
    controller = sys / "class" / "block" / device / "device"
    transfers = _NUMBER.match(_text(controller / "device" / "current_link_speed"))
    width = _text(controller / "device" / "current_link_width")
    if transfers is None or not width.isdigit() or int(width) == 0:
        return None
    giga = float(transfers.group())
    payload = 8 / 10 if giga <= _PCIE_SLOW_GT else 128 / 130
    return int(giga * 1e9 * payload / 8 * int(width))


def _group_limits(device: str, proc: Path, sys: Path) -> tuple[int | None, int | None]:
    """The tightest limits (read, write) of this process's control groups on a device."""
    number = _text(sys / "class" / "block" / device / "dev")
    group = group_path("blkio", proc, sys)
    if not number or group is None:
        return None, None
    if group.version == 1:  # a group there is bound by its own limit alone
        files = ("blkio.throttle.read_bps_device", "blkio.throttle.write_bps_device")
        read, write = (_of_device(_text(group.directories[0] / name), number) for name in files)
        return _figure(read), _figure(write)
    lines = [_of_device(_text(directory / "io.max"), number) for directory in group.directories]
    pairs = [dict(word.partition("=")[::2] for word in line.split()) for line in lines]
    found = [
        [limit for pair in pairs if (limit := _figure(pair.get(key, ""))) is not None]
        for key in ("rbps", "wbps")
    ]
    return min(found[0], default=None), min(found[1], default=None)


def _of_device(text: str, number: str) -> str:
    for line in text.splitlines():
        name, _, rest = line.partition(" ")
        if name == number:
            return rest
    return ""


def _figure(text: str) -> int | None:
    return int(text) if text.strip().isdigit() else None


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
    loopback = ", servers on this host, both directions in each value" if "lo" in names else ""
    source = f"network interface {' and '.join(names)}, everybody's traffic{loopback} ({why})"
    values = {
        WIRE[0]: sum(found[name].sent_bytes for name in names),
        WIRE[1]: sum(found[name].received_bytes for name in names),
    }
    return Counters(values, dict.fromkeys(WIRE, source))


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
