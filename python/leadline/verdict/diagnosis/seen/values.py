"""What figures are made of."""

from __future__ import annotations

Figure = float | str | None
Figures = dict[str, Figure]
ONE_EACH = 1.5  # operations for each request, or the inverse: beyond it their times are not one request's


def ratio(part: Figure, whole: Figure) -> float | None:
    """A part of a whole; None where either is not known, or the whole is 0."""
    return part / whole if isinstance(part, float) and isinstance(whole, float) and whole > 0 else None


def seconds(milliseconds: float | None) -> float | None:
    """Series have times in ms."""
    return None if milliseconds is None else milliseconds / 1e3


def one_each(operations: Figure) -> bool:
    """Whether each request is about one operation, so that the time of these is one of the request's."""
    return isinstance(operations, float) and 1 / ONE_EACH <= operations <= ONE_EACH
