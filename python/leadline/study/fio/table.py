"""What leadline makes of each of fio's options: `options.yaml`, read once."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from leadline.knowledge.tables import table_of

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
    found: dict[str, Known] = {}
    how: Any
    for how, rows in table_of("leadline.study.fio", "options.yaml").items():
        for names, words in rows.items():
            every = [name.strip() for name in names.split(",")]
            found |= {name: Known(every[0], how, words) for name in every}
    return found
