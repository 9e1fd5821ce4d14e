"""Facts about this host that a manifest needs, limits that its control groups set, and how patient to be."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from leadline.observe import machine

_PROC = Path("/proc")
_SYS = Path("/sys")
_NO_LIMIT_BYTES = 1 << 60  # cgroup v1 says "none" as the largest page-aligned number


def _read(path: Path) -> str | None:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return None


@dataclass(frozen=True)
class GroupLimits:
    """What the control groups of this process allow: CPUs (a fraction counts), bytes; None is no limit.

    `throttled` counts the periods in which the group was stopped, `throttled_ns` for how long;
    None: not observable.
    """

    cpus: float | None
    memory_bytes: int | None
    throttled: int | None
    throttled_ns: int | None
    version: str


def memory_bytes(proc: Path = _PROC, sys: Path = _SYS) -> int:
    """Memory that this process may fill: the host's, or its control group's limit where that is less."""
    total = meminfo(proc)["MemTotal"]
    limit = group_limits(proc, sys).memory_bytes
    return total if limit is None else min(total, limit)


def memory_room(proc: Path = _PROC, sys: Path = _SYS) -> tuple[int, str]:
    """Bytes that a process can still take without swapping, and what bounds them.

    The least of what the kernel calls available and of what each control group leaves; pages of files, which
    a group gives back, count as free.
    """
    room, words = meminfo(proc)["MemAvailable"], "memory that is available"
    group = group_path("memory", proc, sys)
    for here in group.directories if group else ():
        limit = _memory_limit(here, group.version if group else 2)
        if limit is None:
            continue
        usage, files = _memory_used(here)
        left = max(0, limit - max(0, usage - files))
        if left < room:
            room, words = left, f"memory that the control group {here.name} leaves"
    return room, words


def _memory_used(directory: Path) -> tuple[int, int]:
    """Bytes that a group has, and those of them that are pages of files, of either version."""
    text = _read(directory / "memory.current") or _read(directory / "memory.usage_in_bytes") or "0"
    stat = dict(
        line.split(maxsplit=1)
        for line in (_read(directory / "memory.stat") or "").splitlines()
        if " " in line
    )
    files = stat.get("file") or stat.get("total_cache") or "0"
    return (int(text) if text.strip().isdigit() else 0), (int(files) if files.isdigit() else 0)


def meminfo(proc: Path = _PROC) -> dict[str, int]:
    """/proc/meminfo in bytes."""
    return parse_meminfo((proc / "meminfo").read_text())


def parse_meminfo(text: str) -> dict[str, int]:
    """Every line with a value, kB turned into bytes; counts (HugePages) stay counts."""
    found = {}
    for line in text.splitlines():
        name, _, rest = line.partition(":")
        words = rest.split()
        if words and words[0].isdigit():
            found[name] = int(words[0]) * (1024 if words[1:] == ["kB"] else 1)
    return found


def cpu_list() -> tuple[int, ...]:
    """The CPUs that this process may run on."""
    return tuple(sorted(os.sched_getaffinity(0)))


@dataclass(frozen=True)
class GroupPath:
    """Where one hierarchy's directories of this process are, innermost first, and its version."""

    directories: tuple[Path, ...]
    version: int


def parse_cgroup(text: str) -> dict[str, str]:
    """/proc/PID/cgroup: controller -> path; the unified hierarchy (v2) is the empty name."""
    found = {}
    for line in text.splitlines():
        fields = line.split(":", 2)
        if len(fields) == 3:
            for controller in fields[1].split(","):
                found[controller] = fields[2]
    return found


def group_path(
    controller: str, proc: Path = _PROC, sys: Path = _SYS, *, of: str = "self"
) -> GroupPath | None:
    """The directories to read for a controller; v1 where the controller is mounted so, else v2.

    `of` is the process whose group it is, as this process sees the hierarchies.
    """
    from leadline.observe.mounts.mountinfo import parse_mountinfo

    groups = parse_cgroup(_read(proc / of / "cgroup") or "")
    mounts = parse_mountinfo(_read(proc / "self" / "mountinfo") or "")
    for mount in mounts:
        if mount.file_system == "cgroup" and controller in mount.super_options and controller in groups:
            return GroupPath(_upwards(mount.mount_point, mount.root, groups[controller], sys), 1)
    for mount in mounts:
        if mount.file_system == "cgroup2" and "" in groups:
            return GroupPath(_upwards(mount.mount_point, mount.root, groups[""], sys), 2)
    return None


def _upwards(mount_point: str, root: str, group: str, sys: Path) -> tuple[Path, ...]:
    """From the group's own directory up to the mount; a limit holds for all groups below it."""
    inside = group.removeprefix(root if root != "/" else "")
    top = Path(mount_point)
    if sys != _SYS:
        top = sys / (top.relative_to("/sys") if top.is_relative_to("/sys") else top.relative_to("/"))
    here = top / inside.lstrip("/")
    if ".." in Path(inside).parts or not here.is_dir():  # the group lies outside this container's view
        return (top,)
    return (here, *[parent for parent in here.parents if parent == top or top in parent.parents])


