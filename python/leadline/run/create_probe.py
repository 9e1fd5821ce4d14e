"""`python -m leadline.run.create_probe PATH ID`: makes files on a mount, reads them, removes them."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from pathlib import Path

from leadline.errors import TargetError
from leadline.run.storage import own_directory
from leadline.run.workspace import Workspace, make_workspace, remove_workspace

FILES = 16
_BYTES = 4096
_BEGIN = "created."


def main(arguments: list[str]) -> int:
    """Two arguments: the directory to work below, and the name of the workspace."""
    path, study_id = arguments
    place = Path(path) / f"leadline-{study_id}"
    found: dict[str, object] = {"files": 0}
    try:
        make_workspace(Workspace(str(place)), study_id)
    except TargetError as error:
        found["why"] = error.message
    else:
        try:
            with own_directory(place) as own:
                _try_files(own, found)
        finally:
            with contextlib.suppress(OSError, TargetError):
                found["left"] = remove_workspace(Workspace(str(place)), study_id, [_BEGIN], None)
    sys.stdout.write(json.dumps(found) + "\n")
    return 0


def _try_files(place: int, found: dict[str, object]) -> None:
    flags = os.O_CREAT | os.O_EXCL | os.O_RDWR
    for number in range(FILES):
        data = os.urandom(_BYTES)
        doing = "create"
        try:
            descriptor = os.open(f"{_BEGIN}{number}", flags, 0o600, dir_fd=place)
            try:
                doing = "write"
                os.pwrite(descriptor, data, 0)
                doing = "sync"
                os.fsync(descriptor)
                doing = "read"
                if os.pread(descriptor, _BYTES, 0) != data:
                    found["why"] = f"file {number + 1} holds other bytes than were written"
                    return
            finally:
                os.close(descriptor)
        except OSError as error:
            found |= {"errno": error.errno, "doing": doing}
            found["why"] = f"{doing} of file {number + 1}: {os.strerror(error.errno or 0)}"
            return
        found["files"] = number + 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
