"""What figures are made of."""

from __future__ import annotations

Figure = float | str | None
Figures = dict[str, Figure]


def ratio(part: Figure, whole: Figure) -> float | None:
    """A part of a whole; None where either is not known, or the whole is 0."""
    return part / whole if isinstance(part, float) and isinstance(whole, float) and whole > 0 else None


def seconds(milliseconds: float | None) -> float | None:
    """Series have times in ms."""
    return None if milliseconds is None else milliseconds / 1e3
