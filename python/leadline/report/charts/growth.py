"""Charts of growth: seconds or rates by how many at once, with intervals, and what a model says of it."""

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
from leadline.verdict.sections.charts import GrowthLines, GrowthModel, GrowthPoint

_MODEL_DASH = [2, 3]


def growth_charts(shown: GrowthLines, names: list[str]) -> tuple[Chart, ...]:
    """A line for each series with its intervals, the model dotted; one panel."""
    points = [point for point in shown.points if point.value.value is not None]
    if not points:
        return ()
    scale = fmt.scale_for(shown.unit, [point.value.value for point in points])
    rows = [_time_row(point, scale) for point in points]
    models = [row for model in shown.models for row in _model_rows(model, scale)]
    words = "; ".join(str(row["tip"]) for row in rows)
    spec = panel([*rows, *models], _time_layers(shown.axis, names, rows), 230)
    return (Chart(shown.name, fmt.printable(shown.title), scale.label, words, spec),)


def _time_row(point: GrowthPoint, scale: fmt.Scale) -> dict[str, Any]:
    word = flagged(point.state)
    item = point.value
    low, high = (None if bound is None else bound / scale.divisor for bound in (item.low, item.high))
    value = (item.value or 0.0) / scale.divisor
    number = f"{fmt.number(item.value, scale)} {scale.label} {fmt.spread(item)}"
    tip = f"{fmt.printable(point.words)}: {word} {number}"
    return {
        "kind": "measured",
        "series": fmt.printable(point.series),
        "target": fmt.printable(point.target),
        "copies": point.count,
        "value": value,
        "low": low,
        "high": None if high is None else min(high, 3 * value),  # two blocks: an interval without end
        "state": point.state,
        "tip": " ".join(tip.split()),
        "word": word,
    }


def _model_rows(model: GrowthModel, scale: fmt.Scale) -> list[dict[str, Any]]:
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
        for copies, seconds in model.points
    ]


def _time_layers(axis: str, names: list[str], rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    x = {
        "field": "copies",
        "type": "quantitative",
        "scale": {"zero": True, "nice": False},
        "axis": {
            "title": fmt.printable(axis),
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
