"""Finds out what a target is before anything is run on it: `inspect`.

Whatever touches the target itself happens in `probe`, in a fork with a deadline.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from leadline.errors import TargetError
from leadline.observe.hang_guard import in_fork
from leadline.observe.host.devices import device_of_mount
from leadline.observe.mounts.locations import inspect_location, protection
from leadline.observe.mounts.messages import words_of
from leadline.observe.mounts.mountinfo import Mount, mount_by_id, mount_of, read_mounts
from leadline.observe.probe import probe_path
from leadline.study import schemes
from leadline.study.target import CephAccess, TargetFacts
from leadline.trusted import why_not_file
from leadline.units import printable

_DEADLINE_S = 7.0  # for an answer of the command within ten seconds
_IN_MEMORY = ("tmpfs", "ramfs")


def inspect(url: str, deadline_s: float = _DEADLINE_S, *, writes: bool = True) -> TargetFacts:
    """What a path or a URL is: file system, device, direct I/O, space, and the Ceph behind it.

    Raises TargetError for a path that is missing, no directory, `/`, read-only, or does not answer
    within `deadline_s`, and for a scheme that cannot be measured. Leaves nothing on the target; without
    `writes` it does not try direct I/O either.
    """
    nowhere = schemes.storageless()
    if url == nowhere.example:
        return TargetFacts(access=nowhere.name, file_system=nowhere.name, words=nowhere.words)
    if "://" in url:
        return inspect_location(url, deadline_s)
    if not url or "\0" in url:
        raise TargetError("the path of a target is empty or holds a zero byte", "Name a directory: a=/mnt/a")
    path = os.path.abspath(url)  # noqa: PTH100 - Path.absolute keeps ".."
    facts = _ask_path(path, deadline_s, writes=writes)
    mounts = read_mounts()
    mount = mount_by_id(facts.get("mount_id"), mounts) or mount_of(facts["path"], mounts)
    if mount is None:
        raise _held_by_none(path, mounts)
    _refuse(path, facts, mount)
    return _facts(mount, mounts, facts)


def _held_by_none(path: str, mounts: Sequence[Mount]) -> TargetError:
    """A chroot shows only the mounts below its root: a root that is no mount itself has no line."""
    if any(mount.mount_point == "/" for mount in mounts):
        return TargetError(f"{printable(path)}: no mount holds it", "See /proc/self/mountinfo.")
    return TargetError(
        f"{printable(path)}: the mount that holds it cannot be seen: the root of this chroot is no mount",
        "Outside of the chroot: mount --bind ROOT ROOT; then enter it again.",
    )


def look(path: str, deadline_s: float = _DEADLINE_S) -> tuple[TargetFacts, Mount, str]:
    """What a path lies on, found out without writing: any mounted file system, used in production; and the
    path itself, without symbolic links.

    Raises TargetError for a path that is missing or does not answer within `deadline_s`.
    """
    facts = _ask_path(os.path.abspath(path), deadline_s, writes=False)  # noqa: PTH100
    if facts["kind"] == "missing":
        raise TargetError(f"{printable(path)}: {facts['why']}", "Name a path on the mounted file system.")
    mounts = read_mounts()
    mount = mount_by_id(facts.get("mount_id"), mounts) or mount_of(facts["path"], mounts)
    if mount is None:
        raise _held_by_none(path, mounts)
    found = _facts(mount, mounts, {"total_bytes": None, "free_bytes": None, **facts})
    return found, mount, str(facts["path"])


def _ask_path(path: str, deadline_s: float, *, writes: bool) -> dict[str, Any]:
    try:
        return in_fork(lambda doing: probe_path(path, doing, writes=writes), path, deadline_s)
    except OSError as error:
        raise TargetError(
            f"{printable(path)}: cannot be examined: {error.strerror}", "See whether its mount works."
        ) from None


def _refuse(path: str, facts: dict[str, Any], mount: Mount) -> None:
    """Raise TargetError where no trial could or should run."""
    shown, kind = printable(path), facts["kind"]
    if kind == "missing":
        raise TargetError(f"{shown}: {facts['why']}", "Name a directory that exists, mounted if need be.")
    if kind == "block device":
        raise TargetError(
            f"{shown} is a raw device: measuring would destroy what is on it",
            "Name a directory of a file system mounted from it.",
        )
    if kind != "directory":
        raise TargetError(f"{shown} is no directory but a {kind}", "Name a directory.")
    if facts["path"] == "/":
        raise TargetError(
            f"{shown} is the root directory of this host", "Name a directory made for it, as in a=/var/tmp"
        )
    if not facts["writable"]:
        read_only = "ro" in mount.options or "ro" in mount.super_options
        why = (
            f"mounted read-only at {printable(mount.mount_point)}" if read_only else "no permission to write"
        )
        raise TargetError(f"{shown} cannot be written: {why}", "Name a directory that this user may write.")
    if facts["free_bytes"] == 0 and facts["total_bytes"] > 0:
        raise TargetError(f"{shown} is full", "Free some space: a study writes files of its own.")


def _facts(mount: Mount, mounts: Sequence[Mount], found: dict[str, Any]) -> TargetFacts:
    access = schemes.OF_FILE_SYSTEM.get(mount.file_system, schemes.LOCAL)
    device = device_of_mount(mount, mounts)
    facts = TargetFacts(
        access=access.name,
        file_system=mount.file_system,
        words="",
        mount_point=mount.mount_point,
        source=mount.source,
        options=shown_options(mount),
        device=device,
        in_memory=mount.file_system in _IN_MEMORY,
        direct_io=bool(found.get("direct_io", False)),
        direct_alignment_bytes=int(found.get("direct_alignment_bytes", 4096)),
        total_bytes=found["total_bytes"] or None,
        free_bytes=found["free_bytes"] if found["total_bytes"] else None,
    )
    if access.storage == "cluster":
        facts = replace(facts, ceph=_ceph_access(mount, found))
    return replace(facts, words=words_of(facts, mount))


def shown_options(mount: Mount) -> tuple[str, ...]:
    """Each option of a mount and of its super block once, and no secret."""
    secret = ("secret=", "password=", "pass=", "key=")
    known = (option for option in mount.super_options if not option.startswith(secret))
    return tuple(dict.fromkeys((*mount.options, *known)))


def _ceph_access(mount: Mount, found: dict[str, Any]) -> CephAccess:
    from leadline.observe.mounts.fuse_client import find_client, with_its_own_word

    if mount.file_system == "ceph":
        conf = mount.option("conf")
        why = why_not_file(conf) if conf else ""
        access = CephAccess(
            name=f"client.{mount.option('name') or 'guest'}",
            conf=None if why else conf,
            kernel_client=found.get("kernel_client"),
            distrusted=printable(f"the mount names {conf}, and {why}") if why else None,
        )
    else:
        access = with_its_own_word(find_client(mount))
    access = replace(
        access,
        pool=found.get("pool"),
        namespace=found.get("namespace"),
        layout=found.get("layout") or None,
        quota_bytes=found.get("quota_bytes"),
        quota_files=found.get("quota_files"),
        snapshots=found.get("snapshots"),
    )
    return protection(access)
