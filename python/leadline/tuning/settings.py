"""What a setting is, and a change of it, as values: the rows of `table/`, one file a layer, and of a user.

Touches no system: how a setting is read and written is `access/`, by the `SettingAccess` that its row names.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from importlib import resources
from pathlib import Path
from typing import Any, Literal, get_args

from leadline.errors import SpecError


@dataclass(frozen=True)
class SettingPlace:
    """Where a setting has a value of its own.

    `host` is "" for this host or `lab:NAME/MEMBER`; `cluster` is the fsid of a Ceph cluster, "" where it is
    none's; `subject` is a device, interface, daemon, pool, file system, mount point or directory, "" where
    the host or cluster has one value for all.
    """

    subject: str = ""
    host: str = ""
    cluster: str = ""

    @property
    def words(self) -> str:
        """As a person names it."""
        return (
            " on ".join(
                part for part in (self.subject, self.host or (self.cluster and "the cluster")) if part
            )
            or "this host"
        )


@dataclass(frozen=True)
class SettingChange:
    """One value of one setting at one place. `before` None: not set there, a default was in force."""

    setting: str
    place: SettingPlace
    value: str
    before: str | None = None

    def as_json(self) -> dict[str, Any]:
        """Plain values; `from_json` reads them back."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> SettingChange:
        """The inverse of `as_json`."""
        return cls(value["setting"], SettingPlace(**value["place"]), value["value"], value["before"])


Layer = Literal[
    "firmware",
    "boot",
    "sysctl",
    "block",
    "nic",
    "file_system",
    "mount",
    "mon",
    "osd",
    "mds",
    "client",
    "pool",
    "gateway",
]
Role = Literal["mon", "osd", "mds", "gateway", "client"]
# What has to happen before a changed value is what the system does.
Needs = Literal[
    "live", "reconnect", "reopen", "remount", "restart", "reboot", "new_osd", "new_file", "by_hand"
]
PriceKind = Literal["security", "integrity", "durability", "memory", "power", "availability", "cpu"]
# Where a value stays over a restart: a file of this kind, the cluster itself, or a hand.
Persist = Literal[
    "sysctl", "udev", "grub", "modprobe", "systemd", "link", "fstab", "ceph", "cluster", "by_hand"
]
Unit = Literal[
    "bytes", "KiB", "count", "s", "ms", "us", "share", "hour", "percent", "switch", "word", "IOPS", "bytes/s"
]
Direction = Literal["up", "down"]
When = Literal["always", "cause"]
Rule = Literal["exactly", "at_least", "at_most"]
# These may not be taken without a flag of their own.
GRAVE: frozenset[PriceKind] = frozenset({"security", "integrity", "durability"})
LAYERS: tuple[Layer, ...] = get_args(Layer)
ROLES: tuple[Role, ...] = get_args(Role)

# The documents whose advice is answered; the first word of `Advice.by` names one of them.
DOCUMENTS: Mapping[str, str] = {
    "SUSE": "SUSE, CephFS for Media and Entertainment Workloads (2019), section",
    "Opencast": "CERN, Opencast performance",
    "Ceph": "Ceph's documentation,",
    "Linux": "Linux's documentation,",
}


@dataclass(frozen=True)
class SettingAccess:
    """How a value is read, set and put back: `kind` names a reader in `access/`, `options` are its words.

    `sysctl` key; `sysfs` path with {device} or {interface}; `ethtool` group, name; `ceph_config` who, option;
    `ceph_pool` option; `ceph_fs` option; `ceph_flag` flag; `fuse` option (of a ceph-fuse mount); `mount`
    option (of the kernel's mounts); `xattr` name (of a directory); `cmdline` parameter; `by_hand` words.
    """

    kind: str
    options: Mapping[str, str]


# What each kind of access must be told.
ACCESS_KINDS: Mapping[str, tuple[str, ...]] = {
    "sysctl": ("key",),
    "sysfs": ("path",),
    "ethtool": ("group", "name"),
    "ceph_config": ("who", "option"),
    "ceph_pool": ("option",),
    "ceph_fs": ("option",),
    "ceph_flag": ("flag",),
    "fuse": ("option",),
    "mount": ("option",),
    "xattr": ("name",),
    "cmdline": ("parameter",),
    "by_hand": ("words",),
}


@dataclass(frozen=True)
class Price:
    """What a setting takes for what it gives, in a phrase."""

    kind: PriceKind
    words: str


@dataclass(frozen=True)
class SettingValidity:
    """Where a setting holds, is obsolete or refused: of a version of `of`, `since` to before `until`.

    `state` is a condition that is asked on top of that, by its name in `STATES`; "" is none.
    """

    of: Literal["kernel", "ceph"]
    since: str
    until: str
    words: str
    state: str = ""
    source: str = ""


# Conditions that a version does not tell.
STATES: Mapping[str, str] = {
    "used_pool": "the pool has objects",
    "erasure": "the pool is erasure-coded",
    "replicated": "the pool keeps copies",
    "used_osd": "the OSD exists already",
    "mclock": "the OSDs' scheduler is mClock",
    "builtin_profile": "the scheduler is mClock, and its profile is not custom",
    "odd_chunks": "the pool's chunks are not multiples of 4 KiB",
}


