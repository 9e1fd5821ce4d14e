"""Charts of applications: run time by the number of copies, and where the run time went."""

from __future__ import annotations

from typing import Any

from leadline.report import format as fmt
from leadline.report.charts.parts import (
    DASHES,
    SHAPES,
    Chart,
    colour,
    domain,
    flagged,
    if_invalid,
    panel,
)
from leadline.verdict.model import ApplicationModel, ApplicationPoint, ApplicationView

# Okabe and Ito's colours hold for targets; kinds of time are shades with a word in each.
_KINDS = {
    "read": ("reading", "var(--series-1)"),
    "write": ("writing", "var(--series-2)"),
    "sync": ("syncing", "var(--series-4)"),
    "meta": ("metadata", "var(--series-3)"),
    "compute": ("computing", "var(--grid)"),
}
_MODEL_DASH = [2, 3]
_NAMED_SHARE_MIN = 0.08  # a narrower part has no room for its number


def run_time_charts(view: ApplicationView | None, names: list[str]) -> tuple[Chart, ...]:
    """Run time by copies, a line for each series with its intervals, the model dotted; one panel."""
    points = [p for p in view.points if p.run_time.value is not None] if view else []
    if view is None or not points:
        return ()
    scale = fmt.scale_for("s", [point.run_time.value for point in points])
    rows = [_time_row(point, scale) for point in points]
    models = [row for model in view.models for row in _model_rows(model, scale)]
    words = "; ".join(str(row["tip"]) for row in rows)
    return (
        Chart(
            "copies-0",
            "Run time by number of runs",
            scale.label,
            words,
            panel([*rows, *models], _time_layers(names, rows), 230),
        ),
    )


def _time_row(point: ApplicationPoint, scale: fmt.Scale) -> dict[str, Any]:
    word = flagged(point.state)
    item = point.run_time
    low, high = (None if bound is None else bound / scale.divisor for bound in (item.low, item.high))
    value = (item.value or 0.0) / scale.divisor
    return {
        "kind": "measured",
        "series": fmt.printable(point.series),
        "target": fmt.printable(point.target),
        "copies": point.copies,
        "value": value,
        "low": low,
        "high": None if high is None else min(high, 3 * value),  # two blocks: an interval without end
        "state": point.state,
        "tip": " ".join(
            f"{fmt.printable(point.series)}, {fmt.plural(point.copies, 'copy').replace('copys', 'copies')}:"
            f" {word} {fmt.number(item.value, scale)} {scale.label} {fmt.spread(item)}".split()
        ),
        "word": word,
    }


def _model_rows(model: ApplicationModel, scale: fmt.Scale) -> list[dict[str, Any]]:
    return [
        {
            "kind": "model",
            "series": fmt.printable(model.series),
            "target": fmt.printable(model.target),
            "copies": copies,
            "value": seconds / scale.divisor,
            "state": "VALID",
            "word": "",
        }
        for copies, seconds, _ in model.points
    ]


def _time_layers(names: list[str], rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    x = {
        "field": "copies",
        "type": "quantitative",
        "scale": {"zero": True, "nice": False},
        "axis": {
            "title": "copies at once",
            "grid": False,
            "values": sorted({row["copies"] for row in rows}),
            "format": "d",
        },
    }
    y = {
        "field": "value",
        "type": "quantitative",
        "scale": {"zero": True},
        "axis": {"title": None, "tickCount": 5, "format": ",.3~r"},
    }
    shared = {"x": x, "y": y, "color": colour(names), "detail": {"field": "series"}}
    dash = {"field": "target", "type": "nominal", "legend": None, "scale": domain(names, DASHES)}
    shape = {"field": "target", "type": "nominal", "legend": None, "scale": domain(names, SHAPES)}
    measured = [{"filter": "datum.kind === 'measured'"}]
    return [
        {
            "mark": {"type": "line", "strokeWidth": 1.2, "strokeDash": _MODEL_DASH, "opacity": 0.8},
            "transform": [{"filter": "datum.kind === 'model'"}],
            "encoding": shared,
        },
        {
            "mark": {"type": "rule", "strokeWidth": 1.4},
            "transform": [*measured, {"filter": "isValid(datum.low) && isValid(datum.high)"}],
            "encoding": {
                "x": x,
                "y": {"field": "low", "type": "quantitative"},
                "y2": {"field": "high"},
                "color": colour(names),
            },
        },
        {
            "mark": {"type": "line", "strokeWidth": 1.8},
            "transform": measured,
            "encoding": {**shared, "strokeDash": dash},
        },
        {
            "mark": {"type": "point", "filled": True, "size": 60, "opacity": 1},
            "transform": measured,
            "encoding": {**shared, "shape": shape, "tooltip": {"field": "tip"}},
        },
        {
            "mark": {"type": "text", "dy": -12, "fontSize": 10, "fontWeight": 600},
            "transform": [*measured, {"filter": "datum.word !== ''"}],
            "encoding": {
                "x": x,
                "y": y,
                "text": {"field": "word"},
                "color": if_invalid("var(--invalid)", "var(--ink)"),
            },
        },
    ]


def share_charts(view: ApplicationView | None) -> tuple[Chart, ...]:
    """Where the run time went, a panel for each series: a bar for each number of copies, in parts."""
    charts: list[Chart] = []
    for series in dict.fromkeys(point.series for point in view.points) if view else ():
        points = [point for point in view.points if point.series == series] if view else []
        rows = [row for point in points for row in _share_rows(point)]
        if rows:
            title = fmt.printable(series)
            words = "; ".join(f"{row['bar']}: {row['name']} {row['label']}" for row in rows)
            layers = _share_layers([str(row["bar"]) for row in rows])
            charts.append(
                Chart(
                    f"shares-{len(charts)}",
                    title,
                    "% of the run time",
                    words,
                    panel(rows, layers, 28 * len(points)),
                )
            )
    return tuple(charts)


def _share_rows(point: ApplicationPoint) -> list[dict[str, Any]]:
    known = {kind: point.shares[kind].value for kind in _KINDS if kind in point.shares}
    if len(known) < len(_KINDS) or None in known.values():
        return []
    word = flagged(point.state)
    rows, start = [], 0.0
    for kind, (name, _) in _KINDS.items():
        share = known[kind] or 0.0
        label = f"{word} {100 * share:.1f} %".strip()
        rows.append(
            {
                "bar": f"{point.copies}",
                "name": name,
                "from": 100 * start,
                "to": 100 * (start + share),
                "middle": 100 * (start + share / 2),
                "label": label,
                "shown": label if share >= _NAMED_SHARE_MIN else "",
                "tip": f"{fmt.printable(point.series)}, {point.copies} at once: {name} {label}",
                "state": point.state,
            }
        )
        start += share
    return rows


def _share_layers(bars: list[str]) -> list[dict[str, Any]]:
    y = {
        "field": "bar",
        "type": "nominal",
        "sort": list(dict.fromkeys(bars)),
        "title": "copies at once",
        "axis": {"grid": False, "labelColor": "var(--ink)"},
    }
    kinds = list(_KINDS.values())
    shades = {
        "field": "name",
        "type": "nominal",
        "scale": {"domain": [name for name, _ in kinds], "range": [shade for _, shade in kinds]},
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
