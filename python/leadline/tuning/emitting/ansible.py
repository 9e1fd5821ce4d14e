"""A playbook of Ansible: files with handlers, deeds that are read first, and mounts. No shell."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable
from typing import Any

from leadline.mounting.emit import FORMS
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
    from ruamel.yaml import YAML

    made = bundle(emission, "ansible")
    tasks: list[Any] = []
    handlers: list[Any] = []
    for file in made.files:
        tasks += _file(file)
        handlers += _handlers(file)
    for deed in made.deeds:
        tasks += _deed(deed)
    for one in made.mounts:
        tasks += YAML(typ="safe").load(FORMS["ansible"](one.mount))
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
    text = io.StringIO()
    text.write(f"---\n{HEAD}")
    for comments in (*(deed.comments for deed in made.deeds), *(one.comments for one in made.mounts)):
        text.write(hashed(comments))
    writer = YAML()
    writer.width = 10_000
    writer.indent(mapping=2, sequence=4, offset=2)
    # A list at the top begins at the margin, where ansible-lint wants it; those within are indented.
    writer.dump(_safe([play]), text, transform=lambda whole: re.sub(r"(?m)^  ", "", whole))
    return Rendered((DeliveredFile(NAME, text.getvalue()),), made.left_out)


def _file(file: DeliveredFile) -> Iterable[dict[str, Any]]:
    folder = file.path.rpartition("/")[0]
    yield {"name": f"Make {folder}", _FILE: {"path": folder, "state": "directory", "mode": "0755"}}
    task: dict[str, Any] = {
        "name": f"Write {file.path}",
        _COPY: {"dest": file.path, "content": _Foreign(file.text), "mode": file.mode},
    }
    yield task | ({"notify": f"{file.path} changed"} if file.effect else {})


def _handlers(file: DeliveredFile) -> Iterable[dict[str, Any]]:
    for command in file.effect:
        yield {
            "name": f"Let {file.name} take effect by {' '.join(command[:3])}",
            _COMMAND: {"argv": [_Foreign(word) for word in command]},
            "changed_when": True,
            "listen": f"{file.path} changed",
        }


def _deed(deed: SettingDeed) -> Iterable[dict[str, Any]]:
    title = deed.title.replace("{", "(").replace("}", ")")  # a name is a template
    yield {
        "name": f"Read what is in force for {title}",
        _COMMAND: {"argv": [_Foreign(word) for word in deed.read]},
        "register": "leadline_seen",
        "changed_when": False,
        "failed_when": False,
        "check_mode": False,
    }
    yield {
        "name": f"Set {title}",
        _COMMAND: {"argv": [_Foreign(word) for word in deed.write]},
        "vars": {"leadline_expected": _Foreign(deed.expected)},
        "when": _DIFFERS[deed.match],
        "changed_when": True,
    }


class _Foreign(str):
    """Text that is no template, whatever it holds."""


def _safe(value: Any) -> Any:
    """With `!unsafe` where Ansible would take text for a template; long text in its lines."""
    from ruamel.yaml.comments import TaggedScalar
    from ruamel.yaml.scalarstring import DoubleQuotedScalarString, LiteralScalarString

    if isinstance(value, dict):
        return {key: _safe(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_safe(one) for one in value]
    if isinstance(value, _Foreign):
        text = str(value)
        if any(mark in text for mark in ("{{", "{%", "{#")):
            return TaggedScalar(text, style='"', tag="!unsafe")
        return LiteralScalarString(text) if "\n" in text else DoubleQuotedScalarString(text)
    return value
