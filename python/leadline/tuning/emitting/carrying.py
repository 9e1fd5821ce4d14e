"""Which formats can hold which setting, and how what one cannot hold is said. Knows no format's text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TypeVar

from leadline.tuning.emitting.delivery import AskedValue, NotEmitted
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
