"""What is delivered of which settings and with which evidence, and which formats can carry a setting."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from leadline.mounting.plan import NewMount
from leadline.tuning.settings import Setting

_T = TypeVar("_T")
EVERYWHERE = ("salt", "ansible", "puppet")
_MODULE = re.compile(r"/sys/module/([A-Za-z0-9_-]+)/parameters/([A-Za-z0-9_]+)")
_OF_CEPH = re.compile(r"(client|fuse|objecter|ms|rados)_[a-z0-9_]+")
# Where an attribute of udev's devices is: their subsystem, and what follows their name.
_OF_DEVICE = re.compile(r"/sys/(?:class/)?(block|net)/\{(?:device|interface)\}/([A-Za-z0-9_/-]+)")
_NATIVE = {
    "sysctl": ("sysctl", "tuned", "cephadm"),
    "ethtool": ("udev", "tuned"),
    "ceph_config": ("ceph",),
    "ceph_pool": ("ceph",),
    "ceph_fs": ("ceph",),
    "ceph_flag": ("ceph",),
    "xattr": ("ceph",),
    "mount": ("fstab", "systemd"),
    "cmdline": ("grub", "tuned"),
}


class NotCarriedError(Exception):
    """A format does not hold a value; the words say why."""


def module_parameter(setting: Setting) -> tuple[str, str] | None:
    """Module and parameter, where the setting is one."""
    found = _MODULE.fullmatch(setting.access.options.get("path", ""))
    return (found[1], found[2]) if found else None


def device_attribute(setting: Setting) -> tuple[str, str] | None:
    """Subsystem and attribute, where the setting is one of a device."""
    found = _OF_DEVICE.fullmatch(setting.access.options.get("path", ""))
    return (found[1], found[2]) if found else None


def of_each_device(setting: Setting) -> bool:
    """True for a file below /sys that every device or interface has one of."""
    return "{" in setting.access.options.get("path", "")


def carriers(setting: Setting) -> tuple[str, ...]:
    """The formats that hold it, the native ones first."""
    kind = setting.access.kind
    if kind == "by_hand":
        return ()
    if kind == "fuse":
        return ("ceph", *EVERYWHERE) if ceph_option(setting) else ()
    if kind == "sysfs":
        if module_parameter(setting):
            return ("modprobe", "tuned", *EVERYWHERE)
        if of_each_device(setting):
            return ("udev", "tuned", *EVERYWHERE) if device_attribute(setting) else ("tuned",)
        return ("systemd", "tuned", *EVERYWHERE)
    native = _NATIVE.get(kind, ())
    return (*native, *EVERYWHERE) if native else ()


def ceph_option(setting: Setting) -> str:
    """The option in Ceph's configuration that it is, or ""."""
    option = setting.access.options.get("option", "")
    kind = setting.access.kind
    return option if kind == "ceph_config" or (kind == "fuse" and _OF_CEPH.fullmatch(option)) else ""


def gather(
    asked: Iterable[AskedValue], form: str, take: Callable[[AskedValue], _T]
) -> tuple[list[tuple[AskedValue, _T]], tuple[NotEmitted, ...]]:
    """What `take` makes of each value that the format holds, and the rest."""
    kept, left = [], []
    for one in asked:
        able = carriers(one.setting)
        if form not in able:
            left.append(NotEmitted(one.words, _why_none(one.setting, form), able))
            continue
        try:
            kept.append((one, take(one)))
        except NotCarriedError as error:
            left.append(NotEmitted(one.words, str(error), tuple(name for name in able if name != form)))
    return kept, tuple(left)


def _why_none(setting: Setting, form: str) -> str:
    if setting.access.kind == "by_hand":
        return f"it is done by hand: {setting.access.options.get('words', setting.means)}"
    if setting.access.kind == "fuse" and not ceph_option(setting):
        return "it is an option of ceph-fuse's command line: give it where that is started"
    return f"{form} has no place for it"


def plain(text: str, letters: str, what: str) -> str:
    """`text` where it holds none of `letters`. Raises NotCarriedError."""
    odd = sorted({letter for letter in text if letter in letters})
    if odd:
        raise NotCarriedError(f"{what} {text!r} holds {' '.join(map(repr, odd))}, which it has no escape for")
    return text


def place(one: AskedValue, what: str) -> str:
    """The subject. Raises NotCarriedError where none was given."""
    if not one.subject:
        raise NotCarriedError(f"it needs its {what}: {one.setting.name}@{what.upper()}={one.value}")
    return one.subject


