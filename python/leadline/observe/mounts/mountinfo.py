"""The mount table of /proc/self/mountinfo: the mount that holds a path, and the block device below it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from leadline.observe import machine

_ESCAPE = re.compile(r"\\([0-7]{3})")


@dataclass(frozen=True)
class Mount:
    """One line of mountinfo (see proc_pid_mountinfo(5)); paths are unescaped."""

    mount_id: int
    parent_id: int
    major: int
    minor: int
    root: str
    mount_point: str
    options: tuple[str, ...]
    file_system: str
    source: str
    super_options: tuple[str, ...]

    def option(self, name: str) -> str | None:
        """The value of `name=value` among the super block's and the mount's options."""
        prefix = f"{name}="
        for item in (*self.super_options, *self.options):
            if item.startswith(prefix):
                return item[len(prefix) :]
        return None


def unescape(text: str) -> str:
    """Undo the kernel's octal escapes (space, tab, newline, backslash, hash)."""
    return _ESCAPE.sub(lambda match: chr(int(match.group(1), 8)), text)


def parse_mountinfo(text: str) -> tuple[Mount, ...]:
    """Every line that is well formed, in the order of mounting."""
    return tuple(mount for line in text.split("\n") if (mount := _parse_line(line)) is not None)


def _parse_line(line: str) -> Mount | None:
    fields = line.split(" ")
    if "-" not in fields[6:]:
        return None
    separator = fields.index("-", 6)
    tail = fields[separator + 1 :]
    major, _, minor = fields[2].partition(":")
    if len(tail) < 2 or not (
        fields[0].isdigit() and fields[1].isdigit() and major.isdigit() and minor.isdigit()
    ):
        return None
    return Mount(
        mount_id=int(fields[0]),
        parent_id=int(fields[1]),
        major=int(major),
        minor=int(minor),
        root=unescape(fields[3]),
        mount_point=unescape(fields[4]),
        options=_options(fields[5]),
        file_system=unescape(tail[0]),
        source=unescape(tail[1]),
        super_options=_options(tail[2]) if len(tail) > 2 else (),
    )


def _options(text: str) -> tuple[str, ...]:
    return tuple(unescape(part) for part in text.split(",") if part)


def read_mounts() -> tuple[Mount, ...]:
    """The mounts that this process sees, or those of the machine that it works for."""
    there = machine.other()
    if there is not None:
        return there.mounts()
    return _parsed(Path("/proc/self/mountinfo").read_bytes())


@lru_cache(maxsize=1)
def _parsed(raw: bytes) -> tuple[Mount, ...]:
    """Kept while nothing is mounted or unmounted: it is asked of each of ten thousand directories."""
    return parse_mountinfo(raw.decode("utf-8", "surrogateescape"))


def mount_of(path: str, mounts: Sequence[Mount]) -> Mount | None:
    """The mount with the longest mount point above a resolved path; the latest of several."""
    best: Mount | None = None
    for mount in mounts:
        inside = mount.mount_point in ("/", path) or path.startswith(mount.mount_point + "/")
        if inside and (best is None or len(mount.mount_point) >= len(best.mount_point)):
            best = mount
    return best


def mount_by_id(mount_id: int | None, mounts: Sequence[Mount]) -> Mount | None:
    """The mount with the number that the kernel gives in /proc/PID/fdinfo."""
    return next((mount for mount in mounts if mount.mount_id == mount_id), None)


def place_on(path: str, mounts: Sequence[Mount], like: Mount) -> str | None:
    """Where a resolved path lies on the file system of `like`, from that file system's own root; None where
    another one holds it.

    `mounts` are those that the path is meant in: a bind mount, or the table of another mount namespace, has
    other paths for the same file.
    """
    mount = mount_of(path, mounts)
    if mount is None or (mount.major, mount.minor) != (like.major, like.minor):
        return None
    return mount.root.rstrip("/") + path[len(mount.mount_point.rstrip("/")) :] or "/"


_STACK_DEPTH_MAX = 8  # overlay on overlay: the kernel itself allows two


def device_name(major: int, minor: int, sys_root: Path = Path("/sys")) -> str | None:
    """The name of a block device by its number; None for the anonymous numbers of NFS, tmpfs, btrfs."""
    link = sys_root / "dev" / "block" / f"{major}:{minor}"
    try:
        return link.resolve(strict=True).name
    except OSError:
        return None


def device_of_mount(mount: Mount, mounts: Sequence[Mount], sys_root: Path = Path("/sys")) -> str | None:
    """The one block device below a mount; an overlay's is its upper directory's. None: none, or several."""
    for _ in range(_STACK_DEPTH_MAX):
        if mount.file_system != "overlay":
            return _own_device(mount, sys_root)
        upper = mount.option("upperdir")
        below = mount_of(upper, mounts) if upper else None
        if below is None or below == mount:
            return None
        mount = below
    return None


def _own_device(mount: Mount, sys_root: Path) -> str | None:
    name = device_name(mount.major, mount.minor, sys_root)
    if name is None and mount.source.startswith("/dev/"):
        candidate = Path(mount.source).resolve().name
        name = candidate if (sys_root / "class" / "block" / candidate).exists() else None
    if name is not None and mount.file_system == "btrfs" and _has_siblings(name, sys_root):
        return None
    return name


def _has_siblings(name: str, sys_root: Path) -> bool:
    for devices in (sys_root / "fs" / "btrfs").glob("*/devices"):
        names = [entry.name for entry in devices.iterdir()]
        if name in names:
            return len(names) > 1
    return False


def backing_file(device: str, sys_root: Path = Path("/sys")) -> str | None:
    """The file behind a loop device (or behind the loop device that a partition belongs to)."""
    base = sys_root / "class" / "block" / device
    for place in (base, base.resolve().parent):
        try:
            return (place / "loop" / "backing_file").read_text().rstrip("\n")
        except OSError:
            continue
    return None
