"""The directory `leadline-<id>` on a target: marked as ours, and removed only with that mark.

Called in a worker process only: any of these calls can hang with the file system under it.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import NamedTuple

from leadline import _core
from leadline.errors import TargetError
from leadline.run.storage.own import own_directory
from leadline.run.storage.storage import Storage, open_storage
from leadline.study.target import Target

MARK = ".leadline"
_MARK_BYTES_MAX = 4096
_SLICE_S = 600.0


class Workspace(NamedTuple):
    """Where a study works: a directory of a mounted file system, or of what the URL `location` leads to."""

    directory: str
    location: str | None = None

    @property
    def engine(self) -> str:
        """What lays files out there."""
        if self.location is None:
            return "psync"
        engine: str = _core.parse_location(self.location)["engine"]
        return engine

    @property
    def words(self) -> str:
        """As a person would look for it."""
        return self.directory if self.location is None else f"{self.directory} of {self.location}"


def workspace_of(target: Target, study_id: str) -> Workspace:
    """Where a study works on a target: below a path, or at the top of what a URL leads to."""
    top = Path(target.url) if target.is_path else Path("/")
    return Workspace(str(top / f"leadline-{study_id}"), target.location)


def make_workspace(place: Workspace, study_id: str) -> None:
    """Create and mark the directory. One that exists and is not ours is refused."""
    storage = open_storage(place.location)
    try:
        storage.make_directory(place.directory)
    except FileExistsError:
        if not _is_ours(storage, place.directory, study_id):
            raise TargetError(
                f"{place.words} exists and leadline did not make it", storage.foreign_remedy
            ) from None
        if storage.get(f"{place.directory}/{MARK}", _MARK_BYTES_MAX):
            return
    mark = json.dumps({"format": "leadline.workspace/1", "id": study_id})
    storage.put(f"{place.directory}/{MARK}", mark.encode())


def _is_ours(storage: Storage, directory: str, study_id: str) -> bool:
    """True for a marked directory of this study, or one whose maker died before its mark was whole."""
    if not storage.may_be_named(directory, f"leadline-{study_id}"):
        return False
    mark = storage.get(f"{directory}/{MARK}", _MARK_BYTES_MAX)
    if mark is None:
        return storage.may_lack_mark(directory)
    if not mark:
        return True
    try:
        return bool(json.loads(mark).get("id") == study_id)
    except (ValueError, AttributeError):
        return False


def remove_files(place: Workspace, prefix: str, slice_s: float = _SLICE_S) -> bool:
    """Remove what begins with `prefix` and a dot, for `slice_s` seconds at most; True when more is left."""
    return open_storage(place.location).remove_files(place.directory, f"{prefix}.", slice_s)


def forget_cached(directory: Path, prefix: str) -> None:
    """Ask the kernel to drop these files' clean pages from its cache: ours alone, not the host's."""
    with own_directory(directory) as own:
        for name in os.listdir(own):  # noqa: PTH208 - of a descriptor
            if name.startswith(f"{prefix}."):
                descriptor = _core.open_beneath(own, name, os.O_RDONLY | os.O_NONBLOCK)
                try:
                    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
                finally:
                    os.close(descriptor)


def remove_workspace(place: Workspace, study_id: str, slice_s: float = _SLICE_S) -> bool:
    """Remove the directory with all in it, for `slice_s` seconds at most; True when more is left.

    The mark goes last, so that what is left at any moment can be removed later.
    """
    storage = open_storage(place.location)
    if storage.is_absent(place.directory):
        return False
    try:
        ours = _is_ours(storage, place.directory, study_id)
    except FileNotFoundError:
        return False  # removed through another way to the same directory, which this one still shows
    if not ours:
        raise TargetError(
            f"{place.words} does not carry this study's mark and was not removed", "look into it by hand"
        )
    return storage.remove_directory(place.directory, MARK, slice_s)
