"""What a target is: the name and address a user gave, and the facts found out about it.

Facts are found by `observe.mounts`; this file only says what there is to know.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

Access = Literal[
    "local",
    "ceph-fuse",
    "ceph-kernel",
    "libcephfs",
    "nfs",
    "libnfs",
    "smb",
    "libsmbclient",
    "xrootd",
    "radosstriper",
    "rados",
    "s3",
    "null",
]


@dataclass(frozen=True)
class Target:
    """Where I/O goes: `url` is a path, `null://`, or one that an engine of its own reaches."""

    name: str
    url: str

    @property
    def is_path(self) -> bool:
        """True for a directory of a mounted file system."""
        return "://" not in self.url

    @property
    def location(self) -> str | None:
        """The URL where a library reaches the storage; None for a path and for no storage."""
        return None if self.is_path or self.url == "null://" else self.url


@dataclass(frozen=True)
class CephAccess:
    """How to ask the cluster behind a target, and what the target's files are made of.

    `conf`, `name` and `keyring` are what the client uses (None: Ceph's own defaults).
    `protection` is `replicated` with `size`, or `erasure` with `k` and `m`. `lab` is true for a
    disposable cluster that `leadline lab` started on this host. A quota of 0 is none, None is not known.
    `settings` are options that the client's process has in force. `kernel_client` is the kernel's client as
    debugfs names it, FSID.clientN.
    """

    conf: str | None = None
    name: str | None = None
    keyring: str | None = None
    client_pid: int | None = None
    client_socket: str | None = None
    pool: str | None = None
    layout: dict[str, int] | None = None
    protection: str | None = None
    size: int | None = None
    k: int | None = None
    m: int | None = None
    lab: bool = False
    client_version: str | None = None
    namespace: str | None = None
    quota_bytes: int | None = None
    quota_files: int | None = None
    snapshots: int | None = None
    settings: dict[str, str] | None = None
    kernel_client: str | None = None


@dataclass(frozen=True)
class TargetFacts:
    """What was found out about a target before anything is run. Sizes are bytes.

    `device` is the block device's name under /sys/class/block, None where there is none or several.
    `words` says it in one phrase: "ext4 on vda", "CephFS through ceph-fuse, pool data (3 replicas)".
    """

    access: Access
    file_system: str
    words: str
    mount_point: str | None = None
    source: str | None = None
    options: tuple[str, ...] = ()
    device: str | None = None
    in_memory: bool = False
    direct_io: bool = False
    direct_alignment_bytes: int = 4096
    total_bytes: int | None = None
    free_bytes: int | None = None
    ceph: CephAccess | None = None

    def as_json(self) -> dict[str, Any]:
        """Plain values for the manifest."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> TargetFacts:
        """The inverse of `as_json`; unknown keys of a newer minor version are dropped."""
        known = {name: value[name] for name in cls.__dataclass_fields__ if name in value}
        known["options"] = tuple(known.get("options") or ())
        if known.get("ceph"):
            fields = CephAccess.__dataclass_fields__
            known["ceph"] = CephAccess(**{k: v for k, v in known["ceph"].items() if k in fields})
        return cls(**known)
