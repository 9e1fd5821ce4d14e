"""`python -m leadline.observe.probe`: touches a path that may hang, one JSON line per step.

Runs in a child so that its parent can give up. A line `{"begin": STEP}` precedes each step, so that
the parent can name the one that never ended. Nothing of it stays on the target.
"""

from __future__ import annotations

import contextlib
import errno
import json
import mmap
import os
import secrets
import socket
import stat
import sys
from pathlib import Path
from typing import Any

from leadline.observe.hang_guard import Doing

_ALIGNMENTS_BYTES = (512, 4096, 65536)
_LAYOUT_DEPTH_MAX = 64


def _say(value: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


def _identify(path: str) -> dict[str, Any]:
    try:
        found = Path(path).stat()
    except OSError as error:
        return {"kind": "missing", "errno": error.errno, "why": os.strerror(error.errno or 0)}
    kinds = (
        (stat.S_ISDIR, "directory"),
        (stat.S_ISBLK, "block device"),
        (stat.S_ISCHR, "character device"),
        (stat.S_ISREG, "file"),
    )
    kind = next((word for test, word in kinds if test(found.st_mode)), "special file")
    facts: dict[str, Any] = {"kind": kind, "major": os.major(found.st_dev), "minor": os.minor(found.st_dev)}
    facts["mount_id"] = _mount_id(path)
    return facts


def _mount_id(path: str) -> int | None:
    descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        for line in Path(f"/proc/self/fdinfo/{descriptor}").read_text().splitlines():
            if line.startswith("mnt_id:"):
                return int(line.split()[1])
    finally:
        os.close(descriptor)
    return None


def _space(path: str) -> dict[str, Any]:
    space = os.statvfs(path)
    return {
        "total_bytes": space.f_blocks * space.f_frsize,
        "free_bytes": space.f_bavail * space.f_frsize,
        "writable": os.access(path, os.W_OK | os.X_OK),
    }


def _open_temporary(path: str, flags: int) -> int:
    """An open file below `path` that has no name (any more)."""
    with contextlib.suppress(OSError):
        return os.open(path, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC | flags, 0o600)
    name = str(Path(path, f".leadline-probe-{secrets.token_hex(8)}"))
    made = os.open(name, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        descriptor = os.open(name, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | flags)
        if not os.path.samestat(os.fstat(made), os.fstat(descriptor)):
            os.close(descriptor)
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), name)
    except OSError:
        os.unlink(name)  # noqa: PTH108 - the name may hold bytes that are no text
        raise
    finally:
        os.close(made)
    try:
        os.unlink(name)  # noqa: PTH108
    except OSError:  # a file system that removes no open file
        os.close(descriptor)
        os.unlink(name)  # noqa: PTH108
        raise
    return descriptor


def _direct(path: str) -> dict[str, Any]:
    """Whether O_DIRECT opens and writes, and the smallest block it takes."""
    try:
        descriptor = _open_temporary(path, os.O_DIRECT)
    except OSError as error:
        return {"direct_io": False, "direct_why": os.strerror(error.errno or 0)}
    why = os.strerror(errno.EINVAL)
    try:
        with mmap.mmap(-1, 2 * _ALIGNMENTS_BYTES[-1]) as memory:
            for alignment in _ALIGNMENTS_BYTES:
                try:
                    # The buffer starts one block into a page: memory, length and offset are all just aligned.
                    with memoryview(memory) as whole, whole[alignment : 2 * alignment] as block:
                        written = os.pwrite(descriptor, block, alignment)
                except OSError as error:
                    why = os.strerror(error.errno or 0)
                    continue
                if written == alignment:
                    return {"direct_io": True, "direct_alignment_bytes": alignment}
    finally:
        os.close(descriptor)
    return {"direct_io": False, "direct_why": why}


def parse_layout(text: str) -> dict[str, Any]:
    """`stripe_unit=4194304 stripe_count=1 object_size=4194304 pool=data`: sizes are bytes."""
    found: dict[str, Any] = {"pool": None, "layout": {}}
    head, separator, pool = text.partition(" pool=")
    if separator:
        found["pool"], _, namespace = pool.partition(" pool_namespace=")
        found |= {"namespace": namespace} if namespace else {}
    for part in head.split():
        name, _, value = part.partition("=")
        if value.isdigit():
            found["layout"][name] = int(value)
    return found


def _layout(path: str, writable: bool) -> dict[str, Any]:
    """CephFS's layout for new files here: the nearest directory upwards that has one."""
    here = path
    for _ in range(_LAYOUT_DEPTH_MAX):
        with contextlib.suppress(OSError):
            return parse_layout(os.getxattr(here, "ceph.dir.layout").decode("utf-8", "replace"))
        if here in ("/", "") or os.path.ismount(here):
            break
        here = str(Path(here).parent)
    if writable:
        with contextlib.suppress(OSError):
            descriptor = _open_temporary(path, 0)
            try:
                return parse_layout(os.getxattr(descriptor, "ceph.file.layout").decode("utf-8", "replace"))
            finally:
                os.close(descriptor)
    return {}


