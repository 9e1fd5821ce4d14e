"""What a target is: the name and address a user gave, and the facts found out about it.

Facts are found by `observe.mounts`; this file only says what there is to know.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from leadline.study import schemes


@dataclass(frozen=True)
class Target:
    """Where I/O goes: `url` is a path, `null://`, or one that an engine of its own reaches.

    Targets with the same `shares` lead to the same files, those with another to others; None is not known.
    With a `pool` the study's own directory there keeps the data of its files in that pool of the cluster.
    With a `state` it is one of several states of the same place, in which settings differ: these work on the
    same files, those of the target `files`, so that where they lie cannot differ between states.
    """

    name: str
    url: str
    shares: str | None = None
    pool: str | None = None
    state: str | None = None
    files: str | None = None

    @property
    def owner(self) -> str:
        """Whose name its laid out files begin with."""
        return self.files or self.name

    def may_share(self, other: Target) -> bool:
        """False where it is known that the two lead to different files."""
        if self.pool != other.pool:
            return False  # each works in a directory of its own
        return None in (self.shares, other.shares) or self.shares == other.shares

    @property
    def is_path(self) -> bool:
        """True for a directory of a mounted file system."""
        return "://" not in self.url

    @property
    def location(self) -> str | None:
        """The URL where a library reaches the storage; None for a path and for no storage."""
        return None if schemes.scheme_of(self.url) is None else self.url


@dataclass(frozen=True)
class CephAccess:
    """How to ask the cluster behind a target, and what the target's files are made of.

    `conf`, `name` and `keyring` are what the client uses (None: Ceph's own defaults).
    `protection` is `replicated` with `size`, or `erasure` with `k` and `m`, each part in another
    `failure_domain` (osd, host …). `groups` are the placement groups of its pool. `lab` is true for a
    disposable cluster that `leadline lab` started on this host. A quota of 0 is none, None is not known.
    `settings` are options that the client's process has in force. `kernel_client` is the kernel's client as
    debugfs names it, FSID.clientN. `distrusted` says why what the client says of its cluster is not used,
    and the cluster not asked.
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
    failure_domain: str | None = None
    groups: int | None = None
    lab: bool = False
    client_version: str | None = None
    namespace: str | None = None
    quota_bytes: int | None = None
    quota_files: int | None = None
    snapshots: int | None = None
    settings: dict[str, str] | None = None
    kernel_client: str | None = None
    distrusted: str | None = None

    @property
    def protection_words(self) -> str | None:
        """`3x` for three replicas, `EC 2+1` for erasure coding; None where it is not known."""
        if self.protection == "replicated" and self.size is not None:
            return f"{self.size}x"
        if self.protection == "erasure" and self.k is not None and self.m is not None:
            return f"EC {self.k}+{self.m}"
        return None


@dataclass(frozen=True)
class ServerAccess:
    """The server that stands between this host and a target's storage, as far as it is known.

    `here` is true where it runs on this host; `port` is where it listens. `memory_bytes` is what it could
    keep of a data set; None is not known.
    """

    here: bool = False
    port: int | None = None
    memory_bytes: int | None = None


@dataclass(frozen=True)
class TargetFacts:
    """What was found out about a target before anything is run. Sizes are bytes.

    `device` is the block device's name under /sys/class/block, None where there is none or several.
    `server` stands before the storage; with it, `ceph` is the cluster behind that server, where it is known.
    `words` says it in one phrase: "ext4 on vda", "CephFS through ceph-fuse, pool data (3 replicas)".
    """

    access: str
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
    server: ServerAccess | None = None

    @property
    def has_storage(self) -> bool:
        """False where nothing is stored, and leadline measures itself."""
        return schemes.access(self.access).storage != "none"

    @property
    def is_local(self) -> bool:
        """True for a file system of this host."""
        return schemes.access(self.access).storage == "mount"

    @property
    def is_remote(self) -> bool:
        """True where the data lie on other hosts, as far as this one knows."""
        return self.has_storage and not self.is_local

    @property
    def on_cluster(self) -> bool:
        """True where the data lie on a Ceph cluster, and its daemons serve them."""
        return schemes.access(self.access).storage == "cluster"

    @property
    def host_caches(self) -> tuple[str, ...]:
        """The caches of this host that can answer for it, nearest first, unless I/O asks to pass them."""
        return schemes.access(self.access).caches

    @property
    def behind_server(self) -> bool:
        """True where a server that is no part of a cluster answers, and may answer from its memory."""
        return schemes.access(self.access).storage == "server"

    @property
    def through_ceph_fuse(self) -> bool:
        """True where a ceph-fuse of this host may be on the way to its data."""
        return self.access == schemes.CEPH_FUSE.name or (self.server is not None and self.server.here)

    @property
    def own_engine(self) -> str | None:
        """The engine that this target needs; None for a path, which several can use."""
        scheme = schemes.access(self.access).scheme
        return None if scheme is None else scheme.engines[0].name

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
        if known.get("server"):
            parts = ServerAccess.__dataclass_fields__
            known["server"] = ServerAccess(**{k: v for k, v in known["server"].items() if k in parts})
        return cls(**known)
