"""What all charts share: their look, the colours, dashes and shapes of targets, and words beside numbers.

Colours are CSS variables of the page, so a chart follows light, dark and print. `page.css` has their values.
The same target has the same colour, dash and shape in every chart, and no meaning rests on colour alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from leadline.report import format as fmt
from leadline.report import tables
from leadline.units import format_times
from leadline.verdict.model import Findings

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"
# Okabe and Ito's order.
PALETTE = tuple(f"var(--series-{place})" for place in range(1, 9))
DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [1, 3], [10, 4], [4, 2, 1, 2], [12, 3])
FIELD = "var(--field)"  # below letters: they can be read on its full colour
TINT = 0.35  # of a colour below letters
SHAPES = (
    "circle",
    "square",
    "triangle-up",
    "diamond",
    "cross",
    "triangle-down",
    "triangle-right",
    "triangle-left",
)

CONFIG: dict[str, Any] = {
    "aria": False,
    "background": None,
    "font": FONT,
    "view": {"stroke": None},
    "axis": {
        "domain": False,
        "ticks": False,
        "gridColor": "var(--grid)",
        "labelColor": "var(--muted)",
        "titleColor": "var(--muted)",
        "labelFontSize": 11,
        "titleFontSize": 11,
        "titleFontWeight": "normal",
        "labelPadding": 5,
        "titlePadding": 7,
    },
    "text": {"color": "var(--ink)", "fontSize": 11},
    "legend": {"labelColor": "var(--ink)", "titleColor": "var(--muted)"},
    "title": {"color": "var(--ink)", "fontSize": 12, "fontWeight": 600, "anchor": "start"},
}


class Titled(Protocol):
    """A part of a section that is drawn as one chart."""

    @property
    def name(self) -> str:
        """The chart's."""

    @property
    def title(self) -> str:
        """What heads it."""


@dataclass(frozen=True)
class Chart:
    """One panel: `title` and `unit` head it, `reading` is the fact that it shows.

    `words` has its values for who cannot see it. An empty `spec` is no picture: the reading says all.
    """

    id: str
    title: str
    unit: str
    words: str
    spec: dict[str, Any]
    reading: str = ""


def target_names(findings: Findings) -> list[str]:
    """Printable target names in the order given: the domain of every colour scale."""
    return list(dict.fromkeys(fmt.printable(name) for name in tables.by_target(findings)))


def flagged(state: str) -> str:
    """The word that must stand beside a number in this state; DOUBTFUL is said in the tables."""
    return "" if state in ("VALID", "DOUBTFUL") else state.replace("_", " ")


def panel(rows: list[dict[str, Any]], layer: list[dict[str, Any]], height: int = 170) -> dict[str, Any]:
    """A Vega-Lite specification as wide as its place on the page, `height` CSS pixels high."""
    return {
        "data": {"values": rows},
        "width": "container",
        "height": height,
        "autosize": {"type": "fit-x", "contains": "padding"},
        "layer": layer,
    }


def charts_of(
    shown: Titled,
    unit: str,
    words: str,
    rows: list[dict[str, Any]],
    layers: list[dict[str, Any]],
    height: int,
    reading: str,
) -> tuple[Chart, ...]:
    """The one chart of a part of a section."""
    spec = panel(rows, layers, height)
    return (Chart(shown.name, fmt.printable(shown.title), unit, words, spec, fmt.printable(reading)),)


def times(more: float, less: float) -> str:
    """How many times as much, below two in percent: `2.5x`, `12 % above`; empty where it says nothing."""
    if not (more > 0 and less > 0 and math.isfinite(more / less)):
        return ""
    factor = more / less
    return format_times(factor) if factor >= 2 else f"{100 * (factor - 1):.0f} % above"


def most_of(
    values: Iterable[tuple[str, float | None]],
    text: Callable[[float], str],
    what: str = "has the highest mean",
) -> str:
    """The largest of named values and how far the smallest is from it, as a sentence."""
    found = [(name, value) for name, value in values if value is not None and math.isfinite(value)]
    if not found:
        return "No value can be used."
    (best, most), (last, least) = max(found, key=_second), min(found, key=_second)
    if len(found) == 1:
        return f"{best}: {text(most)}."
    factor = times(most, least)
    if not factor or factor.startswith("0 %"):
        return f"{best}: {text(most)}; {last}: {text(least)}."
    beside = f"{factor} that of {last}" if factor.endswith("x") else f"{factor} {last}"
    return f"{best} {what}: {text(most)}, {beside}."


