"""What every rule on options yields, and the bounds that rules share."""

from __future__ import annotations

from dataclasses import dataclass

from leadline import units

BS_MIN_BYTES = 512
BS_MAX_BYTES = units.GIB
BS_DEFAULT_BYTES = 4096  # fio's default


@dataclass(frozen=True)
class Problem:
    """`key` is the option that is at fault."""

    key: str
    message: str
    remedy: str
