"""Finds out what a target is before anything is run on it: `inspect`, and one phrase that says it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from leadline import _core, units
from leadline.errors import TargetError
from leadline.observe import machine
from leadline.observe.hang_guard import ChildAnswer, ask_child, in_fork
from leadline.observe.host.host import patient_s
from leadline.observe.mounts.mountinfo import (
    Mount,
    backing_file,
    device_of_mount,
    mount_by_id,
    mount_of,
    read_mounts,
)
from leadline.observe.probe import probe_path
from leadline.study import schemes
from leadline.study.schemes import MOUNTED_NFS, MOUNTED_SMB
from leadline.study.target import CephAccess, TargetFacts
from leadline.trusted import why_not_file
from leadline.units import format_count, printable

_CLUSTER_DEADLINE_S = 2.0
_CONNECT_DEADLINE_S = 15.0  # the client itself looks for monitors for 10 s, and says so then
_CLUSTER = "See whether the cluster is up, and whether conf= names its monitors."
_SERVER = "See whether the server is up, and whether its name and port are right."
_ALIGNMENT_BYTES = 512


def inspect_location(url: str, deadline_s: float) -> TargetFacts:
    """What a URL leads to: space, pool, how it is protected. Raises TargetError where nobody answers."""
    try:
        found = _core.parse_location(url)
    except ValueError as error:
        raise TargetError(printable(str(error)), "See: leadline engines.") from None
    answer = _ask(found, patient_s(max(deadline_s, _CONNECT_DEADLINE_S)))
    total_bytes, free_bytes = answer["space"] or (None, None)
    address = answer.get("address")
    ceph = _ceph(found, answer.get("pool"))
    return TargetFacts(
        access=found["engine"],
        file_system=found["scheme"],
        words=_words(found, ceph),
        source=url,
        options=() if address is None else (f"addr={address}",),
        direct_io=True,
        direct_alignment_bytes=_ALIGNMENT_BYTES,
        total_bytes=total_bytes,
        free_bytes=free_bytes,
        ceph=ceph,
    )


def _ceph(found: dict[str, Any], pool: str | None) -> CephAccess | None:
    """The cluster behind a URL of Ceph's own schemes; None behind a gateway, which does not say.

    `pool` is what the storage said itself, where the URL names none.
    """
    options = found["options"]
    if "conf" not in options:
        return None
    return protection(
        CephAccess(
            conf=options["conf"] or None,
            name=f"client.{options['user']}",
            keyring=options["keyring"] or None,
            pool=found["container"] or pool,
        )
    )


def _ask(found: dict[str, Any], deadline_s: float) -> dict[str, Any]:
    url, there = found["url"], machine.other()
    if there is not None:
        answer = ChildAnswer(tuple(map(dict, there.ask(url, deadline_s))), None, 0, "")
    else:
        answer = ask_child("leadline.observe.probe", ["volume", url], deadline_s)
    if answer.stuck_pid is not None:
        clustered = schemes.access(found["engine"]).storage == "cluster"
        remedy = _CLUSTER if clustered else _SERVER
        raise TargetError(f"{printable(url)}: no answer within {deadline_s:g} s", remedy)
    facts = answer.lines[-1] if answer.lines else {}
    if "space" in facts:
        return facts
    last = answer.stderr.splitlines()[-1] if answer.stderr else f"exit code {answer.exit_code}"
    why = facts.get("why") or last
    remedy = f"Its options: leadline engines {found['scheme']}."
    raise TargetError(f"{printable(url)}: {printable(why)}", remedy)


def protection(access: CephAccess) -> CephAccess:
    """The same with how its pool is protected, as far as the cluster says."""
    if access.pool is None or access.distrusted or machine.other() is not None:
        return access
    asked = [access.conf or "", access.name or "", access.keyring or "", access.pool]
    # Twice the deadline: the child starts, loads the library, connects and asks.
    answer = ask_child(
        "leadline.observe.probe", ["pool", *asked, str(_CLUSTER_DEADLINE_S)], 2 * _CLUSTER_DEADLINE_S
    )
    known = answer.lines[-1] if answer.lines else {}
    return replace(
        access,
        protection=known.get("protection"),
        size=known.get("size"),
        k=known.get("k"),
        m=known.get("m"),
        failure_domain=known.get("failure_domain"),
        groups=known.get("groups"),
    )


def pool_words(ceph: CephAccess) -> str:
    """The pool and its protection behind a comma; nothing where the pool is not known."""
    if ceph.pool is None:
        return ""
    if ceph.protection == "replicated" and ceph.size is not None:
        how = f" ({ceph.size} replica{'' if ceph.size == 1 else 's'})"
    elif ceph.protection == "erasure" and ceph.k is not None:
        how = f" (erasure-coded {ceph.k}+{ceph.m})"
    else:
        how = ""
    return f", pool {printable(ceph.pool)}{how}"


def _words(found: dict[str, Any], ceph: CephAccess | None) -> str:
    """The scheme's own words: texts, sizes in bytes, and None where the pool belongs."""
    pool = "" if ceph is None else pool_words(ceph)
    return "".join(
        pool if word is None else printable(word) if isinstance(word, str) else units.format_size(word)
        for word in found["words"]
    )


