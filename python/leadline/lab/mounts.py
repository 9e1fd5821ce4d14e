"""What is mounted below a lab's directory, and how it is unmounted, dead or alive.

A dead or stuck mount must not be touched to ask about it: only the kernel's table is read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from leadline.errors import LabError
from leadline.lab.cluster.process import SYSTEM_CLOCK, Clock, poll, run_tool

_MOUNT_TABLE = Path("/proc/self/mountinfo")
_OCTAL = re.compile(r"\\([0-7]{3})")
FUSE_DEVICE = Path("/dev/fuse")
FUSE_KIND = "fuse.ceph-fuse"  # the file system type of a lab's mounts


class MountLine(NamedTuple):
    """What a line of /proc/PID/mountinfo (proc(5)) says: mount point, file system type and its options."""

    point: Path
    kind: str
    options: str = ""


def parse_mountinfo(text: str) -> Iterator[MountLine]:
    """Each mount, in mount order."""
    for line in text.splitlines():
        before, separator, after = line.partition(" - ")
        fields, kinds = before.split(" "), after.split(" ")
        if separator and len(fields) > 4:
            # The kernel writes space, tab, newline and backslash as octal.
            point = _OCTAL.sub(lambda match: chr(int(match[1], 8)), fields[4])
            yield MountLine(Path(point), kinds[0], kinds[-1])


def mounts_below(directory: Path) -> list[tuple[Path, str]]:
    """Everything mounted on or below `directory`, the last mounted first."""
    table = list(parse_mountinfo(_MOUNT_TABLE.read_text(errors="surrogateescape")))
    return [
        (point, kind)
        for point, kind, _ in reversed(table)
        if point == directory or directory in point.parents
    ]


def is_mounted(point: Path) -> bool:
    """True where something is mounted exactly on `point`."""
    return any(path == point for path, _ in mounts_below(point))


def require_fuse() -> None:
    """Raises LabError where this account cannot mount through FUSE, saying what it needs."""
    if not FUSE_DEVICE.exists():
        raise LabError(
            "this machine has no /dev/fuse: CephFS cannot be mounted",
            "Load the kernel's fuse module or pass /dev/fuse into the container, or use --no-mount.",
        )
    if not os.access(FUSE_DEVICE, os.R_OK | os.W_OK):
        mode = FUSE_DEVICE.stat().st_mode & 0o777
        raise LabError(
            f"/dev/fuse may not be opened by this account (its mode is {mode:04o})",
            "As root: chmod 0666 /dev/fuse (Debian's usual mode), or start the lab as root, or --no-mount.",
        )


def unmount_within(
    point: Path,
    variables: Mapping[str, str],
    deadline_s: float,
    *,
    lazy: bool = False,
    clock: Clock = SYSTEM_CLOCK,
) -> str:
    """Unmounts until nothing is mounted on `point`; returns "" or why it is still in use at the deadline."""
    reasons: list[str] = []

    def gone() -> bool:
        reasons[:] = [unmount(point, variables, lazy=lazy)]
        return not is_mounted(point)

    return "" if poll(gone, deadline_s, interval_s=0.5, clock=clock) else reasons[0] or "mounted again"


def unmount(point: Path, variables: Mapping[str, str], *, lazy: bool) -> str:
    """Unmounts what is mounted on `point`; returns "" or why it could not be done (busy, for example)."""
    if os.geteuid() == 0:
        commands = [["umount", *(["-l"] if lazy else []), str(point)]]
    else:
        flags = ["-u", "-z"] if lazy else ["-u"]
        commands = [[program, *flags, str(point)] for program in ("fusermount3", "fusermount")]
    reason = ""
    for command in commands:
        try:
            run_tool(command, variables, deadline_s=10.0)
            return ""
        except LabError as error:
            reason = reason or error.message
    return reason
