"""The new mount as configuration: fstab, a systemd unit, or a resource of Puppet, Ansible or Salt."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

from leadline.mounting.plan import NewMount

_SAFE_IN_UNIT_NAMES = set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789:_.")
_HEAD = "written by `leadline mount plan`; the key stays in the keyring"


def fstab(mount: NewMount) -> str:
    """One line of fstab(5), with its escapes."""
    fields = (mount.device, mount.mount_point, "ceph", mount.option_text.replace('"', ""), "0", "0")
    return f"# {_HEAD}\n" + " ".join(_escaped(field) for field in fields) + "\n"


def _escaped(text: str) -> str:
    for letter in ("\\", " ", "\t", "\n", "#"):
        text = text.replace(letter, f"\\{ord(letter):03o}")
    return text


def systemd(mount: NewMount) -> str:
    """A mount unit; its file must have the name in its first line."""
    options = mount.option_text.replace('"', "")
    return (
        f"# /etc/systemd/system/{unit_name(mount.mount_point)}: {_HEAD}\n"
        "[Unit]\nDescription=CephFS by the kernel client\nAfter=network-online.target\n"
        "Wants=network-online.target\n\n"
        f"[Mount]\nWhat={_in_unit(mount.device)}\nWhere={_in_unit(mount.mount_point)}\nType=ceph\n"
        f"Options={_in_unit(options)}\nTimeoutSec=60\n\n[Install]\nWantedBy=remote-fs.target\n"
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


def _in_unit(text: str) -> str:
    return text.replace("%", "%%")


def puppet(mount: NewMount) -> str:
    """A `mount` resource."""

    def quoted(text: str) -> str:
        return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"

    rows = (
        ("ensure", "mounted"),
        ("device", quoted(mount.device)),
        ("fstype", quoted("ceph")),
        ("options", quoted(mount.option_text.replace('"', ""))),
        ("remounts", "false"),
    )
    body = "".join(f"  {name:<8} => {value},\n" for name, value in rows)
    return f"# {_HEAD}\nmount {{ {quoted(mount.mount_point)}:\n{body}}}\n"


def ansible(mount: NewMount) -> str:
    """A task for `ansible.posix.mount`."""
    task = {
        "name": "CephFS by the kernel client",
        "ansible.posix.mount": {
            "src": mount.device,
            "path": mount.mount_point,
            "fstype": "ceph",
            "opts": mount.option_text.replace('"', ""),
            "state": "mounted",
        },
    }
    return f"# {_HEAD}\n{_yaml([task])}"


def salt(mount: NewMount) -> str:
    """A state of `mount.mounted`."""
    state = {
        mount.mount_point: {
            "mount.mounted": [
                {"device": mount.device},
                {"fstype": "ceph"},
                {"opts": mount.option_text.replace('"', "")},
                {"mkmnt": True},
                {"persist": True},
            ]
        }
    }
    return f"# {_HEAD}\n{_yaml(state)}"


def _yaml(value: Any) -> str:
    from ruamel.yaml import YAML

    text = io.StringIO()
    writer = YAML()
    writer.width = 10_000
    writer.dump(value, text)
    return text.getvalue()


FORMS: dict[str, Callable[[NewMount], str]] = {
    "fstab": fstab,
    "systemd": systemd,
    "puppet": puppet,
    "ansible": ansible,
    "salt": salt,
}
