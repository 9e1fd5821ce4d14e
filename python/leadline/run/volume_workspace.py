"""The directory `leadline-<id>` where a library reaches the storage: marked, and removed only with its mark.

`workspace` does the same on a mounted path.

Called in a worker process only: any of these calls can hang with the storage behind it.
"""

from __future__ import annotations

import errno
import json

from leadline import _core
from leadline.errors import TargetError
from leadline.run.workspace import MARK

_MARK_BYTES_MAX = 4096


def make_workspace(location: str, directory: str, study_id: str) -> None:
    """Create and mark the directory. One that exists and is not ours is refused."""
    volume = _core.Volume(location)
    try:
        volume.make_directory(directory)
    except OSError as error:
        if error.errno != errno.EEXIST:
            raise
        if not _is_ours(volume, directory, study_id):
            raise TargetError(
                f"{directory} of {location} exists and leadline did not make it",
                "remove it, or name another target",
            ) from None
        return
    mark = json.dumps({"format": "leadline.workspace/1", "id": study_id})
    volume.put(f"{directory}/{MARK}", mark.encode())


def _is_ours(volume: _core.Volume, directory: str, study_id: str) -> bool:
    """True for a marked directory of this study, or one that died before its mark was whole."""
    if directory != f"/leadline-{study_id}":
        return False
    mark = volume.get(f"{directory}/{MARK}", _MARK_BYTES_MAX)
    if not mark:
        return True
    try:
        return bool(json.loads(mark).get("id") == study_id)
    except (ValueError, AttributeError):
        return False


def remove_files(location: str, directory: str, prefix: str, slice_s: float) -> bool:
    """Remove what begins with `prefix` and a dot, for `slice_s` seconds at most; True when more is left."""
    return _core.Volume(location).remove_files(directory, f"{prefix}.", slice_s)


def remove_workspace(location: str, directory: str, study_id: str, slice_s: float) -> bool:
    """Remove the directory with all in it, for `slice_s` seconds at most; True when more is left."""
    volume = _core.Volume(location)
    if not _is_ours(volume, directory, study_id):
        raise TargetError(
            f"{directory} of {location} does not carry this study's mark and was not removed",
            "look into it by hand",
        )
    try:
        if volume.remove_files(directory, "", slice_s):
            return True
        volume.remove_directory(directory, MARK)
    except FileNotFoundError:
        return False
    return False
