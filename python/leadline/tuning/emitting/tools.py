"""All that a set of settings needs in one bundle, for Salt, Ansible and Puppet; every format by its name."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from leadline.escapes import puppet_text, yaml_text
from leadline.mounting.emit import ansible_task, salt_state
from leadline.tuning.emitting import host_files
from leadline.tuning.emitting.ceph import ceph, cephadm, deed_of
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
    hashed,
)
from leadline.tuning.emitting.host_files import HEAD, grub, modprobe, sysctl, tuned, udev
from leadline.tuning.emitting.mounts import delivered, form_text, fstab, systemd

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
    if native == "ceph" and deed_of(one) is None:
        raise NotCarriedError("no command sets it")
    return native, deed_of(one)


def holds_already(found: SettingDeed) -> str:
    """A condition for `sh`: true where nothing has to be done."""
    read, expected = shlex.join(found.read), shlex.quote(found.expected)
    if found.match == "whole":
        return f'set -f; set -- $({read} 2>/dev/null); test "$*" = {expected}'
    if found.match == "part":
        return f"{read} | grep -qF -e {expected}"
    return f'seen=$({read}) && ! printf %s "$seen" | grep -qF -e {expected}'


SALT_NAME = "leadline_tuning.sls"


def salt(emission: Emission) -> Rendered:
    """One file, read as YAML only: no value of it is a template."""
    made = bundle(emission, "salt")
    states: dict[str, Any] = {}
    for file in made.files:
        states[file.path] = {
            "file.managed": [{"contents": file.text}, {"mode": file.mode}, {"makedirs": True}]
        }
        for command in file.effect:
            words = shlex.join(command)
            states[f"{file.name}: {words}"] = {
                "cmd.run": [{"name": words}, {"onchanges": [{"file": file.path}]}]
            }
    for deed in made.deeds:
        states[deed.title] = {"cmd.run": [{"name": shlex.join(deed.write)}, {"unless": holds_already(deed)}]}
    for one in made.mounts:
        states |= salt_state(one.mount)
    if not states:
        return Rendered((), made.left_out)
    parts = (*(deed.comments for deed in made.deeds), *(one.comments for one in made.mounts))
    head = f"#!yaml\n{HEAD}" + "".join(hashed(comments) for comments in parts)
    return Rendered((DeliveredFile(SALT_NAME, head + yaml_text(states)),), made.left_out)


ANSIBLE_NAME = "leadline-tuning.yml"
_COMMAND, _COPY, _FILE = "ansible.builtin.command", "ansible.builtin.copy", "ansible.builtin.file"
_SEEN = "(leadline_seen.stdout | default('')).split() | join(' ')"
_DIFFERS = {
    "whole": f"leadline_seen.rc != 0 or {_SEEN} != leadline_expected",
    "part": f"leadline_seen.rc != 0 or leadline_expected not in {_SEEN}",
    "absent": f"leadline_seen.rc != 0 or leadline_expected in {_SEEN}",
}


def ansible(emission: Emission) -> Rendered:
    """One play for `hosts: all`; which hosts those are is the inventory's to say."""
    made = bundle(emission, "ansible")
    tasks: list[Any] = []
    handlers: list[Any] = []
    for file in made.files:
        tasks += _ansible_file(file)
        handlers += _handlers(file)
    for deed in made.deeds:
        tasks += _ansible_deed(deed)
    tasks += [ansible_task(one.mount) for one in made.mounts]
    if not tasks:
        return Rendered((), made.left_out)
    play = {
        "name": "Settings chosen with leadline",
        "hosts": "all",
        "become": True,
        "gather_facts": False,
        "tasks": tasks,
        **({"handlers": handlers} if handlers else {}),
    }
    parts = (*(deed.comments for deed in made.deeds), *(one.comments for one in made.mounts))
    head = f"---\n{HEAD}" + "".join(hashed(comments) for comments in parts)
    # A list at the top begins at the margin, where ansible-lint wants it; those within are indented.
    body = re.sub(r"(?m)^  ", "", yaml_text([play], sequence_indent=(4, 2), templates=True))
    return Rendered((DeliveredFile(ANSIBLE_NAME, head + body),), made.left_out)


