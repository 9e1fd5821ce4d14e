"""What of a host makes single requests slower while nothing is full: sleep, clock, memory nodes, IOMMU."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

_SYS = Path("/sys")
_UNSEEN = "not observable"


def power_facts(sys: Path = _SYS) -> dict[str, str]:
    """For a manifest; every value is text, "not observable" where the kernel does not show it."""
    return {
        "cpu_governor": _text(sys / "devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "cpu_wake_us": _deepest_sleep_us(sys / "devices/system/cpu/cpu0/cpuidle"),
        "numa_nodes": _nodes(sys / "devices/system/node"),
        "iommu": _iommu(sys),
    }


def _text(path: Path) -> str:
    try:
        return path.read_text().strip() or _UNSEEN
    except (OSError, ValueError):
        return _UNSEEN


def _deepest_sleep_us(place: Path) -> str:
    """The longest that an idle processor may take to wake, of the states that are not disabled."""
    latencies = []
    for state in place.glob("state*"):
        with suppress(OSError, ValueError):
            if (state / "disable").read_text().strip() == "0":
                latencies.append(int((state / "latency").read_text()))
    return str(max(latencies)) if latencies else _UNSEEN


def _nodes(place: Path) -> str:
    return str(sum(1 for _ in place.glob("node[0-9]*"))) if place.is_dir() else _UNSEEN


def _iommu(sys: Path) -> str:
    """`translated` where a device's addresses are, `passed through` or `none`."""
    try:
        if not any((sys / "class/iommu").iterdir()):
            return "none"
    except OSError:
        return "none"
    kinds = {_text(group / "type") for group in (sys / "kernel/iommu_groups").glob("*")}
    if not kinds or kinds == {_UNSEEN}:
        return _UNSEEN
    return "passed through" if kinds <= {"identity"} else "translated"