PROVED = frozenset({"helps"})


@dataclass(frozen=True)
class Evidence:
    """`verdict` as a proof gives it, `says` its sentence; it is `called` otherwise in words."""

    setting: str
    value: str
    verdict: str
    says: str
    source: str
    called: str = ""

    @property
    def proved(self) -> bool:
        """True where it helps, and nothing that was seen speaks against its mechanism."""
        return self.verdict in PROVED

    @property
    def words(self) -> str:
        """The verdict and its sentence."""
        called = self.called or self.verdict
        return f"{called}: {self.says}" if self.says else called


def evidence_of(
    settings: Sequence[tuple[str, str]], verdict: str, says: str, source: str, called: str = ""
) -> tuple[Evidence, ...]:
    """One proof's, for each of the settings with their values that it measured.

    Several were measured as one set: what that does proves none of them alone.
    """
    if len(settings) > 1:
        beside = f", with {len(settings) - 1} more settings as one set"
        verdict, called = verdict + beside, (called or verdict) + beside
    return tuple(Evidence(name, value, verdict, says, source, called) for name, value in settings)


Match = Literal["whole", "part", "absent"]


@dataclass(frozen=True)
class AskedValue:
    """A value that is wanted: checked. `subject` is a device, pool, directory … or "" where all have one."""

    setting: Setting
    value: str
    subject: str = ""
    evidence: Evidence | None = None

    @property
    def words(self) -> str:
        """As it was asked for."""
        return f"{self.setting.name}{'@' + self.subject if self.subject else ''}={self.value}"


@dataclass(frozen=True)
class DeliveredFile:
    """A file as it has to stand, and the commands by which a changed one takes effect; "" text is none."""

    path: str
    text: str
    effect: tuple[tuple[str, ...], ...] = ()
    mode: str = "0644"

    @property
    def name(self) -> str:
        """Without its folders."""
        return self.path.rpartition("/")[2]


@dataclass(frozen=True)
class SettingDeed:
    """A value that a command sets. It is so already where what `read` prints is, holds or lacks `expected`.

    White space of what was read counts as one space each, and none at its ends.
    """

    title: str
    comments: tuple[str, ...]
    read: tuple[str, ...]
    write: tuple[str, ...]
    expected: str
    match: Match = "whole"


@dataclass(frozen=True)
class DeliveredMount:
    """A mount with the wanted options."""

    mount: NewMount
    comments: tuple[str, ...]


@dataclass(frozen=True)
class NotEmitted:
    """A value that a text does not hold, why, and which formats hold it."""

    asked: str
    why: str
    formats: tuple[str, ...] = ()


@dataclass(frozen=True)
class Rendered:
    """What a format made of it."""

    files: tuple[DeliveredFile, ...]
    left_out: tuple[NotEmitted, ...]


@dataclass(frozen=True)
class Emission:
    """What was asked for. `mounts` are the present mounts by their mount point."""

    asked: tuple[AskedValue, ...]
    mounts: Mapping[str, NewMount]


_EFFECT = {
    "live": "at once",
    "reconnect": "for connections made afterwards",
    "reopen": "for files opened afterwards",
    "remount": "at the next mount",
    "restart": "when the daemon is started again",
    "reboot": "at the next boot",
    "new_osd": "for OSDs made afterwards",
    "new_file": "for files made afterwards",
    "by_hand": "when done by hand",
}


def comments(asked: AskedValue) -> tuple[str, ...]:
    """Lines above a value, without the sign of a comment: what it is, its price, its evidence."""
    setting = asked.setting
    lines = [f"{asked.words}: {setting.title}; in force {_EFFECT[setting.needs]}"]
    lines += [f"trade-off, {price.kind}: {price.words}" for price in setting.prices]
    if setting.irreversible:
        lines.append(f"cannot be taken back: {setting.irreversible}")
    if asked.evidence is None:
        lines.append("evidence: none; leadline tune prove measures it")
    else:
        lines.append(f"evidence: {asked.evidence.words} ({asked.evidence.source})")
    return tuple(one_line(line) for line in lines)


def one_line(text: str) -> str:
    """Nothing in it ends a comment, or hides what stands there."""
    return " ".join(
        "".join(" " if unicodedata.category(letter)[0] in "CZ" else letter for letter in text).split()
    )


def hashed(lines: tuple[str, ...], indent: str = "") -> str:
    """As comments that begin with a hash."""
    return "".join(f"{indent}# {line}\n" for line in lines)