def group_limits(proc: Path = _PROC, sys: Path = _SYS) -> GroupLimits:
    """The tightest limits on the way up, and the innermost group's throttling."""
    memory, cpu = group_path("memory", proc, sys), group_path("cpu", proc, sys)
    limits = [_memory_limit(here, memory.version) for here in memory.directories] if memory else []
    shares = [_cpu_limit(here, cpu.version) for here in cpu.directories] if cpu else []
    stat = _first_stat(cpu)
    nanoseconds = stat.get("throttled_time")
    if nanoseconds is None and "throttled_usec" in stat:
        nanoseconds = stat["throttled_usec"] * 1000
    versions = sorted({f"v{found.version}" for found in (memory, cpu) if found is not None})
    return GroupLimits(
        cpus=min((share for share in shares if share is not None), default=None),
        memory_bytes=min((limit for limit in limits if limit is not None), default=None),
        throttled=stat.get("nr_throttled"),
        throttled_ns=nanoseconds,
        version=" and ".join(versions) or "none",
    )


def _memory_limit(directory: Path, version: int) -> int | None:
    text = _read(directory / ("memory.limit_in_bytes" if version == 1 else "memory.max"))
    if text is None or not text.strip().isdigit():
        return None
    limit = int(text)
    return limit if 0 < limit < _NO_LIMIT_BYTES else None


def _cpu_limit(directory: Path, version: int) -> float | None:
    if version == 1:
        quota, period = _read(directory / "cpu.cfs_quota_us"), _read(directory / "cpu.cfs_period_us")
        words = [(quota or "").strip(), (period or "").strip()]
    else:
        words = (_read(directory / "cpu.max") or "").split()
    if len(words) != 2 or not all(word.isdigit() for word in words) or int(words[1]) == 0:
        return None
    return int(words[0]) / int(words[1])


def _first_stat(group: GroupPath | None) -> dict[str, int]:
    """The first `cpu.stat` with throttling counters, from the innermost group upwards."""
    for directory in group.directories if group else ():
        stat = parse_flat(_read(directory / "cpu.stat") or "")
        if "nr_throttled" in stat:
            return stat
    return {}


def parse_flat(text: str) -> dict[str, int]:
    """`name value` lines, as in cpu.stat and vmstat."""
    pairs = (line.split() for line in text.splitlines())
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdigit()}


def virtualisation(proc: Path = _PROC, sys: Path = _SYS) -> str:
    """The hypervisor or container that is to be seen, or "none seen"."""
    found = []
    cpuinfo = _read(proc / "cpuinfo") or ""
    vendor = (_read(sys / "class/dmi/id/sys_vendor") or "").strip()
    product = (_read(sys / "class/dmi/id/product_name") or "").strip()
    if _flag(cpuinfo, "hypervisor"):
        kind = (_read(sys / "hypervisor/type") or "").strip()
        found.append(kind or " ".join(part for part in (vendor, product) if part) or "virtual machine")
    for mark, name in ((".dockerenv", "Docker"), ("run/.containerenv", "Podman")):
        if (proc.parent / mark).exists():
            found.append(name)
    return ", ".join(found) or "none seen"


# What system firmware names of machines that are not real; "Amazon EC2" is also on real ones.
_VIRTUAL_VENDORS = (
    *("QEMU", "VMware", "Microsoft", "Xen", "innotek", "Parallels", "Amazon EC2", "Google", "OpenStack"),
    *("Red Hat", "Nutanix", "Alibaba", "DigitalOcean", "Bochs", "KVM", "oVirt", "Hetzner"),
)
EMULATED_VARIABLE = "LEADLINE_EMULATED_HOST"


def is_virtual(proc: Path = _PROC, sys: Path = _SYS) -> bool:
    """True where this may be a virtual machine: its links and devices are then not what they say."""
    vendor = _read(sys / "class/dmi/id/sys_vendor") or ""
    return _flag(_read(proc / "cpuinfo") or "", "hypervisor") or any(
        one in vendor for one in _VIRTUAL_VENDORS
    )


