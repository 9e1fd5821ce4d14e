"""Charts of chains: one bar for each target, in parts by where the bytes came from, or how far they got.

The nearer to the device, the darker the part; the legend is the page's own.
"""

from __future__ import annotations

from typing import Any

from leadline.report import format as fmt
from leadline.report.charts.parts import Chart, flagged, if_invalid, name_axis, panel
from leadline.units import whole_percent
from leadline.verdict.model import Cell, Chain, Findings

_DARKNESS = {
    "memory": 0.15,
    "page_cache": 0.15,
    "client_cache": 0.32,
    "wire": 0.44,
    "gateway": 0.44,
    "osd_cache": 0.56,
    "osd": 0.72,
    "server": 1.0,
    "store": 1.0,
    "device": 1.0,
}
_LIGHT_MAX = 0.6  # darker parts have light letters
_LABEL_SHARE_MIN = 0.12


def chain(place: int, work: str, cells: tuple[Cell, ...], names: list[str], direction: str) -> Chart | None:
    """The chains of one work in one direction; None where nothing is known of them."""
    found = [(cell, item) for cell in cells for item in cell.chains if item.direction == direction]
    rows = [row for cell, item in found for row in _rows(cell, item)]
    if not any(row["known"] for row in rows):
        return None
    drawn = len({row["target"] for row in rows})
    several = len({item.direction for cell in cells for item in cell.chains}) > 1
    unit = "of the bytes read" if direction == "read" else "of the bytes written"
    return Chart(
        f"chain-{direction}-{place}",
        fmt.printable(work) + (f", {direction}" if several else ""),
        unit,
        "; ".join(dict.fromkeys(row["tip"] for row in rows)),
        panel(rows, _layers(names), 26 * drawn + 24),
    )


def chain_legend(findings: Findings) -> tuple[tuple[str, float], ...]:
    """(words, darkness) of every place that a chart shows, from the application to the device."""
    found = {
        item.words: darkness(item.name)
        for cell in findings.cells
        for part in cell.chains
        for item in part.places
        if item.share
    }
    return tuple(sorted(found.items(), key=lambda item: item[1]))


def darkness(name: str) -> float:
    """How dark a place is drawn; places that nothing tells apart as the nearest of them."""
    return min(_DARKNESS[part] for part in name.split("+"))


def _rows(cell: Cell, chain: Chain) -> list[dict[str, Any]]:
    target, word = fmt.printable(cell.target), flagged(cell.validity.state)
    shared = {"target": target, "state": cell.validity.state, "word": word}
    if not any(item.share is not None for item in chain.places):
        text = "not observable"
        return [
            {
                **shared,
                "begin": 0.0,
                "end": 0.0,
                "dark": 0.0,
                "label": text,
                "tip": f"{target}: {text}",
                "known": False,
            }
        ]
    tip = f"{target}{f' {word}' if word else ''}: " + ", ".join(
        f"{item.words} {whole_percent(item.share)}" for item in chain.places
    )
    rows: list[dict[str, Any]] = []
    begin = 0.0
    for item in chain.places:
        end = begin + (item.share or 0.0)
        rows.append(
            {
                **shared,
                "begin": begin,
                "end": end,
                "dark": darkness(item.name),
                "label": whole_percent(item.share) if end - begin >= _LABEL_SHARE_MIN else "",
                "tip": tip,
                "known": True,
            }
        )
        begin = end
    return rows


def _layers(names: list[str]) -> list[dict[str, Any]]:
    y = {"field": "target", "type": "nominal", "sort": names, "title": None, "axis": name_axis()}
    axis = {"title": None, "values": [0, 0.25, 0.5, 0.75, 1], "format": ".0%"}
    begin = {
        "field": "begin",
        "type": "quantitative",
        "scale": {"domain": [0, 1.28], "nice": False},
        "axis": axis,
    }
    light = {
        "condition": {"test": f"datum.dark > {_LIGHT_MAX}", "value": "var(--paper)"},
        "value": "var(--ink)",
    }
    return [
        {
            "mark": {"type": "bar", "height": 17, "color": "var(--series-1)", "stroke": "var(--series-1)"},
            "transform": [{"filter": "datum.end > datum.begin"}],
            "encoding": {
                "y": y,
                "x": begin,
                "x2": {"field": "end"},
                "fillOpacity": {"field": "dark", "type": "quantitative", "scale": None, "legend": None},
                "strokeDash": if_invalid([3, 2], [1, 0]),
                "tooltip": {"field": "tip"},
            },
        },
        {
            "mark": {"type": "text", "align": "left", "dx": 5, "fontSize": 10},
            "encoding": {"y": y, "x": begin, "text": {"field": "label"}, "color": light},
        },
        {
            "mark": {"type": "text", "align": "left", "dx": 6, "fontSize": 10, "color": "var(--invalid)"},
            "transform": [{"filter": "datum.word !== '' && datum.begin == 0"}],
            "encoding": {"y": y, "x": {"datum": 1}, "text": {"field": "word"}},
        },
    ]
