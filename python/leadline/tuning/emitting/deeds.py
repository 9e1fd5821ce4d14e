"""Values that a command sets, each with the command that shows it and what that prints where it holds."""

from __future__ import annotations

import json
import re

from leadline.tuning.emitting.carrying import NotCarriedError, ceph_option, place, plain
from leadline.tuning.emitting.delivery import AskedValue, Match, SettingDeed, comments
from leadline.tuning.emitting.host_files import sysctl_key

_ON = frozenset({"true", "on", "yes", "1", "set"})
_OFF = frozenset({"false", "off", "no", "0", "unset"})
_ENCODED = re.compile(r"0[xXsS]|\"")  # setfattr(1)
_NAME = re.compile(r"[A-Za-z0-9._/:-]+")  # of a pool, file system or section: none begins an option


def deed(one: AskedValue) -> SettingDeed | None:
    """The deed of a value, None where it is none of a command's. Raises NotCarriedError."""
    kind = one.setting.access.kind
    if ceph_option(one.setting):
        return _ceph_config(one)
    make = {
        "sysctl": _sysctl,
        "ceph_pool": _ceph_pool,
        "ceph_fs": _ceph_fs,
        "ceph_flag": _ceph_flag,
        "xattr": _xattr,
    }.get(kind)
    return make(one) if make else None


def _made(
    one: AskedValue, read: tuple[str, ...], write: tuple[str, ...], expected: str, match: Match = "whole"
) -> SettingDeed:
    return SettingDeed(one.words, comments(one), read, write, expected, match)


def _sysctl(one: AskedValue) -> SettingDeed:
    key = sysctl_key(one)
    return _made(
        one, ("sysctl", "-n", key), ("sysctl", "-w", f"{key}={one.value}"), " ".join(one.value.split())
    )


def section(one: AskedValue) -> str:
    """Whose configuration it is in: the daemon's or section's that was named, else the setting's own."""
    return _name(one.subject or one.setting.access.options.get("who", "client"))


def _name(text: str) -> str:
    if not _NAME.fullmatch(text) or text.startswith("-"):
        raise NotCarriedError(f"{text!r} is no name that Ceph's commands take as it stands")
    return text


def _ceph_config(one: AskedValue) -> SettingDeed:
    who, option = section(one), ceph_option(one.setting)
    return _made(
        one,
        ("ceph", "config", "get", who, option),
        ("ceph", "config", "set", who, option, _value(one)),
        one.value,
    )


def _value(one: AskedValue) -> str:
    if one.value.startswith("-"):  # the command would take it for an option of its own
        raise NotCarriedError(f"the value {one.value!r} begins as an option of the command does")
    return one.value


def _ceph_pool(one: AskedValue) -> SettingDeed:
    pool, option = _name(place(one, "pool")), one.setting.access.options["option"]
    command = ("ceph", "osd", "pool")
    return _made(
        one,
        (*command, "get", pool, option),
        (*command, "set", pool, option, _value(one)),
        f"{option}: {one.value}",
    )


def _ceph_fs(one: AskedValue) -> SettingDeed:
    name, option = _name(place(one, "file system")), one.setting.access.options["option"]
    number = one.value.lstrip("+").isdigit() or one.value in ("true", "false")
    shown = f'"{option}":{one.value if number else json.dumps(one.value)},'
    return _made(
        one,
        ("ceph", "fs", "get", name, "-f", "json"),
        ("ceph", "fs", "set", name, option, _value(one)),
        shown,
        "part",
    )


def _ceph_flag(one: AskedValue) -> SettingDeed:
    flag, word = one.setting.access.options["flag"], one.value.lower()
    if word not in _ON | _OFF:
        raise NotCarriedError(f"a flag is set or not: {one.value!r} is neither true nor false")
    is_on = word in _ON
    write = ("ceph", "osd", "set" if is_on else "unset", flag)
    return _made(
        one, ("ceph", "osd", "dump", "-f", "json"), write, f'"{flag}"', "part" if is_on else "absent"
    )


def _xattr(one: AskedValue) -> SettingDeed:
    directory, name = place(one, "directory"), one.setting.access.options["name"]
    if not directory.startswith("/"):
        raise NotCarriedError(f"{directory!r} is no absolute path")
    plain(directory, "\0", "the directory")
    if _ENCODED.match(one.value):
        raise NotCarriedError(f"setfattr takes the value {one.value!r} for an encoded one")
    read = ("getfattr", "--absolute-names", "--only-values", "-n", name, directory)
    return _made(one, read, ("setfattr", "-n", name, "-v", one.value, directory), one.value)
