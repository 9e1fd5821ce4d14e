"""What leadline makes of each of fio's options: `options.yaml`, read once."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Literal

from leadline.written.yaml_source import read_table

How = Literal["kept", "differs", "kept_on", "free", "refused"]


@dataclass(frozen=True)
class Known:
    """An option of fio under its first name, what becomes of it, and what has to be said of that."""

    name: str
    how: How
    words: str


@functools.cache
def known_options() -> Mapping[str, Known]:
    """Every option that the table knows, under each of its names."""
    text = (resources.files("leadline") / "study" / "fio" / "options.yaml").read_text(encoding="utf-8")
    found: dict[str, Known] = {}
    for how, rows in read_table(text, "options.yaml").value.items():
        for names, words in rows.items():
            every = [name.strip() for name in names.split(",")]
            found |= {name: Known(every[0], how, words) for name in every}
    return found