# Options that decide what a client may keep to itself and how much it moves at a time, in this order.
_NFS_OPTIONS = (
    "rsize",
    "wsize",
    "proto",
    "nconnect",
    "sec",
    "actimeo",
    "acregmax",
    "lookupcache",
    "local_lock",
)
_NFS_FLAGS = ("soft", "softerr", "sync", "noac", "nolock")
_SMB_OPTIONS = ("cache", "rsize", "wsize", "actimeo", "acregmax", "multichannel", "max_channels")
_SMB_FLAGS = ("seal", "sign", "nobrl", "noserverino")
_CEPH_OPTIONS = ("rsize", "wsize", "rasize", "caps_max", "ms_mode", "recover_session")
_CEPH_FLAGS = ("wsync", "nowsync", "nodcache", "noasyncreaddir", "norbytes", "nocopyfrom")
_SIZES = ("rsize", "wsize", "rasize")


def words_of(facts: TargetFacts, mount: Mount) -> str:
    """The phrase for a mounted target."""
    if facts.ceph is not None:
        return _ceph_words(facts.ceph, facts.access == "ceph-fuse", mount)
    if facts.access == MOUNTED_NFS.name:
        return _nfs_words(mount)
    if facts.access == MOUNTED_SMB.name:
        version = mount.option("vers")
        name = f"SMB {version}" if version else "SMB"
        return f"{name} from {printable(mount.source)}{_options(mount, _SMB_OPTIONS, _SMB_FLAGS)}"
    if facts.in_memory:
        return f"{mount.file_system}, in memory"
    return _local_words(facts, mount)


def _ceph_words(ceph: CephAccess, fuse: bool, mount: Mount) -> str:
    if fuse:
        client = f"ceph-fuse{'' if ceph.client_version is None else f' {printable(ceph.client_version)}'}"
        options = ""
    else:
        client, options = "the kernel client", _options(mount, _CEPH_OPTIONS, _CEPH_FLAGS)
    doubt = f"; its cluster is not asked: {ceph.distrusted}" if ceph.distrusted else ""
    return f"CephFS through {client}{pool_words(ceph)}{layout_words(ceph)}{options}{doubt}"


def layout_words(ceph: CephAccess) -> str:
    """Namespace, objects, quota and snapshots, each behind a comma, as far as they are known."""
    parts = []
    if ceph.namespace:
        parts.append(f"namespace {printable(ceph.namespace)}")
    layout = ceph.layout or {}
    if layout.get("object_size"):
        count, unit = layout.get("stripe_count", 1), layout.get("stripe_unit", 0)
        objects = f"objects of {units.format_size(layout['object_size'])}"
        parts.append(f"{objects} striped {units.format_size(unit)} x {count}" if count > 1 else objects)
    if ceph.quota_bytes is not None or ceph.quota_files is not None:
        parts.append(_quota(ceph))
    if ceph.snapshots:
        parts.append(f"{ceph.snapshots} snapshot{'' if ceph.snapshots == 1 else 's'}")
    return "".join(f", {part}" for part in parts)


def _quota(ceph: CephAccess) -> str:
    limits = []
    if ceph.quota_bytes:
        limits.append(units.format_size(ceph.quota_bytes))
    if ceph.quota_files:
        limits.append(format_count(ceph.quota_files, "file"))
    return f"quota {' and '.join(limits)}" if limits else "no quota"


def _nfs_words(mount: Mount) -> str:
    version = mount.option("vers") or ("4" if mount.file_system == "nfs4" else None)
    name = f"NFS {version}" if version else "NFS"
    return f"{name} from {printable(mount.source)}{_options(mount, _NFS_OPTIONS, _NFS_FLAGS)}"


def _options(mount: Mount, valued: Sequence[str], flags: Sequence[str]) -> str:
    """The named options that are in force, each behind a comma."""
    parts = []
    for name in valued:
        value = mount.option(name)
        if value is None or (name == "proto" and value == "tcp"):
            continue
        text = units.format_size(int(value)) if name in _SIZES and value.isdigit() else printable(value)
        parts.append(f"{name} {text}")
    parts += [flag for flag in flags if flag in (*mount.super_options, *mount.options)]
    return "".join(f", {part}" for part in parts)


def _local_words(facts: TargetFacts, mount: Mount) -> str:
    name = mount.file_system
    if name == "overlay":
        upper = mount.option("upperdir")
        on = facts.device or "a device not seen from here"
        return f"overlay on {on}" + (f" (upper directory {printable(upper)})" if upper else "")
    if facts.device is None:
        fuse = " (a FUSE file system)" if name.startswith("fuse") else ""
        return f"{printable(name)} from {printable(mount.source)}{fuse}"
    file = backing_file(facts.device, _sys())
    return f"{printable(name)} on {facts.device}" + (f" (loop device on {printable(file)})" if file else "")


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


def _sys() -> Path:
    there = machine.other()
    return Path("/sys") if there is None else there.files / "sys"


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
    there = machine.other()
    if there is not None:
        return dict(there.ask(path, deadline_s)[-1])
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
    device = device_of_mount(mount, mounts, _sys())
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

    if machine.other() is not None:
        access = CephAccess(
            name=f"client.{mount.option('name')}" if mount.option("name") else None,
            kernel_client=found.get("kernel_client"),
            distrusted="the host has only leadline's agent",
        )
    elif mount.file_system == "ceph":
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
