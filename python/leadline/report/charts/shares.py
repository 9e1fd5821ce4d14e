"""Charts of wholes in parts: where the time of each went, with or without the numbers in the bars."""

from __future__ import annotations

from typing import Any

from leadline import units
from leadline.report import format as fmt
from leadline.report.charts.parts import (
    Chart,
    flagged,
    if_invalid,
    in_order,
    kind_colour,
    name_axis,
    panel,
    place_of,
    shade_of,
)
from leadline.verdict.sections.charts import ShareBar, ShareBars

_NAMED_SHARE_MIN = 0.08  # a narrower part has no room for its number


def share_charts(shown: ShareBars) -> tuple[Chart, ...]:
    """A bar for each whole; one panel."""
    return _numbered(shown) if shown.numbers else _plain(shown)


def _names(shown: ShareBars) -> list[str]:
    return list(dict.fromkeys(name for bar in shown.bars for name, _ in bar.parts))


def _numbered(shown: ShareBars) -> tuple[Chart, ...]:
    rows = [row for bar in shown.bars for row in _numbered_rows(bar)]
    if not rows:
        return ()
    words = "; ".join(f"{row['bar']}: {row['name']} {row['label']}" for row in rows)
    layers = _numbered_layers(shown.axis, [str(row["bar"]) for row in rows], _names(shown))
    spec = panel(rows, layers, 28 * len(shown.bars))
    return (Chart(shown.name, fmt.printable(shown.title), shown.unit, words, spec),)


def _numbered_rows(bar: ShareBar) -> list[dict[str, Any]]:
    word = flagged(bar.state)
    rows, start = [], 0.0
    for name, share in bar.parts:
        label = f"{word} {100 * share:.1f} %".strip()
        rows.append(
            {
                "bar": fmt.printable(bar.label),
                "name": name,
                "from": 100 * start,
                "to": 100 * (start + share),
                "middle": 100 * (start + share / 2),
                "label": label,
                "shown": label if share >= _NAMED_SHARE_MIN else "",
                "tip": f"{fmt.printable(bar.words)}: {name} {label}",
                "state": bar.state,
            }
        )
        start += share
    return rows


def _numbered_layers(axis: str | None, bars: list[str], names: list[str]) -> list[dict[str, Any]]:
    y = {
        "field": "bar",
        "type": "nominal",
        "sort": list(dict.fromkeys(bars)),
        "title": axis,
        "axis": {"grid": False, "labelColor": "var(--ink)"},
    }
    shades = {
        "field": "name",
        "type": "nominal",
        "scale": {"domain": names, "range": [shade_of(name, names) for name in names]},
        "legend": {"title": None, "orient": "top", "symbolType": "square"},
    }
    x = {
        "field": "from",
        "type": "quantitative",
        "scale": {"domain": [0, 100], "nice": False},
        "axis": {"title": None, "values": [0, 25, 50, 75, 100]},
    }
    return [
        {
            "mark": {"type": "bar", "height": 17},
            "encoding": {
                "y": y,
                "x": x,
                "x2": {"field": "to"},
                "color": shades,
                "fillOpacity": if_invalid(0.3, 1.0),
                "tooltip": {"field": "tip"},
            },
        },
        {
            "mark": {"type": "text", "fontSize": 10, "fontWeight": 600},
            "encoding": {
                "y": y,
                "x": {"field": "middle", "type": "quantitative"},
                "text": {"field": "shown"},
                "color": {"value": "var(--ink)"},
            },
        },
    ]


def _plain(shown: ShareBars) -> tuple[Chart, ...]:
    names = in_order(_names(shown))
    rows = [
        {
            "bar": fmt.printable(bar.label),
            "kind": name,
            "place": place_of(name, names),
            "value": share * 100,
            "tip": f"{fmt.printable(bar.words)}: {units.format_percent(share)} {name}",
        }
        for bar in shown.bars
        for name, share in bar.parts
    ]
    layer = {
        "mark": {"type": "bar", "height": 18},
        "encoding": {
            "y": {"field": "bar", "type": "nominal", "sort": None, "title": None, "axis": name_axis()},
            "x": {
                "field": "value",
                "type": "quantitative",
                "stack": "zero",
                "scale": {"domain": [0, 100], "nice": False},
                "axis": {"title": None, "values": [0, 25, 50, 75, 100]},
            },
            "order": {"field": "place"},
            "color": kind_colour(names),
            "tooltip": {"field": "tip"},
        },
    }
    words = "; ".join(str(row["tip"]) for row in rows)
    spec = panel(rows, [layer], 30 * len(shown.bars))
    return (Chart(shown.name, fmt.printable(shown.title), shown.unit, words, spec),)
