"""A playbook of Ansible: files with handlers, deeds that are read first, and mounts. No shell."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from leadline.escapes import yaml_text
from leadline.mounting.emit import ansible_task
from leadline.tuning.emitting.delivery import DeliveredFile, Emission, Rendered, SettingDeed, hashed
from leadline.tuning.emitting.everything import bundle
from leadline.tuning.emitting.host_files import HEAD

NAME = "leadline-tuning.yml"
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
        tasks += _file(file)
        handlers += _handlers(file)
    for deed in made.deeds:
        tasks += _deed(deed)
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
    return Rendered((DeliveredFile(NAME, head + body),), made.left_out)


def _file(file: DeliveredFile) -> Iterable[dict[str, Any]]:
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


def _deed(deed: SettingDeed) -> Iterable[dict[str, Any]]:
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
