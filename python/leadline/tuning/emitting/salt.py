"""A state of Salt: files, deeds and mounts; applied twice, the second time changes nothing."""

from __future__ import annotations

import io
import shlex
from typing import Any

from leadline.mounting.emit import FORMS
from leadline.tuning.emitting.delivery import DeliveredFile, Emission, Rendered, hashed
from leadline.tuning.emitting.everything import bundle, holds_already
from leadline.tuning.emitting.host_files import HEAD

NAME = "leadline_tuning.sls"


def salt(emission: Emission) -> Rendered:
    """One file, read as YAML only: no value of it is a template."""
    from ruamel.yaml import YAML

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
        states |= YAML(typ="safe").load(FORMS["salt"](one.mount))
    if not states:
        return Rendered((), made.left_out)
    text = io.StringIO()
    text.write(f"#!yaml\n{HEAD}")
    for comments in (*(deed.comments for deed in made.deeds), *(one.comments for one in made.mounts)):
        text.write(hashed(comments))
    writer = YAML()
    writer.width = 10_000
    writer.dump(states, text)
    return Rendered((DeliveredFile(NAME, text.getvalue()),), made.left_out)
