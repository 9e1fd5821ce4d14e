"""Mounts of the kernel's CephFS client with other options: the forms themselves are `mounting/emit.py`'s."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from leadline.errors import UsageError
from leadline.mounting.emit import FORMS, unit_name
from leadline.mounting.plan import NewMount, Option
from leadline.observe.mounts.mountinfo import Mount
from leadline.tuning.emitting.delivery import (
    AskedValue,
    DeliveredFile,
    DeliveredMount,
    Emission,
    NotCarriedError,
    NotEmitted,
    Rendered,
    comments,
    gather,
    hashed,
    place,
)
from leadline.tuning.emitting.host_files import HEAD, tmpfiles

_ON, _OFF = frozenset({"on", "true", "yes", "set"}), frozenset({"off", "false", "no", "unset"})
_OF_NO_FILE = frozenset({"rw", "relatime", "acl", "secret", "seclabel", "key"})  # a default, or a secret
_UNITS = "/etc/systemd/system"


def present_mount(mount: Mount) -> NewMount:
    """A mount as it is, as configuration: without what the kernel says by itself, and without any key.

    Raises UsageError where it is not the kernel's CephFS.
    """
    if mount.file_system != "ceph":
        raise UsageError(
            f"{mount.mount_point} is mounted as {mount.file_system}, not by the kernel's CephFS client",
            "Name a mount of the kernel's client.",
        )
    words = dict.fromkeys((*mount.super_options, *mount.options))
    kept = [Option(word, "in force") for word in words if word.partition("=")[0] not in _OF_NO_FILE]
    if "_netdev" not in words:
        kept.append(Option("_netdev", "mounted after the network is up"))
    return NewMount(mount.source, mount.mount_point, tuple(kept))


def delivered(
    asked: Iterable[AskedValue], form: str, emission: Emission
) -> tuple[tuple[DeliveredMount, ...], tuple[NotEmitted, ...]]:
    """Each mount once, with all options that are wanted for it."""
    kept, left = gather((one for one in asked), form, lambda one: _wanted(one, form, emission))
    mounts: dict[str, DeliveredMount] = {}
    for one, point in kept:
        before = mounts.get(point) or DeliveredMount(emission.mounts[point], ())
        mounts[point] = DeliveredMount(_with(before.mount, one), (*before.comments, *comments(one)))
    return tuple(mounts.values()), left


def _wanted(one: AskedValue, form: str, emission: Emission) -> str:
    if one.setting.access.kind != "mount":
        raise NotCarriedError(f"{one.setting.name} is no option of a mount")
    point = place(one, "mount point")
    if point not in emission.mounts:
        raise NotCarriedError(f"nothing is mounted at {point} here")
    if set(one.value) & set(',"'):
        raise NotCarriedError(f"the value {one.value!r} holds a comma or a quote, which separate options")
    try:
        FORMS[form](_with(emission.mounts[point], one))
    except UsageError as error:
        raise NotCarriedError(error.message) from None
    return point


def _with(mount: NewMount, one: AskedValue) -> NewMount:
    name, word = one.setting.access.options["option"], one.value.lower()
    opposite = name.removeprefix("no") if name.startswith("no") else f"no{name}"
    rest = [item for item in mount.options if item.text.partition("=")[0] not in (name, opposite)]
    if word not in _OFF:
        rest.append(Option(name if word in _ON else f"{name}={one.value}", one.setting.title))
    return replace(mount, options=tuple(rest))


def form_text(found: DeliveredMount, form: str) -> str:
    """One mount in one of `mounting/emit.py`'s forms, with its reasons above."""
    return hashed(found.comments) + FORMS[form](found.mount, by="leadline tune emit")


def fstab(emission: Emission) -> Rendered:
    """Lines for /etc/fstab, to be put where the mount's present one is."""
    mounts, left = delivered(emission.asked, "fstab", emission)
    text = "".join(form_text(one, "fstab") for one in mounts)
    return Rendered((DeliveredFile("leadline.fstab", text),) if mounts else (), left)


def systemd(emission: Emission) -> Rendered:
    """Mount units, and values below /sys for systemd-tmpfiles."""
    of_mounts = tuple(one for one in emission.asked if one.setting.access.kind == "mount")
    mounts, left = delivered(of_mounts, "systemd", emission)
    rest = replace(emission, asked=tuple(one for one in emission.asked if one not in of_mounts))
    others = tmpfiles(rest)
    units = tuple(
        DeliveredFile(f"{_UNITS}/{unit_name(one.mount.mount_point)}", HEAD + form_text(one, "systemd"))
        for one in mounts
    )
    return Rendered((*units, *others.files), (*left, *others.left_out))