def emulation(proc: Path = _PROC, sys: Path = _SYS, variables: Mapping[str, str] = os.environ) -> str:
    """What shows that this machine's processor is emulated, or "none seen".

    QEMU without KVM names its processor so (`TCG`), or is seen to be QEMU while the kernel found no clock
    of KVM. Who starts such a machine can say it in LEADLINE_EMULATED_HOST.
    """
    said = variables.get(EMULATED_VARIABLE, "").strip()
    if said:
        return f"{EMULATED_VARIABLE} says: {said}"
    cpuinfo = _read(proc / "cpuinfo") or ""
    model = cpu_model(cpuinfo)
    if "TCG" in model.split():
        return f"the processor is {model}"
    names = [_read(sys / f"class/dmi/id/{name}") or "" for name in ("sys_vendor", "product_name")]
    seen = next((text.strip() for text in (model, *names) if "QEMU" in text), None)
    clocks = _read(sys / "devices/system/clocksource/clocksource0/available_clocksource") or ""
    # Only x86 has a clock of KVM's own: elsewhere its absence says nothing.
    if seen and clocks and _flag(cpuinfo, "hypervisor") and "kvm-clock" not in clocks.split():
        return f"the machine is {seen}, and there is no clock of KVM"
    return "none seen"


def _flag(cpuinfo: str, name: str) -> bool:
    line = next((line for line in cpuinfo.splitlines() if line.startswith("flags")), "")
    return name in line.split()


def cpu_model(cpuinfo: str, otherwise: str = platform.machine()) -> str:
    """The processor's name in /proc/cpuinfo, as x86, POWER or others write it."""
    for field in ("model name", "cpu", "Hardware", "CPU part"):
        for line in cpuinfo.splitlines():
            name, separator, value = line.partition(":")
            if separator and name.strip() == field and value.strip():
                return value.strip()
    return otherwise


@dataclass(frozen=True)
class HostKernel:
    """What a host's kernel is called, and its processors: those that it has, and those that may be used."""

    node: str
    release: str
    machine: str
    cpus: int
    usable: tuple[int, ...]


def facts() -> dict[str, str]:
    """What a manifest records about the machine that this process works for: text for people."""
    there = machine.other()
    if there is not None:
        return there.facts()
    kernel = HostKernel(
        platform.node(), platform.release(), platform.machine(), os.cpu_count() or 0, cpu_list()
    )
    return facts_below(Path("/"), kernel)


def facts_below(root: Path, kernel: HostKernel, variables: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The same of files below `root`: a copy of another host's."""
    proc, sys = root / "proc", root / "sys"
    limits, memory = group_limits(proc, sys), meminfo(proc)
    release = parse_os_release(_read(root / "etc/os-release") or "")
    clock = _read(sys / "devices/system/clocksource/clocksource0/current_clocksource")
    return {
        "host": kernel.node,
        "kernel": kernel.release,
        "operating_system": release.get("PRETTY_NAME", "not observable"),
        "architecture": kernel.machine,
        "cpu_model": cpu_model(_read(proc / "cpuinfo") or "", kernel.machine),
        "cpus_of_host": str(kernel.cpus),
        "cpus_usable": ",".join(str(cpu) for cpu in kernel.usable),
        **power_facts(sys),
        **link_facts(sys / "class/net"),
        "memory_bytes": str(memory["MemTotal"]),
        "swap_bytes": str(memory.get("SwapTotal", 0)),
        "virtualisation": virtualisation(proc, sys),
        "emulation": emulation(proc, sys, variables),
        "clock_source": (clock or "not observable").strip(),
        "cgroup_version": limits.version,
        "cgroup_cpu_limit": "none" if limits.cpus is None else f"{limits.cpus:g}",
        "cgroup_memory_limit_bytes": "none" if limits.memory_bytes is None else str(limits.memory_bytes),
        "cgroup_throttled": "not observable" if limits.throttled is None else str(limits.throttled),
        "pressure_stall": "yes"
        if (proc / "pressure" / "io").exists()
        else "not observable: this kernel has no PSI",
    }


def parse_os_release(text: str) -> dict[str, str]:
    """`NAME="value"` lines of os-release(5)."""
    pairs = (line.partition("=") for line in text.splitlines() if "=" in line and not line.startswith("#"))
    return {name: value.strip().strip("\"'") for name, _, value in pairs}


_NETWORK = Path("/sys/class/net")


def link_facts(network: Path = _NETWORK) -> dict[str, str]:
    """`links`: name, speed (Mbit/s) and duplex of each that is up and says its speed; "none" of none."""
    found = []
    for place in sorted(network.glob("*")):
        # What is down, and what has no speed, such as a loopback, answers with an error or -1.
        with suppress(OSError, ValueError):
            speed = int((place / "speed").read_text())
            duplex = (place / "duplex").read_text().strip()
            if speed > 0 and (place / "operstate").read_text().strip() == "up":
                found.append(f"{place.name} {speed} {duplex}")
    return {"links": ", ".join(found) or "none"}


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


EMULATED_FACTOR = 10.0  # an emulated processor takes ten times as long for the same Python, or more


@cache
def _patience_factor() -> float:
    return 1.0 if emulation() == "none seen" else EMULATED_FACTOR


def patient_s(seconds: float) -> float:
    """A deadline for what should take a fraction of `seconds` on a machine that is real."""
    return seconds * _patience_factor()
