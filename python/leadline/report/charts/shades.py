"""Colours of kinds of time: Okabe and Ito's hold for targets, these are shades with a word in each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from leadline.report.charts.parts import PALETTE

# In the order in which bars are divided; a kind that is not listed comes after them.
_SHADES = {
    "reading": PALETTE[0],
    "writing": PALETTE[1],
    "metadata": PALETTE[2],
    "syncs": PALETTE[3],
    "syncing": PALETTE[3],
    "computing": "var(--grid)",
}
_PLACES = {"reading": 0, "writing": 1, "metadata": 2, "syncs": 3, "syncing": 3, "computing": 4}
LEGEND = {"title": None, "orient": "bottom", "symbolType": "square"}


def shade_of(name: str, names: Sequence[str]) -> str:
    """The colour of a kind, the same in every chart."""
    return _SHADES.get(name) or PALETTE[list(names).index(name) % len(PALETTE)]


def place_of(name: str, names: Sequence[str]) -> int:
    """Where a kind stands in a bar."""
    return _PLACES.get(name, len(_PLACES) + list(names).index(name))


def in_order(names: Sequence[str]) -> list[str]:
    """The kinds as bars have them."""
    return sorted(names, key=lambda name: place_of(name, names))


def kind_colour(names: Sequence[str]) -> dict[str, Any]:
    """The colour channel of kinds, with a legend of its own."""
    return {
        "field": "kind",
        "type": "nominal",
        "scale": {"domain": list(names), "range": [shade_of(name, names) for name in names]},
        "legend": LEGEND,
    }