def _ansible_file(file: DeliveredFile) -> Iterable[dict[str, Any]]:
    folder = file.path.rpartition("/")[0]
    yield {"name": f"Make {folder}", _FILE: {"path": folder, "state": "directory", "mode": "0755"}}
    task: dict[str, Any] = {
        "name": f"Write {file.path}",
        _COPY: {"dest": file.path, "content": file.text, "mode": file.mode},
    }
    yield task | ({"notify": f"{file.path} changed"} if file.effect else {})


def _handlers(file: DeliveredFile) -> Iterable[dict[str, Any]]:
    for command in file.effect:
        yield {
            "name": f"Let {file.name} take effect by {' '.join(command[:3])}",
            _COMMAND: {"argv": list(command)},
            "changed_when": True,
            "listen": f"{file.path} changed",
        }


def _ansible_deed(deed: SettingDeed) -> Iterable[dict[str, Any]]:
    title = deed.title.replace("{", "(").replace("}", ")")  # a name is a template
    yield {
        "name": f"Read what is in force for {title}",
        _COMMAND: _arguments(deed.read),
        "register": "leadline_seen",
        "changed_when": False,
        "failed_when": False,
        "check_mode": False,
    }
    yield {
        "name": f"Set {title}",
        _COMMAND: _arguments(deed.write),
        "vars": {"leadline_expected": deed.expected},
        "when": _DIFFERS[deed.match],
        "changed_when": True,
    }


def _arguments(words: tuple[str, ...]) -> dict[str, Any]:
    """The words as they are. The module expands `$HOME` and `~` unless told not to (ansible-core 2.16)."""
    expanded = any("$" in word or word.startswith("~") for word in words)
    return {"argv": list(words), **({"expand_argument_vars": False} if expanded else {})}


PUPPET_NAME = "leadline_tuning.pp"
_PUPPET_PATH = "['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin', '/sbin', '/bin']"


def puppet(emission: Emission) -> Rendered:
    """One manifest; folders that hold the files must be there."""
    made = bundle(emission, "puppet")
    parts = [part for file in made.files for part in _puppet_file(file)]
    parts += [_puppet_deed(deed) for deed in made.deeds]
    parts += [form_text(one, "puppet") for one in made.mounts]
    if not parts:
        return Rendered((), made.left_out)
    return Rendered(
        (DeliveredFile(PUPPET_NAME, HEAD + "".join(f"\n{part}" for part in parts)),), made.left_out
    )


def _resource(kind: str, title: str, rows: Sequence[tuple[str, str]]) -> str:
    width = max(len(name) for name, _ in rows)
    body = "".join(f"  {name:<{width}} => {value},\n" for name, value in rows)
    return f"{kind} {{ {puppet_text(title)}:\n{body}}}\n"


def _puppet_file(file: DeliveredFile) -> list[str]:
    rows = (("ensure", "file"), ("mode", puppet_text(file.mode)), ("content", puppet_text(file.text)))
    found = [_resource("file", file.path, rows)]
    for command in file.effect:
        words = shlex.join(command)
        follows = (
            ("command", puppet_text(words)),
            ("path", _PUPPET_PATH),
            ("refreshonly", "true"),
            ("subscribe", f"File[{puppet_text(file.path)}]"),
        )
        found.append(_resource("exec", f"{file.name}: {words}", follows))
    return found


def _puppet_deed(deed: SettingDeed) -> str:
    rows = (
        ("command", puppet_text(shlex.join(deed.write))),
        ("unless", puppet_text(holds_already(deed))),
        ("path", _PUPPET_PATH),
        ("provider", "shell"),
    )
    return hashed(deed.comments) + _resource("exec", deed.title, rows)


TUNING_FORMATS: Mapping[str, Callable[[Emission], Rendered]] = {
    "sysctl": sysctl,
    "udev": udev,
    "tuned": tuned,
    "modprobe": modprobe,
    "grub": grub,
    "systemd": systemd,
    "fstab": fstab,
    "ceph": ceph,
    "cephadm": cephadm,
    "salt": salt,
    "ansible": ansible,
    "puppet": puppet,
}
