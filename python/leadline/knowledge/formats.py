"""Figures as rules print them: `{rate:size}` in a rule's words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from leadline import units

_WHOLE = 100  # from here on two digits are too few, and would have an exponent


class ShownFigure:
    """A figure that a template prints as one of the forms of `FORMS`, or as text."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def __format__(self, form: str) -> str:
        if self._value is None:
            return "an unknown number" if form else "one that is not known"
        return str(FORMS.get(form, str)(self._value))


class ShownFigures(dict[str, ShownFigure]):
    """Figures as a template prints them, made when one asks: most rules do not hold, and ask for none."""

    def __init__(self, figures: Mapping[str, Any]) -> None:
        super().__init__()
        self._figures = figures

    def __missing__(self, name: str) -> ShownFigure:
        return ShownFigure(self._figures[name])


def _decimal(value: float) -> str:
    return f"{value:.2g}" if abs(value) < _WHOLE else f"{value:,.0f}"


FORMS: Mapping[str, Callable[[Any], str]] = {
    "count": lambda value: f"{value:,.0f}",
    "decimal": _decimal,
    "cores": lambda value: f"{value:.2f}",
    "size": units.format_size,
    "rate": units.format_rate,
    "share": lambda value: f"{100 * value:.0f} %",
    "percent": units.format_percent,
    "seconds": lambda value: units.format_quantity(value, "s"),
    "latency": lambda seconds: units.format_latency(seconds * units.NS_PER_S),
}
