"""From a device number or a source to the block device's name under /sys/class/block."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from leadline.observe.mounts.mountinfo import Mount, mount_of

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
