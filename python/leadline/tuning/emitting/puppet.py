"""A manifest of Puppet: files, deeds that are skipped where they hold, and mounts."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from leadline.escapes import puppet_text
from leadline.tuning.emitting.delivery import DeliveredFile, Emission, Rendered, SettingDeed, hashed
from leadline.tuning.emitting.everything import bundle, holds_already
from leadline.tuning.emitting.host_files import HEAD
from leadline.tuning.emitting.mounts import form_text

NAME = "leadline_tuning.pp"
_PATH = "['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin', '/sbin', '/bin']"


def puppet(emission: Emission) -> Rendered:
    """One manifest; folders that hold the files must be there."""
    made = bundle(emission, "puppet")
    parts = [part for file in made.files for part in _file(file)]
    parts += [_deed(deed) for deed in made.deeds]
    parts += [form_text(one, "puppet") for one in made.mounts]
    if not parts:
        return Rendered((), made.left_out)
    return Rendered((DeliveredFile(NAME, HEAD + "".join(f"\n{part}" for part in parts)),), made.left_out)


def _resource(kind: str, title: str, rows: Sequence[tuple[str, str]]) -> str:
    width = max(len(name) for name, _ in rows)
    body = "".join(f"  {name:<{width}} => {value},\n" for name, value in rows)
    return f"{kind} {{ {puppet_text(title)}:\n{body}}}\n"


def _file(file: DeliveredFile) -> list[str]:
    rows = (("ensure", "file"), ("mode", puppet_text(file.mode)), ("content", puppet_text(file.text)))
    found = [_resource("file", file.path, rows)]
    for command in file.effect:
        words = shlex.join(command)
        follows = (
            ("command", puppet_text(words)),
            ("path", _PATH),
            ("refreshonly", "true"),
            ("subscribe", f"File[{puppet_text(file.path)}]"),
        )
        found.append(_resource("exec", f"{file.name}: {words}", follows))
    return found


def _deed(deed: SettingDeed) -> str:
    rows = (
        ("command", puppet_text(shlex.join(deed.write))),
        ("unless", puppet_text(holds_already(deed))),
        ("path", _PATH),
        ("provider", "shell"),
    )
    return hashed(deed.comments) + _resource("exec", deed.title, rows)
