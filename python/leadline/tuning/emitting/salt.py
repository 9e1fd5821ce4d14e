"""A state of Salt: files, deeds and mounts; applied twice, the second time changes nothing."""

from __future__ import annotations

import shlex
from typing import Any

from leadline.escapes import yaml_text
from leadline.mounting.emit import salt_state
from leadline.tuning.emitting.delivery import DeliveredFile, Emission, Rendered, hashed
from leadline.tuning.emitting.everything import bundle, holds_already
from leadline.tuning.emitting.host_files import HEAD

NAME = "leadline_tuning.sls"


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
    return Rendered((DeliveredFile(NAME, head + yaml_text(states)),), made.left_out)
