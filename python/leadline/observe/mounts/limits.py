"""What a link, a device or a control group can carry at most, where the kernel's figures bind.

Only limits that nothing passes: a virtual interface names a speed that binds nothing, and so does the
emulated hardware of a virtual machine. What is not sure is not observable.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from leadline.observe.host.host import group_path, is_virtual
from leadline.observe.reading import Counters, missing

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
