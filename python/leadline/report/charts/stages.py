"""The Gantt chart of a pipeline: what each target did when, all on one scale of time, as Vega-Lite."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from leadline.report import format as fmt
from leadline.report.charts.parts import Chart, colour, flagged, if_invalid, linear_ticks, panel
from leadline.verdict.sections.charts import StageBars, StageSpan

_BAR, _GAP = 14, 8  # CSS pixels
_TEXT_ROOM = 1.25  # the time axis goes on past the last bar, so that its number has room


def stage_charts(shown: StageBars, names: list[str]) -> tuple[Chart, ...]:
    """A panel for each target: a line for each stage, a bar for each client's.

    A name that is no target of the result has a colour behind those: without one its bars cannot be seen.
    """
    spans = shown.spans
    names = list(dict.fromkeys([*names, *(fmt.printable(span.target) for span in spans)]))
    last_s = max((span.end_s for span in spans), default=0.0)
    if last_s <= 0:
        return ()
    scale = fmt.scale_for("s", [last_s])
    charts = []
    for place, series in enumerate(dict.fromkeys(span.series for span in spans)):
        rows = [_row(span, scale) for span in spans if span.series == series]
        stages = list(dict.fromkeys(str(row["stage"]) for row in rows))
        words = "; ".join(str(row["tip"]) for row in rows)
        clients = len({span.client for span in spans if span.series == series})
        height = len(stages) * (_BAR * clients + _GAP)
        layers = _layers(stages, names, last_s / scale.divisor)
        charts.append(
            Chart(
                f"{shown.name}-{place}",
                fmt.printable(series),
                scale.label,
                words,
                panel(rows, layers, height),
            )
        )
    return tuple(charts)


def _row(span: StageSpan, scale: fmt.Scale) -> dict[str, Any]:
    word = flagged(span.state) if span.state else ""
    took = fmt.printable(span.label) or fmt.with_unit(span.end_s - span.start_s, "s")
    took = f"{word} {took}".strip()
    note = f", {fmt.printable(span.words)}" if span.words else ""
    return {
        "stage": fmt.printable(span.stage),
        "target": fmt.printable(span.target),
        "client": span.client,
        "from": span.start_s / scale.divisor,
        "to": span.end_s / scale.divisor,
        "label": took,
        "state": span.state,
        "tip": f"{fmt.printable(span.stage)}, client {span.client}: {took}{note}",
    }


def _layers(stages: Sequence[str], names: list[str], last: float) -> list[dict[str, Any]]:
    y = {
        "field": "stage",
        "type": "nominal",
        "sort": list(stages),
        "title": None,
        "axis": {"grid": True, "labelColor": "var(--ink)", "labelLimit": 130},
    }
    # Without a sort of its own each layer has another, and Vega complains of every panel.
    offset = {"field": "client", "type": "nominal", "sort": "ascending"}
    x = {
        "field": "from",
        "type": "quantitative",
        "scale": {"domain": [0, last * _TEXT_ROOM], "nice": False},
        "axis": {"title": None, "grid": False, "values": linear_ticks(last)},
    }
    return [
        {
            "mark": {"type": "bar", "height": {"band": 0.8}, "minBandSize": 1},
            "encoding": {
                "y": y,
                "yOffset": offset,
                "x": x,
                "x2": {"field": "to"},
                "color": colour(names),
                "fillOpacity": if_invalid(0.3, 1.0),
                "tooltip": {"field": "tip"},
            },
        },
        {
            "mark": {"type": "text", "align": "left", "dx": 4, "fontSize": 10},
            "encoding": {
                "y": y,
                "yOffset": offset,
                "x": {"field": "to", "type": "quantitative"},
                "text": {"field": "label"},
                "color": if_invalid("var(--invalid)", "var(--ink)"),
            },
        },
    ]
