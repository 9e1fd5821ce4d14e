"""This host: processor, memory and its modules, kernel, clock, limits and settings of its network stack."""

from __future__ import annotations

import ctypes
import platform
import re
import resource
import struct
from dataclasses import dataclass
from pathlib import Path

from leadline.check.rows import Fact, told
from leadline.knowledge.tables import Value
from leadline.observe.host.host import (
    cpu_list,
    cpu_model,
    facts,
    is_virtual,
    meminfo,
    power_facts,
    virtualisation,
)


def text_of(path: Path) -> str | None:
    """The text without white space around it."""
    try:
        return path.read_text().strip()
    except (OSError, ValueError):
        return None


def number_in(text: str | None) -> int | None:
    """A whole number from 0 on."""
    return int(text) if text is not None and text.isdigit() else None


_MIB = 1 << 20
_UNKNOWN_WORD, _EXTENDED = 0xFFFF, 0x7FFF
_CHANNEL = re.compile(r"channel (\d+)")
NAMES = ("memory_modules", "memory_slots", "memory_modules_alike", "memory_speed_share", "memory_channels")


@dataclass(frozen=True)
class MemoryModule:
    """A slot: bytes in it (0: empty), MT/s that it could do and does; 0 where the firmware does not say."""

    size_bytes: int
    rated: int
    configured: int


def memory_facts(sys: Path = Path("/sys")) -> tuple[dict[str, Value], dict[str, str]]:
    """Facts, and reasons of those without a value."""
    values: dict[str, Value] = dict.fromkeys(NAMES)
    slots, why = _slots(sys / "firmware/dmi/entries")
    reasons = dict.fromkeys(NAMES, why)
    modules = [one for one in slots if one.size_bytes]
    if modules:
        values["memory_modules"], values["memory_slots"] = len(modules), len(slots)
        values["memory_modules_alike"] = len({(one.size_bytes, one.rated) for one in modules}) == 1
        shares = [one.configured / one.rated for one in modules if one.configured and one.rated]
        values["memory_speed_share"] = min(shares) if shares else None
        reasons["memory_speed_share"] = "the firmware does not say at which speed it runs its memory"
    values["memory_channels"] = _channels(sys / "devices/system/edac/mc")
    reasons["memory_channels"] = "the kernel has no EDAC driver for this memory controller"
    return values, reasons


def _slots(entries: Path) -> tuple[list[MemoryModule], str]:
    if not entries.is_dir():
        return [], "the firmware has no SMBIOS table here"
    found = []
    for place in sorted(entries.glob("17-*")):
        try:
            module = module_in((place / "raw").read_bytes())
        except PermissionError:
            return [], "only root may read the SMBIOS table"
        except OSError as error:
            return [], f"the SMBIOS table cannot be read: {error.strerror}"
        if module is not None:
            found.append(module)
    return found, "" if any(one.size_bytes for one in found) else "the SMBIOS table lists no memory module"


def module_in(raw: bytes) -> MemoryModule | None:
    """A structure of type 17 (System Management BIOS, 7.18); None where it is too short to be one."""
    if len(raw) < 0x17 or raw[0] != 17:
        return None
    length = raw[1]
    (size,) = struct.unpack_from("<H", raw, 0x0C)
    if size == _UNKNOWN_WORD:
        size_bytes = 0
    elif size == _EXTENDED and length >= 0x20:
        size_bytes = (struct.unpack_from("<I", raw, 0x1C)[0] & 0x7FFFFFFF) * _MIB
    else:
        size_bytes = (size & 0x7FFF) * (1024 if size & 0x8000 else _MIB)
    speeds = [_word(raw, place) if length >= place + 2 else 0 for place in (0x15, 0x20)]
    return MemoryModule(size_bytes, *speeds)


def _word(raw: bytes, place: int) -> int:
    value: int = struct.unpack_from("<H", raw, place)[0]
    return 0 if value == _UNKNOWN_WORD else value


def _channels(controllers: Path) -> int | None:
    """Of all controllers together, those with a module; None where the kernel counts none."""
    found = set()
    for place in controllers.glob("mc*/*/dimm_location"):
        channel = _CHANNEL.search(text_of(place) or "")
        if channel:
            found.add((place.parent.parent.name, channel[1]))
    return len(found) or None


_UNSYNCHRONISED = 5  # TIME_ERROR, what adjtimex(2) returns
_LEAST_SEGMENTS = 100_000  # fewer say nothing of a share
_TIMEX_BYTES = 512  # more than struct timex has on any machine
_BALLOON_REPORTING = 5  # VIRTIO_BALLOON_F_REPORTING, the number of its bit (virtio 1.2, 5.5.3)
_SYSCTLS = {
    "rmem_max": "net/core/rmem_max",
    "wmem_max": "net/core/wmem_max",
    "netdev_max_backlog": "net/core/netdev_max_backlog",
    "somaxconn": "net/core/somaxconn",
    "tcp_sack": "net/ipv4/tcp_sack",
    "tcp_timestamps": "net/ipv4/tcp_timestamps",
    "pid_max": "kernel/pid_max",
    "swappiness": "vm/swappiness",
}


