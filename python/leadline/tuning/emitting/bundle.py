"""All that a set of settings needs in one bundle: files of hosts, commands, mounts, and what is left out."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from leadline.tuning.emitting import host_files
from leadline.tuning.emitting.ceph import deed
from leadline.tuning.emitting.delivery import (
    AskedValue,
    DeliveredFile,
    DeliveredMount,
    Emission,
    NotCarriedError,
    NotEmitted,
    Rendered,
    SettingDeed,
    carriers,
    gather,
)
from leadline.tuning.emitting.mounts import delivered

_FILES: Mapping[str, Callable[[Emission], Rendered]] = {
    "sysctl": host_files.sysctl,
    "udev": host_files.udev,
    "modprobe": host_files.modprobe,
    "systemd": host_files.tmpfiles,
    "grub": host_files.grub,
}


@dataclass(frozen=True)
class Bundle:
    """All that can be brought about, and the rest."""

    files: tuple[DeliveredFile, ...]
    deeds: tuple[SettingDeed, ...]
    mounts: tuple[DeliveredMount, ...]
    left_out: tuple[NotEmitted, ...]


def bundle(emission: Emission, form: str) -> Bundle:
    """Each value as its native format has it; a kernel setting as a file and, for now, as a deed."""
    kept, left = gather(emission.asked, form, _way)
    of_mounts = [one for one, (native, _) in kept if native == "fstab"]
    mounts, left_mounts = delivered(of_mounts, form, emission)
    files: list[DeliveredFile] = []
    left_files: list[NotEmitted] = []
    for native, render in _FILES.items():
        part = tuple(one for one, (name, _) in kept if name == native)
        rendered = render(replace(emission, asked=part))
        # A kernel setting is set by its own deed, which also finds what changed without the file.
        files += [replace(file, effect=()) if native == "sysctl" else file for file in rendered.files]
        left_files += rendered.left_out
    deeds = tuple(found for _, (_, found) in kept if found is not None)
    return Bundle(tuple(files), deeds, mounts, (*left, *left_mounts, *left_files))


def _way(one: AskedValue) -> tuple[str, SettingDeed | None]:
    """The native format and the deed."""
    native = carriers(one.setting)[0]
    if native == "ceph" and deed(one) is None:
        raise NotCarriedError("no command sets it")
    return native, deed(one)


def holds_already(found: SettingDeed) -> str:
    """A condition for `sh`: true where nothing has to be done."""
    read, expected = shlex.join(found.read), shlex.quote(found.expected)
    if found.match == "whole":
        return f'set -f; set -- $({read} 2>/dev/null); test "$*" = {expected}'
    if found.match == "part":
        return f"{read} | grep -qF -e {expected}"
    return f'seen=$({read}) && ! printf %s "$seen" | grep -qF -e {expected}'
