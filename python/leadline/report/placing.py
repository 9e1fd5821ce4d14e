"""Puts the path of a result into the commands that a screen suggests: they are written with `DIR`."""

from __future__ import annotations

import re
from pathlib import Path

from leadline.units import quoted

ANYWHERE = "DIR"
_COMMAND = re.compile(r"\b(leadline(?: [a-z]+){1,2}(?: --[a-z-]+)?) DIR\b(?!/)")


def word_for(path: Path | None) -> str:
    """How a shell is told of a result; `DIR` where it is not to be named."""
    return ANYWHERE if path is None else quoted(path)


def placed(text: str, word: str) -> str:
    """A text whose commands name the result."""
    return text if word == ANYWHERE else _COMMAND.sub(lambda found: f"{found[1]} {word}", text)
