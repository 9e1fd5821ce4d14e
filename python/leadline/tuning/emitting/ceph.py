"""Ceph's own ways: options to assimilate, commands for the rest, and cephadm's profiles of hosts."""

from __future__ import annotations

import re
import shlex

from leadline.escapes import yaml_text
from leadline.tuning.emitting.carrying import NotCarriedError, ceph_option, gather
from leadline.tuning.emitting.deeds import deed, section
from leadline.tuning.emitting.delivery import (
    AskedValue,
    DeliveredFile,
    Emission,
    Rendered,
    SettingDeed,
    comments,
    hashed,
)
from leadline.tuning.emitting.host_files import HEAD, sysctl_key

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
    found = deed(one)
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
