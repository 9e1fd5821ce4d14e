"""What the verbs of `leadline lab` have in common when they speak."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from leadline.cli.console import echo, echo_text

if TYPE_CHECKING:
    from leadline.lab import LabStatus


def say(words: str) -> None:
    """What goes on, on standard error."""
    echo(f"lab: {words}", err=True)


def print_json(value: dict[str, Any]) -> None:
    """A document for programs."""
    echo_text(json.dumps(value, indent=1))


def target_options(found: LabStatus) -> str:
    """The lab's directories as options of other verbs."""
    import shlex

    options = (f"--target {name}={shlex.quote(str(path))}" for name, path in found.targets.items())
    return " ".join(options)
