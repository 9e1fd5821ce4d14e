"""Control groups of a lab, of version 1 or 2: what a host, a client or one process may use of the machine.

Their names follow from the lab's identity, `leadline-<8 digits of the fsid>/NAME`, so that whoever takes the
lab down finds them all without a list. What is taken out of one goes back to where it was.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from leadline.errors import LabError
from leadline.lab.cluster.process import poll
from leadline.lab.mounts import parse_mountinfo
from leadline.lab.network.topology import MachineLimits

Controller = Literal["cpu", "memory", "disk"]
CONTROLLERS: tuple[Controller, ...] = ("cpu", "memory", "disk")
PREFIX = "leadline-"
_PERIOD_US = 100_000  # the kernel's default for CPU bandwidth (Documentation/scheduler/sched-bwc.rst)
_QUOTA_US_MIN = 1_000
_KERNEL_NAMES: dict[Controller, tuple[str, str]] = {
    "cpu": ("cpu", "cpu"), "memory": ("memory", "memory"), "disk": ("blkio", "io"),
}  # fmt: skip
_OPTIONS: dict[Controller, str] = {
    "cpu": "CONFIG_CFS_BANDWIDTH", "memory": "CONFIG_MEMCG", "disk": "CONFIG_BLK_DEV_THROTTLING",
}  # fmt: skip
# A file that is there where the controller can limit: the first of version 1, the second of version 2.
_LIMIT_FILES: dict[Controller, tuple[str, str]] = {
    "cpu": ("cpu.cfs_quota_us", "cpu.max"),
    "memory": ("memory.limit_in_bytes", "memory.max"),
    "disk": ("blkio.throttle.write_bps_device", "io.max"),
}
_GONE_DEADLINE_S = 5.0


@dataclass(frozen=True)
class Hierarchy:
    """One mounted tree of groups."""

    root: Path
    version: Literal[1, 2]


@dataclass(frozen=True)
class ControlGroups:
    """The groups of the lab `fsid`. `proc` and `blocks` are the kernel's tables; tests give their own."""

    fsid: str
    proc: Path = Path("/proc")
    blocks: Path = Path("/sys/dev/block")

    def hierarchy(self, controller: Controller) -> Hierarchy | None:
        """The tree that has this controller; None where the kernel offers none."""
        first, second = _KERNEL_NAMES[controller]
        try:
            table = (self.proc / "self/mountinfo").read_text(errors="replace")
        except OSError:
            return None
        for root, kind, options in parse_mountinfo(table):
            if kind == "cgroup" and first in options.split(","):
                return Hierarchy(root, 1)
            if kind == "cgroup2" and second in _words(root / "cgroup.controllers"):
                return Hierarchy(root, 2)
        return None

    def lacking(self, controller: Controller) -> str:
        """Why nothing can be limited by this controller here, and what would allow it; "" where it can."""
        found = self.hierarchy(controller)
        first, second = _KERNEL_NAMES[controller]
        if found is None:
            return f"no control group has the controller {first} (v1) or {second} (v2); mount one as root"
        if not os.access(found.root, os.W_OK):
            return f"{found.root} may not be written by this account; it needs root"
        if found.version == 1 and not (found.root / _LIMIT_FILES[controller][0]).exists():
            return f"the kernel was built without {_OPTIONS[controller]}"
        return ""

    def require(self, wanted: Iterable[MachineLimits], directory: Path) -> None:
        """Raises LabError where one of these limits cannot be set here, before anything is."""
        limited = {controller for limits in wanted for controller in _limited(limits)}
        for controller in sorted(limited):
            self._require(controller)
        if "disk" in limited:
            self.device_of(directory)

    def device_of(self, directory: Path) -> str:
        """`MAJOR:MINOR` of the whole disk under a directory. Raises LabError where no disk is behind it."""
        number = directory.stat().st_dev
        name = f"{os.major(number)}:{os.minor(number)}"
        entry = self.blocks / name
        if not entry.exists():
            raise LabError(
                f"{directory} is not on a block device ({name}), so that its rate cannot be limited",
                "Use a lab whose --dir is on a disk.",
            )
        if (entry / "partition").exists():  # limits are of whole disks (Documentation/block)
            name = (entry.resolve().parent / "dev").read_text().strip()
        return name

    def limit(self, name: str, limits: MachineLimits, device: str = "") -> None:
        """Makes the group `name` where it is not there, and sets these limits; others stay as they are.

        `device` is for the rates of a disk, as `device_of` has it. Raises LabError where the kernel refuses.
        """
        for controller in _limited(limits):
            hierarchy = self._require(controller)
            group = self._made(hierarchy, name)
            for file, text in _settings(controller, hierarchy.version, limits, device):
                _write(group / file, text)

    def enter(self, name: str, pid: int) -> None:
        """Puts a process, with all its threads, into every group of this name. Raises LabError."""
        for hierarchy in self._hierarchies():
            group = hierarchy.root / self._top / name
            if group.is_dir():
                _write(group / "cgroup.procs", str(pid))

    def place_of(self, controller: Controller, pid: int) -> str:
        """The path of a process's group below the tree's root, for `leave`; `/` for one that has ended."""
        hierarchy = self._require(controller)
        first = _KERNEL_NAMES[controller][0]
        with suppress(OSError):
            for line in (self.proc / str(pid) / "cgroup").read_text().splitlines():
                _, controllers, path = line.split(":", 2)
                if (first in controllers.split(",")) if hierarchy.version == 1 else not controllers:
                    return path
        return "/"

    def leave(self, name: str, controller: Controller, back: str) -> None:
        """Ends one limit of the group `name`; with its last one, its processes go back to the group `back`.

        Does nothing where there is no such group. A `back` that is not there any more is the tree's root.
        """
        hierarchy = self.hierarchy(controller)
        if hierarchy is None:
            return
        group = hierarchy.root / self._top / name
        if not group.is_dir():
            return
        if hierarchy.version == 2:
            for file, text in _unlimited(controller, group):
                _write(group / file, text)
            if any(_is_limited(group, other) for other in CONTROLLERS):
                return
        former = hierarchy.root / back.lstrip("/")
        inside = former == group or ".." in former.parts or not former.is_dir()
        _remove(group, hierarchy.root if inside else former)
        with suppress(OSError):  # others of the lab's are in it
            group.parent.rmdir()

    def remove_all(self) -> None:
        """Removes every group of this lab; what is still in one goes to the tree's root. Raises LabError."""
        for hierarchy in self._hierarchies():
            top = hierarchy.root / self._top
            if not top.is_dir():
                continue
            for group in sorted(item for item in top.iterdir() if item.is_dir()):
                _remove(group, hierarchy.root)
            _remove(top, hierarchy.root)

    @property
    def _top(self) -> str:
        return f"{PREFIX}{self.fsid[:8].replace('/', '_')}"

    def _hierarchies(self) -> Iterator[Hierarchy]:
        found = (self.hierarchy(controller) for controller in CONTROLLERS)
        yield from dict.fromkeys(item for item in found if item is not None)

    def _require(self, controller: Controller) -> Hierarchy:
        reason, found = self.lacking(controller), self.hierarchy(controller)
        if reason or found is None:
            raise LabError(f"{controller} cannot be limited: {reason}", "See `leadline doctor`.")
        return found

    def _made(self, hierarchy: Hierarchy, name: str) -> Path:
        top = hierarchy.root / self._top
        group = top / name
        for directory in (top, group):
            if hierarchy.version == 2:
                _delegate(directory.parent)
            try:
                directory.mkdir(exist_ok=True)
            except OSError as error:
                raise LabError(
                    f"the control group {directory} cannot be made: {error.strerror}", "It needs root."
                ) from error
        return group


