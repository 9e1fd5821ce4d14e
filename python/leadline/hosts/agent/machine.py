"""The host of an agent, as the rest of the package asks for it (`observe.machine.OtherMachine`).

Facts are read from copies of its files below a directory here, by the very functions that read this host's.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from leadline.errors import TargetError
from leadline.hosts.agent.children import AgentForks, AgentObserver
from leadline.hosts.agent.connection import AgentConnection, AgentError
from leadline.observe.host.host import HostKernel, facts_below, parse_cgroup
from leadline.observe.mounts.mountinfo import Mount, parse_mountinfo
from leadline.observe.reading import closest
from leadline.units import printable

_TEXT_BYTES_MAX = 1 << 20
_ANSWER_S = 5.0
_LATE_S = 10.0
_ROUNDS = 5
_DRIFT = 1e-4  # of two clocks: what a round of before may be off by more, each second
_MOUNTS = "/proc/self/mountinfo"
_CLOCKS = "/sys/devices/system/clocksource/clocksource0"
_CPU0 = "/sys/devices/system/cpu/cpu0"
_FILES = (
    *("/proc/meminfo", "/proc/cpuinfo", "/proc/self/cgroup", _MOUNTS, "/proc/self/status"),
    *("/proc/pressure/io", "/proc/sys/kernel/hostname", "/proc/sys/kernel/osrelease"),
    *("/proc/sys/kernel/random/boot_id", "/etc/os-release", "/etc/machine-id"),
    *("/sys/class/dmi/id/sys_vendor", "/sys/class/dmi/id/product_name", "/sys/hypervisor/type"),
    *(f"{_CLOCKS}/available_clocksource", f"{_CLOCKS}/current_clocksource"),
    f"{_CPU0}/cpufreq/scaling_governor",
)
_MARKS = ("/.dockerenv", "/run/.containerenv")
# Directories: the files that are of interest in each entry.
_LISTS: Mapping[str, tuple[str, ...]] = {
    "/sys/class/net": ("speed", "duplex", "operstate"),
    f"{_CPU0}/cpuidle": ("disable", "latency"),
    "/sys/devices/system/node": (),
    "/sys/class/iommu": (),
    "/sys/kernel/iommu_groups": ("type",),
}
_ENTRIES_MAX = 1024
_GROUP_FILES = (
    *("memory.max", "memory.current", "memory.stat", "memory.limit_in_bytes", "memory.usage_in_bytes"),
    *("cpu.max", "cpu.stat", "cpu.cfs_quota_us", "cpu.cfs_period_us"),
)


class AgentMachine:
    """See `observe.machine.OtherMachine`. `files` is a directory here, for this process alone."""

    def __init__(self, connection: AgentConnection, name: str, files: Path) -> None:
        self._connection, self.name, self.files = connection, name, files
        self._lock = threading.Lock()
        self._ahead_ns = self._error_ns = self._measured_ns = 0
        self._unix_ns = 0  # its time of day minus its CLOCK_MONOTONIC
        self.workers = AgentForks(connection, str(connection.greeting["directory"]), self._start_there)
        for _ in range(_ROUNDS):
            self.clock()

    # -- clocks ---------------------------------------------------------------------------------------

    def clock(self) -> int:
        """Its time of day now, unix ns."""
        before_ns = time.monotonic_ns()
        found = self._connection.call("clock")
        after_ns = time.monotonic_ns()
        ahead_ns, error_ns, _ = closest([(before_ns, int(found["monotonic_ns"]), after_ns)])
        with self._lock:
            grown_ns = self._error_ns + int((after_ns - self._measured_ns) * _DRIFT)
            if not self._measured_ns or error_ns <= grown_ns:
                self._ahead_ns, self._error_ns, self._measured_ns = ahead_ns, error_ns, after_ns
            self._unix_ns = int(found["unix_ns"]) - int(found["monotonic_ns"])
        return int(found["unix_ns"])

    def offset_ns(self) -> int:
        """See `OtherMachine`."""
        with suppress(TargetError):
            self.clock()
        return self._unix_ns + self._ahead_ns

    def _start_there(self, start_ns: int) -> int:
        """An instant of this host's CLOCK_MONOTONIC, on that host's."""
        return start_ns + self._ahead_ns

    # -- files ----------------------------------------------------------------------------------------

    def refresh(self) -> None:
        """See `OtherMachine`."""
        self._copy(_FILES)
        with suppress(AgentError):  # an agent may look at /proc, /sys and /etc alone
            self._copy(_MARKS)
        wanted = []
        for directory, files in _LISTS.items():
            for name in self._names(directory)[:_ENTRIES_MAX]:
                with suppress(OSError):
                    self._here(f"{directory}/{name}").mkdir(parents=True, exist_ok=True)
                wanted += [f"{directory}/{name}/{file}" for file in files]
        mounts = parse_mountinfo(self._text(_MOUNTS))
        self._copy([*wanted, *_group_files(mounts, self._text("/proc/self/cgroup"))])
        self._link_devices(mounts)

    def _link_devices(self, mounts: Iterable[Mount]) -> None:
        """Each block device that is mounted, by its number, as /sys/dev/block has it."""
        links = sorted({f"/sys/dev/block/{one.major}:{one.minor}" for one in mounts if one.major})
        found = self._connection.call("read_links", links)
        for link in links:
            target = _link(found.get(link))
            if target:
                own = self._here(link)
                own.parent.mkdir(parents=True, exist_ok=True)
                place = self._here(f"/sys/dev/block/{target}" if not target.startswith("/") else target)
                place.mkdir(parents=True, exist_ok=True)
                if not own.is_symlink():
                    own.symlink_to(place)
                self._copy([f"/sys/class/block/{place.name}/loop/backing_file"])
        for one in {mount.file_system for mount in mounts} & {"btrfs"}:
            for pool in self._names(f"/sys/fs/{one}")[:_ENTRIES_MAX]:
                for device in self._names(f"/sys/fs/{one}/{pool}/devices"):
                    self._here(f"/sys/fs/{one}/{pool}/devices/{device}").mkdir(parents=True, exist_ok=True)

    def _here(self, path: str) -> Path:
        """The copy of a path, which never lies elsewhere."""
        return self.files / _plain(path.split("/"))

    def _names(self, directory: str) -> list[str]:
        with suppress(AgentError):
            found = self._connection.call("list_names", directory)
            names = found if isinstance(found, list) else []
            return sorted(name for name in names if isinstance(name, str) and "/" not in name)
        return []

    def _copy(self, paths: Iterable[str]) -> None:
        asked = list(paths)
        found = self._connection.call("read_texts", asked, _TEXT_BYTES_MAX) if asked else {}
        for path in asked:
            own, data = self._here(path), found.get(path)
            own.unlink(missing_ok=True)
            if isinstance(data, bytes | str):
                own.parent.mkdir(parents=True, exist_ok=True)
                own.write_bytes(data if isinstance(data, bytes) else data.encode("utf-8", "surrogateescape"))

    def _text(self, path: str) -> str:
        with suppress(OSError):
            return self._here(path).read_text(errors="surrogateescape")
        return ""

    # -- what it is -----------------------------------------------------------------------------------

    def facts(self) -> dict[str, str]:
        """See `OtherMachine`."""
        status = dict(line.partition(":\t")[::2] for line in self._text("/proc/self/status").splitlines())
        cpus = sum(line.startswith("processor") for line in self._text("/proc/cpuinfo").splitlines())
        usable = tuple(_numbers(status.get("Cpus_allowed_list", "")))
        kernel = HostKernel(
            self._text("/proc/sys/kernel/hostname").strip(),
            self._text("/proc/sys/kernel/osrelease").strip(),
            str(self._connection.greeting.get("machine")),
            cpus or len(usable),
            usable,
        )
        return {**facts_below(self.files, kernel, {}), "agent": "yes"}

    def identity(self) -> dict[str, Any]:
        """What tells it apart from other hosts, and which libraries it has: for `procedures.probe`."""
        links = self._connection.call("read_links", ["/proc/self/ns/net"])
        network = _link(links.get("/proc/self/ns/net")).partition("[")[2].rstrip("]")
        found = self.facts()
        return {
            "hostname": found["host"],
            "machine_id": self._text("/etc/machine-id").strip(),
            "boot_id": self._text("/proc/sys/kernel/random/boot_id").strip(),
            "network": int(network) if network.isdigit() else 0,
            "cpus": len(found["cpus_usable"].split(",")),
            "engines": self._engines(),
        }

    def _engines(self) -> dict[str, str | None]:
        with suppress(AgentError):
            return {
                str(one["name"]): None if one["available"] else str(one["reason"])
                for one in self._connection.call("engines")
            }
        return {}

    def mounts(self) -> tuple[Mount, ...]:
        """See `OtherMachine`."""
        found = self._connection.call("read_texts", [_MOUNTS], _TEXT_BYTES_MAX).get(_MOUNTS)
        text = found.decode("utf-8", "surrogateescape") if isinstance(found, bytes) else str(found or "")
        return parse_mountinfo(text)

    def ask(self, place: str, deadline_s: float) -> list[dict[str, Any]]:
        """See `OtherMachine`."""
        found = self._connection.call("probe", place, deadline_s, True, within_s=deadline_s + _LATE_S)
        lines = [line for line in found.get("lines", ()) if isinstance(line, dict)]
        if found.get("code") is None or not lines or "begin" in lines[-1]:
            doing = next((f" while {line['begin']}" for line in reversed(lines) if "begin" in line), "")
            raise TargetError(
                f"{printable(place)}: no answer within {deadline_s:g} s{doing}",
                "See whether its server or cluster is up.",
            )
        return lines

    def check_answers(self, path: str) -> None:
        """See `OtherMachine`."""
        try:
            self._connection.call("statfs", path, within_s=_ANSWER_S)
        except AgentError:  # an answer too: whoever opens it says what is wrong
            return
        except TargetError:
            raise TargetError(
                f"{printable(path)}: no answer within {_ANSWER_S:g} s",
                "See whether its server or cluster is up.",
            ) from None

    def observer(self) -> AgentObserver:
        """See `OtherMachine`."""
        return AgentObserver(self._connection)


def _link(found: object) -> str:
    """Where a link leads; "" where it could not be read."""
    return found.decode("utf-8", "surrogateescape") if isinstance(found, bytes) else ""


def _group_files(mounts: Iterable[Mount], groups: str) -> Iterable[str]:
    """The files of every control group of the agent, from its own upwards, in each hierarchy."""
    paths = parse_cgroup(groups)
    for mount in mounts:
        names = mount.super_options if mount.file_system == "cgroup" else ("",)
        group = next((paths[name] for name in names if name in paths), None)
        if group is None or mount.file_system not in ("cgroup", "cgroup2"):
            continue
        inside = group.removeprefix(mount.root if mount.root != "/" else "").strip("/")
        parts = [part for part in inside.split("/") if part]
        if ".." in parts:
            parts = []
        for count in range(len(parts), -1, -1):
            here = "/".join((mount.mount_point, *parts[:count]))
            yield from (f"{here}/{file}" for file in _GROUP_FILES)


def _plain(parts: Iterable[str]) -> Path:
    """A path without `..`, as a link of /sys names its place; never above its top."""
    found: list[str] = []
    for part in parts:
        if part == "..":
            found = found[:-1]
        elif part not in ("", "."):
            found.append(part)
    return Path(*found)


def _numbers(text: str) -> Iterable[int]:
    """Of `0-3,8`."""
    for part in text.strip().split(","):
        first, _, last = part.partition("-")
        if first.isdigit():
            yield from range(int(first), int(last or first) + 1)
