"""The new mount as configuration: fstab, a systemd unit, or a resource of Puppet, Ansible or Salt.

Each form raises UsageError where it has no escape for what a path or an option holds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from leadline.escapes import fstab_field, puppet_text, seen, unit_value, without, yaml_text
from leadline.mounting.plan import NewMount

_SAFE_IN_UNIT_NAMES = set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789:_.")
_PLAN = "leadline mount plan"


def _fields(mount: NewMount) -> tuple[str, str, str]:
    """Device, mount point and options. Tools write them into fstab, where a line end begins another entry."""
    options = mount.option_text.replace('"', "")
    return (
        seen(mount.device, "the device"),
        seen(mount.mount_point, "the mount point"),
        seen(options, "the options"),
    )


def _head(by: str) -> str:
    return f"# written by `{by}`; the key stays in the keyring\n"


def fstab(mount: NewMount, by: str = _PLAN) -> str:
    """One line of fstab(5), with its escapes."""
    device, point, options = _fields(mount)
    return (
        _head(by)
        + " ".join(fstab_field(field) for field in (device, point, "ceph", options, "0", "0"))
        + "\n"
    )


def systemd(mount: NewMount, by: str = _PLAN) -> str:
    """A mount unit; its file must have the name in its first line."""
    device, point, options = _fields(mount)
    what, where = unit_value(device, "the device"), unit_value(point, "the mount point")
    return (
        f"# /etc/systemd/system/{unit_name(point)}\n{_head(by)}"
        "[Unit]\nDescription=CephFS by the kernel client\nAfter=network-online.target\n"
        "Wants=network-online.target\n\n"
        f"[Mount]\nWhat={what}\nWhere={where}\nType=ceph\n"
        f"Options={unit_value(options, 'the options')}\nTimeoutSec=60\n\n"
        "[Install]\nWantedBy=remote-fs.target\n"
    )


def unit_name(path: str) -> str:
    """The name that systemd demands of a path's mount unit, as systemd-escape(1) makes it."""
    text = path.strip("/")
    if not text:
        return "-.mount"
    found = []
    for index, byte in enumerate(text.encode("utf-8", "surrogateescape")):
        letter = chr(byte)
        if letter == "/":
            found.append("-")
        elif letter in _SAFE_IN_UNIT_NAMES and not (letter == "." and index == 0):
            found.append(letter)
        else:
            found.append(f"\\x{byte:02x}")
    return "".join(found) + ".mount"


def puppet(mount: NewMount, by: str = _PLAN) -> str:
    """A `mount` resource."""
    device, point, options = _fields(mount)
    rows = (
        ("ensure", "mounted"),
        ("device", puppet_text(device)),
        ("fstype", puppet_text("ceph")),
        ("options", puppet_text(options)),
        ("remounts", "false"),
    )
    body = "".join(f"  {name:<8} => {value},\n" for name, value in rows)
    return f"{_head(by)}mount {{ {puppet_text(point)}:\n{body}}}\n"


def ansible(mount: NewMount, by: str = _PLAN) -> str:
    """A task for `ansible.posix.mount`."""
    return _head(by) + yaml_text([ansible_task(mount)], templates=True)


def ansible_task(mount: NewMount) -> dict[str, Any]:
    """The task as values. The module expands variables in both paths, and has no escape for `$`."""
    device, point, options = _fields(mount)
    return {
        "name": "CephFS by the kernel client",
        "ansible.posix.mount": {
            "src": without(device, "$", "the device"),
            "path": without(point, "$", "the mount point"),
            "fstype": "ceph",
            "opts": options,
            "state": "mounted",
        },
    }


def salt(mount: NewMount, by: str = _PLAN) -> str:
    """A state of `mount.mounted`. Its first line has Salt read it as YAML only, and not as a template."""
    return f"#!yaml\n{_head(by)}{yaml_text(salt_state(mount))}"


def salt_state(mount: NewMount) -> dict[str, Any]:
    """The state as values."""
    device, point, options = _fields(mount)
    return {
        point: {
            "mount.mounted": [
                {"device": device},
                {"fstype": "ceph"},
                {"opts": options},
                {"mkmnt": True},
                {"persist": True},
            ]
        }
    }


FORMS: dict[str, Callable[..., str]] = {
    "fstab": fstab,
    "systemd": systemd,
    "puppet": puppet,
    "ansible": ansible,
    "salt": salt,
}
