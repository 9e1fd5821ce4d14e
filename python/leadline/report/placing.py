"""Puts the path of a result into the commands that a screen suggests: they are written with `DIR`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any, TypeVar, cast

from leadline.units import quoted

ANYWHERE = "DIR"
_COMMAND = re.compile(r"\b(leadline(?: [a-z]+){1,2}(?: --[a-z-]+)?) DIR\b(?!/)")

_Value = TypeVar("_Value")


def word_for(path: Path | None) -> str:
    """How a shell is told of a result; `DIR` where it is not to be named."""
    return ANYWHERE if path is None else quoted(path)


def placed(text: str, word: str) -> str:
    """A text whose commands name the result."""
    return text if word == ANYWHERE else _COMMAND.sub(lambda found: f"{found[1]} {word}", text)


def placed_deep(value: _Value, word: str) -> _Value:
    """`value` with every text in it, however deep, placed."""
    found: Any = value
    if isinstance(value, str):
        found = placed(value, word)
    elif is_dataclass(value) and not isinstance(value, type):
        changed = {f.name: placed_deep(getattr(value, f.name), word) for f in fields(value) if f.init}
        found = replace(cast(Any, value), **changed)
    elif isinstance(value, Mapping):
        found = {key: placed_deep(item, word) for key, item in value.items()}
    elif isinstance(value, tuple) and not hasattr(value, "_fields"):
        found = tuple(placed_deep(item, word) for item in value)
    elif isinstance(value, list):
        found = [placed_deep(item, word) for item in value]
    return cast(_Value, found)