def _second(pair: tuple[str, float]) -> float:
    return pair[1]


_NAMED_MAX = 4  # in a sentence


def listed(entries: Sequence[str], noun: str) -> str:
    """The first of them as a sentence, and how many more there are."""
    rest = len(entries) - _NAMED_MAX
    more = [f"{fmt.plural(rest, noun)} more"] if rest > 0 else []
    return "; ".join([*entries[:_NAMED_MAX], *more]) + "." if entries else ""


def tips(rows: Iterable[Mapping[str, Any]]) -> str:
    """What a chart shows, in words."""
    return "; ".join(str(row["tip"]) for row in rows)


def marks(mark: dict[str, Any], encoding: dict[str, Any], *where: str) -> dict[str, Any]:
    """Marks of the rows that hold all of `where`."""
    transform = {"transform": [{"filter": one} for one in where]} if where else {}
    return {"mark": mark, **transform, "encoding": encoding}


def quantitative(field: str, **channel: Any) -> dict[str, Any]:
    """A channel by a number of the rows."""
    return {"field": field, "type": "quantitative", **channel}


def nominal(field: str, **channel: Any) -> dict[str, Any]:
    """A channel by a name in the rows."""
    return {"field": field, "type": "nominal", **channel}


def dash(names: list[str]) -> dict[str, Any]:
    """The dashes of targets' lines."""
    return nominal("target", legend=None, scale=domain(names, DASHES))


def shape(names: list[str]) -> dict[str, Any]:
    """The shapes of targets' points."""
    return nominal("target", legend=None, scale=domain(names, SHAPES))


def colour(names: list[str]) -> dict[str, Any]:
    """The colour channel; the legend is the page's own, or is switched on in a saved picture."""
    return {"field": "target", "type": "nominal", "legend": None, "scale": domain(names, PALETTE)}


def domain(names: list[str], choices: Iterable[Any]) -> dict[str, Any]:
    """A scale that gives every target the same choice in every chart."""
    options = list(choices)
    return {"domain": names, "range": [options[place % len(options)] for place in range(len(names))]}


def linear_ticks(maximum: float) -> list[float]:
    """Three to five round numbers from 0 up to `maximum`, none beyond it."""
    if maximum <= 0:
        return [0.0]
    power = 10.0 ** math.floor(math.log10(maximum))
    step = next(part * power for part in (5.0, 2.0, 1.0, 0.5, 0.25, 0.2) if maximum / (part * power) >= 2)
    return [round(place * step, 12) for place in range(int(maximum / step + 1e-9) + 1)]


def label(word: str, text: str | None) -> str:
    """The number beside a bar, never without its cell's word; the word alone where there is no number."""
    return f"{word} {text}".strip() if text is not None else word or "not measured"


def scaled(value: float | None, scale: fmt.Scale) -> float | None:
    """`value` in the chart's unit; None where there is no number."""
    return None if value is None or not math.isfinite(value) else value / scale.divisor


def name_axis() -> dict[str, Any]:
    """The axis of a bar chart that names its bars."""
    return {"labelLimit": 130, "labelColor": "var(--ink)", "grid": False}


def if_invalid(yes: Any, no: Any) -> dict[str, Any]:
    """A channel's value for marks of INVALID cells and for all others."""
    return {"condition": {"test": "datum.state === 'INVALID'", "value": yes}, "value": no}


# Colours of kinds of time: Okabe and Ito's hold for targets, these are shades with a word in each.
# In the order in which bars are divided; a kind that is not listed comes after them.
_SHADES = {
    "reading": PALETTE[0],
    "writing": PALETTE[1],
    "metadata": PALETTE[2],
    "syncs": PALETTE[3],
    "syncing": PALETTE[3],
    "computing": "var(--grid)",
    "outside of file calls": "var(--grid)",
    "waiting": PALETTE[4],
}
_PLACES = {
    **{"reading": 0, "writing": 1, "metadata": 2, "syncs": 3, "syncing": 3},
    **{"computing": 4, "outside of file calls": 4, "waiting": 5},
}
LEGEND = {"title": None, "orient": "bottom", "symbolType": "square", "columns": 3}


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
