"""What a setting is, as data: the rows of `table/`, one file a layer, and of a user's own file.

Touches no system: how a setting is read and written is `access/`, by the `SettingAccess` that its row names.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any, Literal

from leadline.errors import SpecError
from leadline.written.yaml_source import read_yaml

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
# These may not be taken without a flag of their own.
GRAVE: frozenset[PriceKind] = frozenset({"security", "integrity", "durability"})
Direction = Literal["up", "down"]


@dataclass(frozen=True)
class SettingAccess:
    """How a value is read, set and put back: `kind` names a reader in `access/`, `options` are its words.

    `sysctl` key; `sysfs` path with {device} or {interface}; `ethtool` group, name; `ceph_config` who, option;
    `ceph_pool` option; `ceph_fs` option; `ceph_flag` flag; `fuse` option (of a ceph-fuse mount); `mount`
    option (of the kernel's mounts); `xattr` name (of a directory); `cmdline` parameter; `by_hand` words.
    """

    kind: str
    options: Mapping[str, str]


@dataclass(frozen=True)
class Price:
    """What a setting takes for what it gives, in a phrase."""

    kind: PriceKind
    words: str


@dataclass(frozen=True)
class SettingValidity:
    """Where a setting holds, is obsolete or refused: of a version of `of`, `since` to before `until`.

    `state` is a condition that is asked on top of that, by its name in `states.py`; "" is none.
    """

    of: str
    since: str
    until: str
    words: str
    state: str = ""
    source: str = ""


@dataclass(frozen=True)
class Movement:
    """The counter that a setting must move if it works as meant: a figure of a trial, and which way."""

    figure: str
    direction: Direction


@dataclass(frozen=True)
class Advice:
    """A value that somebody recommends: for which roles and kinds of work, and why; `by` is the source."""

    value: str
    by: str
    words: str
    roles: tuple[Role, ...] = ()
    works: tuple[str, ...] = ()
    holds: bool = True  # False: it was advice once, and is not ours


@dataclass(frozen=True)
class Setting:
    """One setting. `default` is upstream's, in words where releases differ; ranges are in `unit`.

    `serves` names causes of `diagnose` that it can mend, `moves` what proves that it did by its mechanism.
    `excludes` are settings that cannot be changed together with it.
    """

    name: str
    title: str
    layer: Layer
    roles: tuple[Role, ...]
    access: SettingAccess
    means: str
    unit: str
    default: str
    needs: Needs
    persist: str
    sources: tuple[str, ...]
    one_of: tuple[str, ...] | None = None
    at_least: float | None = None
    at_most: float | None = None
    prices: tuple[Price, ...] = ()
    valid: tuple[SettingValidity, ...] = ()
    obsolete: tuple[SettingValidity, ...] = ()
    refused: tuple[SettingValidity, ...] = ()
    irreversible: str = ""
    excludes: tuple[str, ...] = ()
    moves: tuple[Movement, ...] = ()
    serves: tuple[str, ...] = ()
    advice: tuple[Advice, ...] = ()

    @property
    def grave(self) -> tuple[Price, ...]:
        """The prices that need a flag of their own: integrity, durability, security."""
        return tuple(price for price in self.prices if price.kind in GRAVE)


@functools.cache
def settings() -> Mapping[str, Setting]:
    """Every setting of the table, by its name; a test holds the table."""
    found: dict[str, Setting] = {}
    folder = resources.files("leadline") / "tuning" / "table"
    for place in sorted(folder.iterdir(), key=lambda one: one.name):
        if place.name.endswith(".yaml"):
            found.update(read_settings(place.read_text(encoding="utf-8"), place.name))
    return found


def read_settings(text: str, source: str) -> Iterator[tuple[str, Setting]]:
    """The settings of one file, `LAYER.yaml` or with a `layer` in each row. Raises SpecError."""
    written = read_yaml(text, source, {})
    if not isinstance(written.value, dict):
        raise SpecError(
            "no settings: it must be names with what they are", "see docs/tuning.md", source=source
        )
    layer = source.rpartition("/")[2].removesuffix(".yaml").partition("-")[0]
    for name, value in written.value.items():
        yield name, _setting(name, layer, value)


def _setting(name: str, layer: str, value: Mapping[str, Any]) -> Setting:
    access = dict(value["access"])
    return Setting(
        name=name,
        title=value["title"],
        layer=value.get("layer", layer),
        roles=tuple(value["roles"]),
        access=SettingAccess(access.pop("kind"), {key: str(word) for key, word in access.items()}),
        means=value["means"],
        unit=value["unit"],
        default=str(value["default"]),
        needs=value["needs"],
        persist=value["persist"],
        sources=tuple(value["sources"]),
        one_of=None if value.get("one_of") is None else tuple(str(one) for one in value["one_of"]),
        at_least=value.get("at_least"),
        at_most=value.get("at_most"),
        prices=tuple(Price(**one) for one in value.get("prices", ())),
        valid=_validities(value.get("valid", ())),
        obsolete=_validities(value.get("obsolete", ())),
        refused=_validities(value.get("refused", ())),
        irreversible=value.get("irreversible", ""),
        excludes=tuple(value.get("excludes", ())),
        moves=tuple(Movement(**one) for one in value.get("moves", ())),
        serves=tuple(value.get("serves", ())),
        advice=tuple(_advice(one) for one in value.get("advice", ())),
    )


def _validities(values: Any) -> tuple[SettingValidity, ...]:
    return tuple(
        SettingValidity(
            one["of"],
            str(one.get("since", "")),
            str(one.get("until", "")),
            one["words"],
            one.get("state", ""),
            one.get("source", ""),
        )
        for one in values
    )


def _advice(one: Mapping[str, Any]) -> Advice:
    return Advice(
        str(one["value"]),
        one["by"],
        one["words"],
        tuple(one.get("roles", ())),
        tuple(one.get("works", ())),
        bool(one.get("holds", True)),
    )