def _quota(path: str) -> dict[str, Any]:
    """The nearest limits at or above a CephFS directory, as far as its mount shows; 0 where there is none."""
    found: dict[str, Any] = {}
    for name, attribute in (("quota_bytes", "ceph.quota.max_bytes"), ("quota_files", "ceph.quota.max_files")):
        here, limit = path, 0
        for _ in range(_LAYOUT_DEPTH_MAX):
            with contextlib.suppress(OSError, ValueError):
                limit = int(os.getxattr(here, attribute))
            if limit or here in ("/", "") or os.path.ismount(here):
                break
            here = str(Path(here).parent)
        found[name] = limit
    return found


def _snapshots(path: str) -> dict[str, Any]:
    with contextlib.suppress(OSError):
        return {"snapshots": len(os.listdir(f"{path}/.snap"))}  # noqa: PTH208
    return {}


def _kernel_client(path: str) -> dict[str, Any]:
    """Which of the kernel's CephFS clients serves this directory, as /sys/kernel/debug/ceph names it."""
    try:
        words = [os.getxattr(path, f"ceph.{name}").decode() for name in ("cluster_fsid", "client_id")]
    except (OSError, UnicodeDecodeError):
        return {}
    return {"kernel_client": ".".join(words)}


def probe_path(path: str, doing: Doing, *, writes: bool) -> dict[str, Any]:
    """All steps for one path, each said before it begins; ends early where there is no directory."""
    doing(path, "resolving the path")
    place = os.path.realpath(path)
    doing(place, "looking at the directory")
    facts = {"path": place, **_identify(place)}
    if facts["kind"] != "directory":
        return facts
    doing(place, "asking for free space")
    facts |= _space(place)
    tries = writes and facts["writable"]
    doing(place, "asking for the CephFS layout")
    layout = _layout(place, tries)
    if layout:
        doing(place, "asking for the CephFS quota and snapshots")
        facts |= {**layout, **_quota(place), **_snapshots(place), **_kernel_client(place)}
    if tries:
        doing(place, "writing one block with O_DIRECT")
        facts |= _direct(place)
    return facts


def probe_volume(url: str) -> None:
    """Connects to a URL's storage and asks: `space` (total, free; null where it does not say), or
    `why` not. `address` is its server's, where it has one; `pool` the one behind a file system.
    """
    from leadline import _core

    try:
        volume = _core.Volume(url)
        address = _address(_core.parse_location(url)["server"])
        try:
            _say({"space": volume.space(), "address": address, "pool": volume.pool()})
        except OSError as error:
            if error.errno != errno.ENOTSUP:
                raise
            _say({"space": None, "address": address})
    except OSError as error:
        subject = f" ({error.filename})" if error.filename and error.filename != url else ""
        _say({"why": f"{error.strerror}{subject}"})


def _address(server: str | None) -> str | None:
    """The first address of a server that has just answered."""
    if server is None:
        return None
    try:
        return str(socket.getaddrinfo(server.strip("[]"), None, type=socket.SOCK_STREAM)[0][4][0])
    except OSError:
        return None


def main(arguments: list[str]) -> int:
    """`volume URL`, `pool CONF NAME KEYRING POOL DEADLINE_S`, `placement` with the same,
    or `cluster CONF NAME KEYRING DEADLINE_S`, which lists pools and file systems (empty: Ceph's default).
    """
    if arguments[:1] == ["volume"] and len(arguments) == 2:
        probe_volume(arguments[1])
        return 0
    if arguments[:1] == ["pool"] and len(arguments) == 6:
        from leadline.observe.ceph.pools import protection_of_pool

        conf, name, keyring, pool, deadline_s = arguments[1:]
        _say(protection_of_pool(conf or None, name or None, keyring or None, pool, float(deadline_s)))
        return 0
    if arguments[:1] == ["placement"] and len(arguments) == 6:
        from leadline.observe.ceph.pools import placement_of_pool

        conf, name, keyring, pool, deadline_s = arguments[1:]
        _say(placement_of_pool(conf or None, name or None, keyring or None, pool, float(deadline_s)))
        return 0
    if arguments[:1] == ["cluster"] and len(arguments) == 5:
        from leadline.observe.ceph.client import contents_of_cluster

        conf, name, keyring, deadline_s = arguments[1:]
        _say(contents_of_cluster(conf or None, name or None, keyring or None, float(deadline_s)))
        return 0
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
