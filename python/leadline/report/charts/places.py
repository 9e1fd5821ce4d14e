"""The picture of the way of a cell: a frame for each part from the work to the device, filled as it was used.

What bounds is told by a word, a thicker frame and a larger bead, not by its colour alone.
"""

from __future__ import annotations

from typing import Any

from leadline.report import format as fmt
from leadline.report.charts.parts import Chart, panel
from leadline.verdict.sections.charts import PlacesChain, PlaceUse

_ROW_PX = 50
_TOP, _END = 0.37, 0.6  # of a row: above it stand its names, below what waits
_BEAD = -0.035  # left of the frames, in their widths: a bead each, and the thread from one to the next
_LETTERS = 62  # of what waits: as many as a panel has room for
_MARKED = {"condition": {"test": "datum.bounds", "value": "var(--invalid)"}}


def places_chart(shown: PlacesChain) -> tuple[Chart, ...]:
    """One picture, part below part, in the direction in which a request goes."""
    if not shown.uses:
        return ()
    rows = [_row(place, part) for place, part in enumerate(shown.uses)]
    words = f"{fmt.printable(shown.bound)}. " + "; ".join(str(row["tip"]) for row in rows)
    spec = panel(rows, _layers(len(rows)), _ROW_PX * len(rows))
    return (Chart(shown.name, fmt.printable(shown.title), fmt.printable(shown.bound), words, spec),)


def _row(place: int, part: PlaceUse) -> dict[str, Any]:
    number = "not observed" if part.can_be_full else ""
    if part.use is not None:
        number = f"{100 * part.use:.0f} %"
    waits = fmt.printable(part.waits) if part.waits != number else ""
    said = [words for words in (number, waits, "this bounds it" if part.bounds else "") if words]
    return {
        "top": place + _TOP,
        "end": place + _END,
        "middle": place + (_TOP + _END) / 2,
        "next": place + 1 + (_TOP + _END) / 2,
        "bead": _BEAD,
        "left": 0,
        "right": 1,
        "place": part.place,
        "what": part.what,
        "use": min(part.use or 0.0, 1.0),
        "seen": part.use is not None,
        "framed": part.can_be_full,
        "number": f"{number}  \u25c0 bounds it".strip() if part.bounds else number,
        "waits": waits if len(waits) <= _LETTERS else f"{waits[: _LETTERS - 1]}\u2026",
        "bounds": part.bounds,
        "tip": f"{part.place}, {part.what}: {', '.join(said)}",
    }


def _layers(rows: int) -> list[dict[str, Any]]:
    shape = {"type": "quantitative", "axis": None}
    x = {**shape, "scale": {"domain": [1.4 * _BEAD, 1], "nice": False}}
    y = {**shape, "scale": {"domain": [0, rows], "reverse": True, "nice": False}}
    bead = {"x": {"field": "bead", **x}, "y": {"field": "middle", **y}}
    left, right = {"field": "left", **x}, {"field": "right", **x}
    box = {"x": left, "y": {"field": "top", **y}, "y2": {"field": "end"}, "tooltip": {"field": "tip"}}
    above, below = {"field": "top", **y}, {"field": "end", **y}
    names = {"align": "left", "baseline": "bottom", "dy": -3}
    return [
        *_beads(bead, rows),
        {
            "mark": {"type": "rect", "cornerRadius": 2},
            "transform": [{"filter": "datum.seen"}],
            "encoding": {
                **box,
                "x2": {"field": "use"},
                "color": {**_MARKED, "value": "var(--series-1)"},
                "fillOpacity": {"condition": {"test": "datum.bounds", "value": 0.85}, "value": 0.55},
            },
        },
        _frame(box, "datum.framed && datum.seen", [1, 0]),
        _frame(box, "datum.framed && !datum.seen", [3, 3]),
        _text("place", {**names, "fontWeight": 600}, left, above),
        _text("what", {**names, "dx": 56}, left, above),
        _text("number", {**names, "align": "right"}, right, above, {**_MARKED, "value": "var(--ink)"}),
        _text("waits", {"align": "left", "baseline": "top", "dy": 3, "fontSize": 10}, left, below),
    ]


def _frame(box: dict[str, Any], which: str, dash: list[int]) -> dict[str, Any]:
    return {
        "mark": {"type": "rect", "fillOpacity": 0, "cornerRadius": 2, "strokeDash": dash},
        "transform": [{"filter": which}],
        "encoding": {
            **box,
            "x2": {"field": "right"},
            "stroke": {**_MARKED, "value": "var(--muted)"},
            "strokeWidth": {"condition": {"test": "datum.bounds", "value": 2.4}, "value": 0.8},
        },
    }


def _beads(bead: dict[str, Any], rows: int) -> list[dict[str, Any]]:
    return [
        {
            "mark": {"type": "rule", "color": "var(--muted)", "strokeWidth": 1},
            "transform": [{"filter": f"datum.next < {rows}"}],
            "encoding": {**bead, "y2": {"field": "next"}},
        },
        {
            "mark": {"type": "point", "shape": "circle", "filled": True, "opacity": 1},
            "encoding": {
                **bead,
                "size": {"condition": {"test": "datum.bounds", "value": 110}, "value": 36},
                "color": {**_MARKED, "value": "var(--muted)"},
            },
        },
    ]


def _text(
    field: str,
    mark: dict[str, Any],
    x: dict[str, Any],
    y: dict[str, Any],
    colour: dict[str, Any] | None = None,
) -> dict[str, Any]:
    plain = {"value": "var(--muted)" if field == "waits" else "var(--ink)"}
    encoding = {"x": x, "y": y, "text": {"field": field}, "color": colour or plain}
    return {"mark": {"type": "text", **mark}, "encoding": encoding}