def host_facts(name: str, proc: Path = Path("/proc"), sys: Path = Path("/sys")) -> list[Fact]:
    """Every fact of the host that this process runs on."""
    power = {key: None if value == "not observable" else value for key, value in power_facts(sys).items()}
    memory = meminfo(proc)
    swapped = memory.get("SwapTotal", 0) - memory.get("SwapFree", 0)
    synchronized, why = _clock()
    values: dict[str, Value] = {
        "cpu_model": cpu_model(text_of(proc / "cpuinfo") or "") or None,
        "processors": len(cpu_list()),
        "threads_per_core": _threads_per_core(sys),
        "virtual": is_virtual(proc, sys),
        "virtualisation": virtualisation(proc, sys),
        "kernel": platform.release(),
        "system": facts().get("os") or None,
        "cpu_governor": power["cpu_governor"],
        "cpu_wake_us": number_in(power["cpu_wake_us"]),
        "numa_nodes": number_in(power["numa_nodes"]),
        "iommu": power["iommu"],
        "mitigations": _mitigations(sys),
        "memory_bytes": memory.get("MemTotal"),
        "free_memory_returned": _free_memory_returned(sys),
        "swap_used_bytes": swapped if memory else None,
        "open_files_max": _finite(resource.getrlimit(resource.RLIMIT_NOFILE)[1]),
        "clock_synchronized": synchronized,
        "tcp_sent_again_share": _sent_again(proc),
        **{key: number_in(text_of(proc / "sys" / place)) for key, place in _SYSCTLS.items()},
    }
    reasons = {
        "clock_synchronized": why,
        "tcp_sent_again_share": f"it has sent fewer than {_LEAST_SEGMENTS:,} segments since it started",
        "cpu_governor": "no cpufreq here: the firmware or a hypervisor decides",
        "cpu_wake_us": "no cpuidle here: the firmware or a hypervisor decides",
    }
    modules, gaps = memory_facts(sys)
    return told("host", name, values | modules, reasons | gaps)


def _finite(limit: int) -> int:
    """A limit of none as a number that is above every expectation."""
    return 2**63 - 1 if limit == resource.RLIM_INFINITY else limit


def _threads_per_core(sys: Path) -> int | None:
    siblings = text_of(sys / "devices/system/cpu/cpu0/topology/thread_siblings_list")
    if siblings is None:
        return None
    first, dash, last = siblings.partition("-")
    return (
        int(last) - int(first) + 1 if dash and first.isdigit() and last.isdigit() else siblings.count(",") + 1
    )


def _mitigations(sys: Path) -> str | None:
    """Names of the processor's flaws that the kernel works around, which costs system calls."""
    folder = sys / "devices/system/cpu/vulnerabilities"
    found = [
        place.name for place in sorted(folder.glob("*")) if (text_of(place) or "").startswith("Mitigation")
    ]
    return ", ".join(found) if folder.is_dir() else None


def _free_memory_returned(sys: Path) -> bool:
    """Whether free memory goes back to the hypervisor by itself: free page reporting of virtio's balloon."""
    bits = [text_of(place) or "" for place in (sys / "bus/virtio/drivers/virtio_balloon").glob("*/features")]
    return any(one[_BALLOON_REPORTING : _BALLOON_REPORTING + 1] == "1" for one in bits)


def _sent_again(proc: Path) -> float | None:
    """TCP segments that this host has sent again since it started, of all that it has sent."""
    lines = [line.split() for line in (text_of(proc / "net/snmp") or "").splitlines()]
    names, counts = [line[1:] for line in lines if line[:1] == ["Tcp:"]][:2] or ([], [])
    found = {name: int(count) for name, count in zip(names, counts, strict=False)}
    sent = found.get("OutSegs", 0)
    return found["RetransSegs"] / sent if sent >= _LEAST_SEGMENTS and "RetransSegs" in found else None


def _clock() -> tuple[bool | None, str]:
    """Whether somebody disciplines the kernel's clock, as adjtimex(2) says; asks nothing of a daemon."""
    buffer = ctypes.create_string_buffer(_TIMEX_BYTES)  # modes = 0: only reads
    state = ctypes.CDLL(None, use_errno=True).adjtimex(buffer)
    if state < 0:
        return None, "adjtimex is not allowed here"
    return state != _UNSYNCHRONISED, ""
