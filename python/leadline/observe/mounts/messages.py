"""Says in one phrase what a target lies on: client and version, pool, quota, options. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence

from leadline import units
from leadline.observe.host.devices import backing_file
from leadline.observe.mounts.locations import pool_words
from leadline.observe.mounts.mountinfo import Mount
from leadline.study.schemes import MOUNTED_NFS, MOUNTED_SMB
from leadline.study.target import CephAccess, TargetFacts
from leadline.units import printable

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
        limits.append(f"{ceph.quota_files:,} files")
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
    file = backing_file(facts.device)
    return f"{printable(name)} on {facts.device}" + (f" (loop device on {printable(file)})" if file else "")
