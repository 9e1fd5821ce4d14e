"""CephFS's layout of a directory: set, and read back from a file of it. Called in a process that may hang."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from leadline.errors import TargetError

_OF_DIRECTORY = "ceph.dir.layout.pool"
_OF_FILE = "ceph.file.layout.pool"


def set_pool(descriptor: int, pool: str, words: str) -> None:
    """Files made in the open directory from now on are kept in `pool`. Raises TargetError."""
    try:
        os.setxattr(f"/proc/self/fd/{descriptor}", _OF_DIRECTORY, pool.encode())
    except OSError as error:
        raise _refused(error, pool, words) from None


def require_pool(path: Path, pool: str) -> None:
    """Raises TargetError where the file's data are not kept in `pool`."""
    try:
        found = os.getxattr(path, _OF_FILE).decode("utf-8", "replace")
    except OSError as error:
        raise TargetError(
            f"{path}: its layout cannot be read: {error.strerror}", "nothing was laid out; mount it anew"
        ) from None
    if found != pool:
        raise TargetError(
            f"{path} is kept in pool {found}, and pool {pool} was asked for",
            "nothing was laid out; see what else sets layouts there: getfattr -n ceph.dir.layout DIRECTORY",
        )


def _refused(error: OSError, pool: str, words: str) -> TargetError:
    if error.errno in (errno.EACCES, errno.EPERM):
        return TargetError(
            f"{words}: this client may not set layouts",
            "its MDS capability needs p, as ceph fs authorize FILE_SYSTEM client.NAME PATH rwp gives it to a"
            " new client; or let somebody set the layout of a directory, and name that as the target",
        )
    if error.errno == errno.EINVAL:
        return TargetError(
            f"{words}: the file system keeps no files in a pool {pool}",
            f"see its pools: ceph fs ls; one more: ceph fs add_data_pool FILE_SYSTEM {pool}",
        )
    if error.errno in (errno.EOPNOTSUPP, errno.ENOTTY):
        return TargetError(
            f"{words} has no layouts: it is no directory of a mounted CephFS",
            "leave the pool out, or name a directory of one",
        )
    return TargetError(
        f"{words}: its layout cannot be set to pool {pool}: {error.strerror}", "see the file system's mount"
    )