def _words(file: Path) -> list[str]:
    try:
        return file.read_text().split()
    except OSError:
        return []


def _delegate(directory: Path) -> None:
    """Lets the groups below limit what their parent has (cgroup v2, `cgroup.subtree_control`)."""
    there = _words(directory / "cgroup.subtree_control")
    for name in _words(directory / "cgroup.controllers"):
        if name in [second for _, second in _KERNEL_NAMES.values()] and name not in there:
            _write(directory / "cgroup.subtree_control", f"+{name}")


def _limited(limits: MachineLimits) -> Iterator[Controller]:
    if limits.cpu:
        yield "cpu"
    if limits.memory_bytes:
        yield "memory"
    if limits.disk_read_bytes_s or limits.disk_write_bytes_s:
        yield "disk"


def _settings(
    controller: Controller, version: int, limits: MachineLimits, device: str
) -> Iterator[tuple[str, str]]:
    """Files and what is written into them."""
    if controller == "cpu":
        quota_us = max(_QUOTA_US_MIN, round(limits.cpu * _PERIOD_US))
        if version == 2:
            yield "cpu.max", f"{quota_us} {_PERIOD_US}"
        else:
            yield "cpu.cfs_period_us", str(_PERIOD_US)
            yield "cpu.cfs_quota_us", str(quota_us)
    elif controller == "memory":
        yield _LIMIT_FILES["memory"][version - 1], str(limits.memory_bytes)
    else:
        rates = {"read": limits.disk_read_bytes_s, "write": limits.disk_write_bytes_s}
        if version == 2:
            yield (
                "io.max",
                " ".join([device, *(f"{word[0]}bps={rate or 'max'}" for word, rate in rates.items())]),
            )
            return
        for word, rate in rates.items():
            if rate:
                yield f"blkio.throttle.{word}_bps_device", f"{device} {rate}"


def _unlimited(controller: Controller, group: Path) -> Iterator[tuple[str, str]]:
    """What ends a limit of version 2; a group of version 1 has one controller and just goes."""
    if controller != "disk":
        yield f"{controller}.max", "max"
        return
    for line in (group / "io.max").read_text().splitlines():
        yield "io.max", f"{line.split()[0]} rbps=max wbps=max riops=max wiops=max"


def _is_limited(group: Path, controller: Controller) -> bool:
    words = _words(group / _LIMIT_FILES[controller][1])
    if controller == "disk":
        return any("=" in word and not word.endswith("=max") for word in words)
    return bool(words) and words[0] != "max"


def _remove(group: Path, back: Path) -> None:
    """Moves what is in a group to `back`, and removes it. Raises LabError where it does not empty."""

    def gone() -> bool:
        for pid in _words(group / "cgroup.procs"):
            with suppress(OSError):  # it has ended
                (back / "cgroup.procs").write_text(pid)
        try:
            group.rmdir()
        except FileNotFoundError:
            return True
        except OSError as error:
            if error.errno != errno.EBUSY:
                raise
            return False
        return True

    if not poll(gone, _GONE_DEADLINE_S):
        raise LabError(f"the control group {group} does not empty", "See its cgroup.procs for who is in it.")


def _write(file: Path, text: str) -> None:
    try:
        file.write_text(text)
    except OSError as error:
        raise LabError(
            f"{file} does not take {text!r}: {error.strerror}", "See `leadline doctor`."
        ) from error
