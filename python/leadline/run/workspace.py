"""The directory `leadline-<id>` below a target: marked as ours, and removed only with that mark.

Called in a worker process only: any of these calls can hang with the file system under it.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import NamedTuple

from leadline import _core
from leadline.errors import TargetError
from leadline.run.removal import remove_entries
from leadline.study import schemes
from leadline.study.target import Target
from leadline.workloads.io.job import Engine

MARK = ".leadline"
_SLICE_S = 600.0


class Place(NamedTuple):
    """Where a study works: a directory of a mounted file system, or of what the URL `location` leads to."""

    directory: str
    location: str | None = None

    @property
    def engine(self) -> Engine:
        """What lays files out there."""
        if self.location is None:
            return schemes.plain_engine()
        engine: Engine = _core.parse_location(self.location)["engine"]
        return engine

    @property
    def words(self) -> str:
        """As a person would look for it."""
        return self.directory if self.location is None else f"{self.directory} of {self.location}"


def workspace_of(target: Target, study_id: str) -> Place:
    """Where a study works on a target: below a path, or at the top of what a URL leads to."""
    top = Path(target.url) if target.is_path else Path("/")
    return Place(str(top / f"leadline-{study_id}"), target.location)


def make_workspace(directory: Path, study_id: str) -> None:
    """Create and mark the directory. One that exists and is not ours is refused."""
    try:
        directory.mkdir(mode=0o700)
    except FileExistsError:
        if not is_ours(directory, study_id):
            raise TargetError(
                f"{directory} exists and leadline did not make it", "move it away, or name another target"
            ) from None
        return
    except OSError as error:
        raise TargetError(
            f"cannot make a directory below {directory.parent}: {error.strerror}",
            "check that the target is mounted, is not read-only and may be written by you",
        ) from None
    with (directory / MARK).open("w") as mark:
        json.dump({"format": "leadline.workspace/1", "id": study_id}, mark)
        mark.flush()
        os.fsync(mark.fileno())


def is_ours(directory: Path, study_id: str) -> bool:
    """True for a marked directory of this study, or an empty one that died before it was marked."""
    if directory.is_symlink() or directory.name != f"leadline-{study_id}":
        return False
    try:
        return bool(json.loads((directory / MARK).read_text()).get("id") == study_id)
    except FileNotFoundError:
        return directory.is_dir() and not any(directory.iterdir())
    except (OSError, ValueError, AttributeError):
        return (directory / MARK).is_file() and (directory / MARK).stat().st_size == 0


def remove_files(directory: Path, prefix: str, slice_s: float = _SLICE_S) -> bool:
    """Remove what begins with `prefix` and a dot, for `slice_s` seconds at most; True when more is left."""
    return remove_entries(directory, slice_s, lambda name: name.startswith(f"{prefix}."))


def forget_cached(directory: Path, prefix: str) -> None:
    """Ask the kernel to drop these files' clean pages from its cache: ours alone, not the host's."""
    for path in directory.glob(f"{prefix}.*"):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)


def remove_workspace(directory: Path, study_id: str, slice_s: float = _SLICE_S) -> bool:
    """Remove the directory with all in it, for `slice_s` seconds at most; True when more is left.

    The mark goes last, so that what is left at any moment can be removed later.
    """
    if not directory.exists():
        return False
    try:
        ours = is_ours(directory, study_id)
    except FileNotFoundError:
        return False  # removed through another way to the same directory, which this one still shows
    if not ours:
        raise TargetError(
            f"{directory} does not carry this study's mark and was not removed", "look into it by hand"
        )
    if remove_entries(directory, slice_s, lambda name: name != MARK):
        return True
    (directory / MARK).unlink(missing_ok=True)
    directory.rmdir()
    return False
