"""Writing one file that a user named: whole or not at all."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path

from leadline.errors import ResultError, UsageError
from leadline.trusted import own_place

_ACCESS_LIST = "system.posix_acl_access"


def write_file(path: Path, data: bytes, option: str = "") -> None:
    """A full disk must not leave half a file where a good one was. Raises UsageError."""
    from leadline.durable import unfinished

    remedy = f"name another file with {option}" if option else "name another file"
    try:
        path = own_place(path, option or "-o")
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}", remedy) from None
    if result := _result_of(path):
        raise UsageError(f"{path} is a file of the result {result}: it was not overwritten", remedy)
    try:
        partial = unfinished(path)
        # A new one: whoever may write beside it could have put a link there.
        mode = 0o600 if os.path.lexists(path) else 0o666
        with open(partial, "xb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
            try:
                _keep_rights(path, file.fileno())
                file.write(data)
                file.flush()
                os.fsync(
                    file.fileno()
                )  # storage with a quota, or behind a network, says only now that it is full
                partial.replace(path)
            except BaseException:
                with suppress(OSError):
                    partial.unlink()
                raise
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}", remedy) from None


def _keep_rights(path: Path, new: int) -> None:
    """Give a new file the group, mode and access list of the file that it replaces. Raises OSError."""
    if not os.path.lexists(path):
        return
    before, access = path.lstat(), b""
    if before.st_uid != os.geteuid() or not stat.S_ISREG(before.st_mode):  # it has come since we looked
        raise OSError(errno.EEXIST, "another account has put something there", str(path))
    if os.fstat(new).st_gid != before.st_gid:
        os.fchown(new, -1, before.st_gid)
    os.fchmod(new, before.st_mode & 0o777)
    with suppress(OSError):  # most files have none
        access = os.getxattr(path, _ACCESS_LIST, follow_symlinks=False)
    if access:
        os.setxattr(new, _ACCESS_LIST, access)


def _result_of(path: Path) -> Path | None:
    """The result that a file is a part of, there already or not."""
    from leadline.store.bundles import BUNDLES
    from leadline.store.files import DOCUMENT, JOURNAL, MANIFEST, RECORDS, SCRIPT, TRACE_TABLES, WORKFLOWS
    from leadline.store.index import INDEX
    from leadline.store.reader import check_manifest
    from leadline.store.tables import TABLES

    place = Path(os.path.realpath(path.parent)) / path.name
    if place.name in (MANIFEST, JOURNAL, INDEX, SCRIPT, DOCUMENT, WORKFLOWS):
        result = place.parent
    elif place.parent.name in TABLES and place.parent.parent.name == BUNDLES:
        result = place.parent.parent.parent
    elif place.parent.name in (BUNDLES, *TABLES, *TRACE_TABLES, RECORDS):
        result = place.parent.parent
    else:
        return None
    if not os.path.lexists(result / MANIFEST):
        return None
    try:
        check_manifest(result)
    except ResultError as error:
        return None if "no manifest of leadline" in error.message else result
    return result
