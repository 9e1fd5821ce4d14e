"""The map of a sweep: what each cell of its grid gives of the plateau, with the knee marked."""

from __future__ import annotations

from typing import Any

from leadline.report import format as fmt
from leadline.report.charts.parts import PALETTE, Chart, panel
from leadline.verdict.sections.charts import KneeMap

_ROW = 30
_OPACITY = [0.04, 0.7]  # the ink of the numbers stays readable on all of them, in print too
_NARROW = 16  # columns: beyond it numbers are small


def knee_charts(shown: KneeMap) -> tuple[Chart, ...]:
    """The fuller, the nearer to the plateau; numbers are percent, those of cells that were tried in bold."""
    rows = [
        {
            "column": fmt.printable(one.column),
            "row": fmt.printable(one.row),
            "share": 0.0 if one.share is None else min(one.share, 1.0),
            "text": "" if one.share is None else f"{100 * one.share:.0f}",
            "tried": one.trials > 0,
            "knee": one.knee,
            "could_be": one.could_be and not one.knee,
            "tip": fmt.printable(one.words),
        }
        for one in shown.fields
    ]
    place = {
        "x": _axis("column", shown.columns, shown.column_option, "bottom"),
        "y": _axis("row", tuple(reversed(shown.rows)), shown.row_option, "left"),
    }
    tried, knee, could_be = "datum.tried", "datum.knee", "datum.could_be"
    size = 11 if len(shown.columns) <= _NARROW else 8
    layer = [
        {
            "mark": {"type": "rect", "color": PALETTE[0]},
            "encoding": {
                **place,
                "fillOpacity": {
                    "field": "share",
                    "type": "quantitative",
                    "legend": None,
                    "scale": {"domain": [0, 1], "range": _OPACITY},
                },
                "tooltip": {"field": "tip"},
            },
        },
        _frame(place, tried, {"stroke": "var(--muted)", "strokeWidth": 1}),
        _frame(place, could_be, {"stroke": "var(--ink)", "strokeWidth": 1.5, "strokeDash": [3, 2]}),
        _frame(place, knee, {"stroke": "var(--ink)", "strokeWidth": 3.5}),
        _numbers(place, tried, {"color": "var(--ink)", "fontWeight": 700, "fontSize": size}),
        _numbers(
            place,
            f"!{tried}",
            {"color": "var(--ink)", "fontStyle": "italic", "fontWeight": 400, "fontSize": size - 2},
        ),
    ]
    words = "; ".join(str(row["tip"]) for row in rows if row["knee"] or row["could_be"])
    spec = panel(rows, layer, _ROW * len(shown.rows) + 50)
    return (Chart(shown.name, fmt.printable(shown.title), shown.unit, words, spec),)


def _axis(field: str, levels: tuple[str, ...], option: str, side: str) -> dict[str, Any]:
    return {
        "field": field,
        "type": "nominal",
        "sort": [fmt.printable(one) for one in levels],
        "scale": {"domain": [fmt.printable(one) for one in levels], "padding": 0.08},
        "axis": {
            "title": fmt.printable(option) or None,
            "orient": side,
            "labelAngle": 0 if len(levels) <= _NARROW // 2 or side == "left" else -40,
            "grid": False,
            "labelColor": "var(--ink)",
        },
    }


def _frame(place: dict[str, Any], test: str, look: dict[str, Any]) -> dict[str, Any]:
    return {
        "transform": [{"filter": test}],
        "mark": {"type": "rect", "fill": None, **look},
        "encoding": place,
    }


def _numbers(place: dict[str, Any], test: str, look: dict[str, Any]) -> dict[str, Any]:
    return {
        "transform": [{"filter": test}],
        "mark": {"type": "text", **look},
        "encoding": {**place, "text": {"field": "text"}},
    }
