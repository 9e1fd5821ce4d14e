"""What a model says: a range and how it came about, never a figure that was measured."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Computed:
    """One figure of a model, in base units (`B/s`, `1/s`, `s`, `B`, `x` for a ratio).

    `low` and `high` are what it may be by what the model leaves open, the same where it leaves nothing;
    `formula` has the figures that were put in.
    """

    what: str
    low: float
    high: float
    unit: str
    formula: str

    def against(self, measured: float) -> tuple[float, float]:
        """Measured over should be, least and most; below one it was less than the model says."""
        return measured / self.high, measured / self.low


@dataclass(frozen=True)
class ModelSaid:
    """What a model says to one question: its figures, where it is from, where it stops being true."""

    computed: tuple[Computed, ...]
    source: str
    ends: str


def exactly(what: str, value: float, unit: str, formula: str) -> Computed:
    """A figure that the model leaves nothing open of."""
    return Computed(what, value, value, unit, formula)
