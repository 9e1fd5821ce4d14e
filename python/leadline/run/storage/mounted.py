"""Whether a target still lies on the file system that it lay on when a study began.

Without its mount, a mount point is an empty directory of another file system: what the study left seems to be
gone there, and what it would write goes where nobody meant it to. Called in a process that may hang.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from leadline.errors import TargetError
from leadline.observe.mounts.mountinfo import mount_of, read_mounts
from leadline.study.target import TargetFacts


class Mounted(NamedTuple):
    """Where a file system is mounted, its type, and what it was mounted from."""

    mount_point: str
    file_system: str
    source: str

    def words(self) -> str:
        """As a person reads it."""
        return f"{self.file_system} ({self.source}) mounted on {self.mount_point}"


def mounted_of(facts: TargetFacts | None) -> Mounted | None:
    """What was found when the study was planned; None for what has no mount, and of older results."""
    if facts is None or facts.mount_point is None or facts.source is None:
        return None
    return Mounted(facts.mount_point, facts.file_system, facts.source)


def require_mounted(top: Path, was: Mounted | None) -> None:
    """Raises TargetError where the target `top` is not there, or lies on something else than it did."""
    if not top.is_dir():
        raise TargetError(
            f"{top} is no directory any more: what the study left in it was not found",
            "bring it back to this place, then do this again",
        )
    mount = mount_of(os.path.realpath(top), read_mounts())
    now = None if mount is None else Mounted(mount.mount_point, mount.file_system, mount.source)
    if was is not None and now is not None and now != was:
        raise TargetError(
            f"{top} lay on {was.words()} when the study began, and lies on {now.words()} now",
            "mount it as it was, then do this again",
        )
