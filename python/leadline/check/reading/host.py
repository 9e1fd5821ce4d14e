"""This host: processor, memory, kernel, clock, limits and the settings of its network stack."""

from __future__ import annotations

import ctypes
import platform
import resource
from pathlib import Path

from leadline.check.facts import Fact, told
from leadline.check.reading.memory import memory_facts
from leadline.check.reading.texts import number_in, text_of
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
