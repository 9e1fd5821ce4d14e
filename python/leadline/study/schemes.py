"""What is known of schemes, engines and the ways to targets: the engine's own table, read once.

Nothing else in the package knows a scheme by its name. What the kernel mounts has no line in that table: its
ways are listed here.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

from leadline import _core
from leadline.yamlio.fields import AUTO

Storage = Literal["none", "mount", "server", "cluster"]


@dataclass(frozen=True)
class Engine:
    """One way to call the system or a library."""

    name: str
    words: str
    blocking: bool
    moves_data: bool
    direct: bool
    submission_thread: bool


@dataclass(frozen=True)
class SchemeOption:
    """One option of a scheme's URLs."""

    name: str
    kind: str
    default: str
    words: str


@dataclass(frozen=True)
class Reaches:
    """What of a cluster a scheme's URLs lead to: `what` is `pool` or `file_system`."""

    what: str
    erasure: bool
    namespaces: bool


@dataclass(frozen=True)
class ThirdParty:
    """How two servers are told to copy a file between them: programs with their words, and what servers need.

    The URLs of the file and of the copy follow `copy`; `{server}` and `{path}` in `size` stand for a file's.
    """

    copy: tuple[str, ...]
    size: tuple[str, ...]
    package: str
    needs: str


@dataclass(frozen=True)
class Scheme:
    """What stands before `://`, or `file`. With `url`, a library reaches what the rest of the URL names."""

    name: str
    url: bool
    example: str
    words: str
    package: str
    storage: Storage
    keeps: str
    syncs: bool
    whole_objects: bool
    operations: tuple[str, ...]
    choices: tuple[SchemeOption, ...]
    engines: tuple[Engine, ...]
    ack_means: str
    ack_means_direct: str | None
    reaches: Reaches | None
    third_party: ThirdParty | None


# Caches of this host, as chains of bytes name them.
PAGE_CACHE, CLIENT_CACHE = "page_cache", "client_cache"


@dataclass(frozen=True)
class Access:
    """A way to a target: an engine of its own, or a file system that the kernel mounts (`scheme` is None).

    `storage` is where the data lie: `none`, `mount` (a file system of this host), `server` or `cluster`.
    `caches` are those of this host that can answer, nearest first, unless I/O asks to pass them: the kernel
    keeps pages of what it mounts, and nothing of what a library reaches.
    """

    name: str
    storage: Storage
    caches: tuple[str, ...] = (PAGE_CACHE,)
    keeps: str = "files"
    syncs: bool = True
    scheme: Scheme | None = None


# What the kernel mounts, in the words of its own file systems; all others are this host's.
LOCAL = Access("local", "mount")
MOUNTED_NFS = Access("nfs", "server")
MOUNTED_SMB = Access("smb", "server")
CEPH_FUSE = Access("ceph-fuse", "cluster", (PAGE_CACHE, CLIENT_CACHE))
CEPH_KERNEL = Access("ceph-kernel", "cluster")
OF_FILE_SYSTEM: Mapping[str, Access] = {
    "ceph": CEPH_KERNEL,
    "fuse.ceph": CEPH_FUSE,
    "fuse.ceph-fuse": CEPH_FUSE,
    "nfs": MOUNTED_NFS,
    "nfs4": MOUNTED_NFS,
    "cifs": MOUNTED_SMB,
    "smb3": MOUNTED_SMB,
}


@functools.cache
def table() -> tuple[Scheme, ...]:
    """All schemes, in the engine's order."""
    return tuple(_scheme(row) for row in _core.schemes())


def _scheme(row: Mapping[str, Any]) -> Scheme:
    storage: Storage = row["storage"]
    if storage not in get_args(Storage):
        raise ValueError(f"the engine's table has a storage {storage!r}, which this version does not know")
    return Scheme(
        name=row["name"],
        url=row["url"],
        example=row["example"],
        words=row["words"],
        package=row["package"],
        storage=storage,
        keeps=row["keeps"],
        syncs=row["syncs"],
        whole_objects=row["whole_objects"],
        operations=tuple(row["operations"]),
        choices=tuple(SchemeOption(**choice) for choice in row["choices"]),
        engines=tuple(_engine(engine) for engine in row["engines"]),
        ack_means=row["ack_means"],
        ack_means_direct=row["ack_means_direct"],
        reaches=None if row["reaches"] is None else Reaches(**row["reaches"]),
        third_party=_third_party(row["third_party"]),
    )


