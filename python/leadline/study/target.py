"""What a target is: the name and address a user gave, the facts found out about it, and what is left out.

`NAME=PATH` or `NAME=URL` becomes a Target here; facts are found by `observe.mounts`.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from leadline import _core
from leadline.errors import SpecError
from leadline.study import schemes
from leadline.study.yaml_source import suggest

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")
_POOL = re.compile(r"[^\s/\0=]{1,128}")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://(.*)", re.DOTALL)
_EXAMPLE = "write NAME=PATH, for example --target local=/var/tmp, or NAME=rados://POOL, or NAME=null://"


def parse_target(text: str) -> Target:
    """The target of one `--target NAME=PATH|URL`. Raises SpecError."""
    name, equals, url = text.partition("=")
    _check_text(text)
    source = f"--target {_shown(text)}"
    if not equals:
        raise SpecError("the name is missing", _EXAMPLE, source=source)
    try:
        return Target(check_name(name), check_url(url))
    except SpecError as error:
        raise SpecError(error.message, error.remedy, source=source) from None


def _check_text(text: str) -> None:
    """A path goes to the engine in UTF-8: there it must be the same name. Raises SpecError."""
    try:
        same = text.encode() == os.fsencode(text)
    except UnicodeEncodeError:
        same = False
    if not same:
        raise SpecError(
            "the engine takes paths in UTF-8, and this one is not",
            "Name the directory by a link in UTF-8 (ln -s), in a locale of UTF-8: LC_ALL=C.UTF-8",
            source=f"--target {text}",
        )


def _shown(text: str) -> str:
    """What was given, without a password; also where a slash of a URL is lacking."""
    meant = re.sub(r"(?<==)([A-Za-z][A-Za-z0-9+.-]*):/+", r"\1://", text, count=1)
    shown = _core.without_password(meant)
    return text if shown == meant else shown


def parse_targets(texts: Iterable[str]) -> dict[str, Target]:
    """Targets by name, in the order given. Raises SpecError where a name is given twice."""
    found: dict[str, Target] = {}
    for text in texts:
        target = parse_target(text)
        if target.name in found:
            raise SpecError(
                f"the name {target.name} is given twice",
                "give each target a name of its own",
                source=f"--target {_shown(text)}",
            )
        found[target.name] = target
    return found


def parse_layouts(texts: Iterable[str]) -> dict[str, str]:
    """The pool of each `--layout TARGET=POOL`, by target. Raises SpecError."""
    found: dict[str, str] = {}
    for text in texts:
        name, equals, pool = text.partition("=")
        source = f"--layout {text}"
        if not equals:
            raise SpecError("the pool is missing", "write TARGET=POOL, as in --layout ec=POOL", source=source)
        if name in found:
            raise SpecError(
                f"target {name} is given two pools",
                "give one of them to another target, which may have the same path",
                source=source,
            )
        try:
            found[check_name(name)] = check_pool(pool)
        except SpecError as error:
            raise SpecError(error.message, error.remedy, source=source) from None
    return found


def with_layouts(targets: Mapping[str, Target], pools: Mapping[str, str]) -> dict[str, Target]:
    """The targets, some with the pool that their files are to be kept in. Raises SpecError."""
    for name, pool in pools.items():
        if name not in targets:
            raise SpecError(
                f"{name!r} is no target of this run",
                suggest(name, targets),
                source=f"--layout {name}={pool}",
            )
    return {name: replace(one, pool=pools.get(name, one.pool)) for name, one in targets.items()}


def check_pool(pool: object) -> str:
    """The name itself, where a pool may be called so. Raises SpecError."""
    if not isinstance(pool, str) or not _POOL.fullmatch(pool):
        raise SpecError(f"{pool!r} is no name of a pool", "the names of a cluster's pools: ceph osd pool ls")
    return pool


def check_name(name: str) -> str:
    """The name itself, where it may name a target. Raises SpecError."""
    if not _NAME.fullmatch(name):
        raise SpecError(
            f"{name!r} is no name of a target",
            "names have up to 40 of a-z, 0-9, _ and -, and begin with a letter or digit",
        )
    return name


def check_url(url: object) -> str:
    """An absolute path, or a URL that an engine knows. Raises SpecError for any other."""
    if not isinstance(url, str) or not url.strip() or "\0" in url:
        raise SpecError(f"{url!r} is neither a path nor a URL", _EXAMPLE)
    match = _SCHEME.fullmatch(url)
    if match is None:
        _refuse_a_slash_too_few(url)
        return os.path.normpath(Path(url).expanduser().absolute())
    scheme, rest = match[1].lower(), match[2]
    nowhere = schemes.storageless()
    if scheme == nowhere.name:
        if rest:
            raise SpecError(f"{scheme}:// takes nothing after it, not {rest!r}", f"write {nowhere.example}")
        return nowhere.example
    known = [found.name for found in schemes.located()]
    if scheme in known:
        try:
            return str(_core.parse_location(f"{scheme}://{rest}")["url"])
        except ValueError as error:
            raise SpecError(str(error), f"its options: leadline engines {scheme}") from None
    if _core.without_password(url) != url:
        raise SpecError(
            "a password has no place in a URL", f"leave it out, and use one of: {', '.join(known)}"
        )
    near = difflib.get_close_matches(scheme, (nowhere.name, *known), n=1)
    hint = f"did you mean {near[0]}://? " if near else ""
    names = ", ".join(f"{name}://" for name in (*known, nowhere.name))
    raise SpecError(
        f"{scheme}:// is no scheme that leadline knows",
        f"{hint}give the path of a directory, or one of: {names}",
    )


def _refuse_a_slash_too_few(url: str) -> None:
    """What was meant as a URL is no path: it may hold a password, which messages about paths would repeat."""
    name, colon, rest = url.partition(":")
    if colon and rest.startswith("/") and name.lower() in [found.name for found in schemes.located()]:
        raise SpecError(f"{name}:/… is no URL", f"write {name.lower()}://, or ./{name}:… for a path")


@dataclass(frozen=True)
class LeftOut:
    """A work that a target cannot do, or with `work` None a target that is not there at all."""

    target: str
    work: str | None
    reason: str
    url: str = ""


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
