"""Settings of a cluster: a file of Ceph's own, a specification of cephadm, and commands, checked before."""

from __future__ import annotations

import json
import re
import shlex

from leadline.escapes import yaml_text
from leadline.tuning.emitting.delivery import (
    AskedValue,
    DeliveredFile,
    Emission,
    Match,
    NotCarriedError,
    Rendered,
    SettingDeed,
    ceph_option,
    comments,
    gather,
    hashed,
    place,
    plain,
)
from leadline.tuning.emitting.host_files import HEAD, sysctl_key

_ON = frozenset({"true", "on", "yes", "1", "set"})
_OFF = frozenset({"false", "off", "no", "0", "unset"})
_ENCODED = re.compile(r"0[xXsS]|\"")  # setfattr(1)
_NAME = re.compile(r"[A-Za-z0-9._/:-]+")  # of a pool, file system or section: none begins an option


def deed_of(one: AskedValue) -> SettingDeed | None:
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


CONF, COMMANDS, PROFILE = "leadline-ceph.conf", "leadline-ceph.sh", "leadline-cephadm.yaml"
_SECTION = re.compile(r"[a-z]+(\.[A-Za-z0-9_-]+)?")  # masks are no sections of a file
_NOT_IN_FILE = re.compile(r"[#;=\[\]\"'\\]")


def ceph(emission: Emission) -> Rendered:
    """Options by section, then what is no option, as commands that may be run again."""
    kept, left = gather(emission.asked, "ceph", _deed)
    sections: dict[str, list[str]] = {}
    parts = []
    for one, found in kept:
        if _is_for_file(one):
            line = f"{ceph_option(one.setting)} = {one.value}\n"
            sections.setdefault(section(one), []).append(hashed(comments(one)) + line)
        else:
            parts.append(f"\n{hashed(found.comments)}{shlex.join(found.write)}\n")
    files = []
    if sections:
        body = "".join(f"\n[{name}]\n{''.join(lines)}" for name, lines in sections.items())
        files.append(DeliveredFile(CONF, f"{HEAD}# apply: ceph config assimilate-conf -i {CONF}\n{body}"))
    if parts:
        files.append(DeliveredFile(COMMANDS, f"#!/bin/sh\n{HEAD}set -eu\n{''.join(parts)}", mode="0755"))
    return Rendered(tuple(files), left)


def _deed(one: AskedValue) -> SettingDeed:
    found = deed_of(one)
    if found is None:
        raise NotCarriedError("no command of Ceph sets it")
    return found


def _is_for_file(one: AskedValue) -> bool:
    """True for an option whose section and value stand for themselves in a file."""
    return bool(
        ceph_option(one.setting) and _SECTION.fullmatch(section(one)) and not _NOT_IN_FILE.search(one.value)
    )


def cephadm(emission: Emission) -> Rendered:
    """A profile of kernel settings that cephadm keeps on all its hosts (Ceph 17.2 and later)."""
    kept, left = gather(emission.asked, "cephadm", sysctl_key)
    if not kept:
        return Rendered((), left)
    head = f"{HEAD}# apply: ceph orch tuned-profile apply -i {PROFILE}   # Ceph 17.2 and later\n"
    head += "".join(hashed(comments(one)) for one, _ in kept)
    settings = {key: one.value for one, key in kept}
    profile = {"profile_name": "leadline", "placement": {"host_pattern": "*"}, "settings": settings}
    return Rendered((DeliveredFile(PROFILE, head + yaml_text(profile)),), left)