def _third_party(row: Mapping[str, Any] | None) -> ThirdParty | None:
    if row is None:
        return None
    return ThirdParty(tuple(row["copy"]), tuple(row["size"]), row["package"], row["needs"])


def _engine(row: Mapping[str, Any]) -> Engine:
    return Engine(**{key: value for key, value in row.items() if key != "memory"})


def located() -> tuple[Scheme, ...]:
    """The schemes whose URLs lead to storage."""
    return tuple(scheme for scheme in table() if scheme.url)


@functools.cache
def storageless() -> Scheme:
    """The scheme without storage, which measures leadline itself."""
    return next(scheme for scheme in table() if scheme.storage == "none")


@functools.cache
def _of_paths() -> tuple[Engine, ...]:
    return next(scheme.engines for scheme in table() if scheme.storage == "mount")


@functools.cache
def ring_engine() -> str:
    """The engine on paths that keeps several operations in flight."""
    return next(engine.name for engine in _of_paths() if not engine.blocking)


@functools.cache
def plain_engine() -> str:
    """The engine on paths that does one call of the system at a time."""
    return next(engine.name for engine in _of_paths() if engine.blocking)


def engine_names() -> tuple[str, ...]:
    """All engines, in the table's order."""
    return tuple(engine.name for scheme in table() for engine in scheme.engines)


def chosen_names() -> tuple[str, ...]:
    """The engines that a work may name: those on paths, and the one without storage."""
    return tuple(engine.name for engine in (*_of_paths(), *storageless().engines))


@functools.cache
def engine(name: str) -> Engine:
    """The engine of that name. KeyError for any other."""
    for scheme in table():
        for one in scheme.engines:
            if one.name == name:
                return one
    raise KeyError(name)


def ack_means(engine_name: str, *, direct: bool) -> str:
    """Where a write is that the engine's library acknowledged; with direct I/O it may be elsewhere."""
    scheme = next(one for one in table() if engine_name in {own.name for own in one.engines})
    return (scheme.ack_means_direct if direct else None) or scheme.ack_means


def uses_storage(engine_name: str | None) -> bool:
    """False for the engine whose buffers never meet storage, and where there is none."""
    return engine_name is not None and engine_name not in {one.name for one in storageless().engines}


def scheme_of(url: str) -> Scheme | None:
    """The scheme whose storage the URL names; None for paths and for no storage."""
    name, separator, _ = url.partition("://")
    return next((scheme for scheme in located() if separator and scheme.name == name), None)


@functools.cache
def _accesses() -> Mapping[str, Access]:
    by_kernel = (LOCAL, MOUNTED_NFS, MOUNTED_SMB, CEPH_FUSE, CEPH_KERNEL)
    by_library = (
        Access(one.name, scheme.storage, _caches_of(scheme), scheme.keeps, scheme.syncs, scheme)
        for scheme in table()
        if scheme.storage != "mount"
        for one in scheme.engines
    )
    return {access.name: access for access in (*by_kernel, *by_library)}


def _caches_of(scheme: Scheme) -> tuple[str, ...]:
    """A client of a cluster's file system caches objects itself; clients of pools and of servers do not."""
    own = scheme.reaches is not None and scheme.reaches.what == "file_system"
    return (CLIENT_CACHE,) if own else ()


def accesses() -> tuple[Access, ...]:
    """Every way to a target's files."""
    return tuple(_accesses().values())


def access(name: str) -> Access:
    """What is known of a way to a target; one that only another version knows leads to some server."""
    return _accesses().get(name) or Access(name, "server")


if TYPE_CHECKING:
    EngineName = str
    ChosenEngine = str
else:  # the words are the table's; whatever is none of them is refused
    EngineName = Literal[engine_names()]
    ChosenEngine = Literal[(AUTO, *chosen_names())]
