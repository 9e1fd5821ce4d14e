"""What the verbs of `leadline lab` have in common: which lab is meant, and how they speak."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leadline.cli.console import echo, echo_text
from leadline.errors import UsageError

if TYPE_CHECKING:
    from leadline.lab import Lab, LabStatus


def open_lab(name: str, directory: Path | None) -> Lab:
    """The lab of this name, or in this directory. Raises UsageError where both are given."""
    from leadline import lab

    require_one(name, directory)
    return lab.open(directory if directory is not None else name)


def require_one(name: str, directory: Path | None) -> None:
    """Raises UsageError where a lab is named in both ways."""
    if name and directory is not None:
        raise UsageError("a name and --dir were given", "Give one of the two.")


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