@dataclass(frozen=True)
class FormerDefault:
    """The default before version `until` of the kernel or of Ceph, whichever the setting is of."""

    until: str
    value: str


@dataclass(frozen=True)
class Danger:
    """Values that are dangerous where they are in force: one of these, or beyond a bound.

    With `since` and `until` only on these versions of what the setting is of. `shared` names the fact of
    knowledge/shared.yaml whose bounds these are.
    """

    words: str
    one_of: tuple[str, ...] = ()
    below: float | None = None
    above: float | None = None
    since: str = ""
    until: str = ""
    shared: str = ""


@dataclass(frozen=True)
class Movement:
    """The counter that a setting must move if it works as meant: a figure of a trial, and which way."""

    figure: str
    direction: Direction


@dataclass(frozen=True)
class Advice:
    """A value that somebody recommends: for which roles and kinds of work, and why; `by` is the source.

    `times` instead of `value`: so many times what is in force. It is recommended `when` a cause that the
    setting serves is named, or always; a number only where what is in force is not already as good by its
    `rule`. `holds` false: it was advice once, and is not ours. `shared` names its
    fact of knowledge/shared.yaml, and `good` are values that are as good as the one that it is put to.
    """

    value: str
    by: str
    words: str
    roles: tuple[Role, ...] = ()
    works: tuple[str, ...] = ()
    holds: bool = True
    when: When = "cause"
    times: float | None = None
    rule: Rule = "exactly"
    shared: str = ""
    good: tuple[str, ...] = ()


@dataclass(frozen=True)
class Setting:
    """One setting. `default` is upstream's newest, `was` the older ones; ranges are in `unit`.

    `serves` names causes of `diagnose` that it can mend, `moves` what proves that it did by its mechanism.
    `excludes` are settings that cannot be changed together with it. `parts`: so many numbers in one value.
    `built_in` is false of what a user's own file adds.
    """

    name: str
    title: str
    layer: Layer
    roles: tuple[Role, ...]
    access: SettingAccess
    means: str
    unit: Unit
    default: str
    needs: Needs
    persist: Persist
    sources: tuple[str, ...]
    one_of: tuple[str, ...] | None = None
    at_least: float | None = None
    at_most: float | None = None
    parts: int = 1
    was: tuple[FormerDefault, ...] = ()
    prices: tuple[Price, ...] = ()
    valid: tuple[SettingValidity, ...] = ()
    obsolete: tuple[SettingValidity, ...] = ()
    refused: tuple[SettingValidity, ...] = ()
    danger: tuple[Danger, ...] = ()
    irreversible: str = ""
    excludes: tuple[str, ...] = ()
    moves: tuple[Movement, ...] = ()
    serves: tuple[str, ...] = ()
    advice: tuple[Advice, ...] = ()
    built_in: bool = True

    @property
    def grave(self) -> tuple[Price, ...]:
        """The prices that need a flag of their own: integrity, durability, security."""
        return tuple(price for price in self.prices if price.kind in GRAVE)

    @property
    def of(self) -> Literal["kernel", "ceph"]:
        """Whose version its defaults and validity are about."""
        return "ceph" if self.of_cluster or self.access.kind == "fuse" else "kernel"

    @property
    def of_cluster(self) -> bool:
        """Whether it is asked of the cluster, and of no host."""
        return self.access.kind.startswith("ceph_")


@functools.cache
def settings() -> Mapping[str, Setting]:
    """Every setting of the table, by its name, layer by layer; a test holds the table."""
    from leadline.tuning.rows import read_rows

    found: dict[str, Setting] = {}
    folder = resources.files("leadline") / "tuning" / "table"
    for layer in LAYERS:
        text = (folder / f"{layer}.yaml").read_text(encoding="utf-8")
        found.update((one.name, one) for one in read_rows(text, f"{layer}.yaml", layer))
    return found


def read_settings(text: str, source: str) -> Iterator[tuple[str, Setting]]:
    """The settings of one text; a `layer` stands in each row. Raises SpecError with line and key."""
    from leadline.tuning.rows import read_rows

    for one in read_rows(text, source, None):
        yield one.name, one


def settings_with(own: Path | None) -> Mapping[str, Setting]:
    """The table, and the entries of a user's own file. Raises SpecError, with file and line."""
    return settings() if own is None else settings_and(own_text(own), str(own))


def own_text(own: Path) -> str:
    """What a user's own file says. Raises SpecError."""
    from leadline.foreign import read_plain, reading
    from leadline.tuning.rows import BYTES_MAX

    with reading(own, "give a YAML file of settings; docs/tuning.md describes it"):
        return read_plain(own, BYTES_MAX).decode("utf-8", "replace")


def settings_and(text: str, source: str) -> Mapping[str, Setting]:
    """The table, and the entries of this text. Raises SpecError, with `source` and line."""
    from leadline.tuning.rows import read_rows

    found = dict(settings())
    for one in read_rows(text, source, None):
        if one.name in found:
            raise SpecError(
                "a setting of this name is built in", "give yours another name", source=source, key=one.name
            )
        found[one.name] = one
    return found
