"""Amounts over time, with what went on meanwhile shaded: bytes outstanding and the stalls in them."""

from __future__ import annotations

from leadline.report import format as fmt
from leadline.report.charts.parts import PALETTE, Chart, kind_colour, panel
from leadline.verdict.sections.charts import AmountLines


def amount_charts(shown: AmountLines) -> tuple[Chart, ...]:
    """Lines of one scale over bands that say what they are."""
    scale = fmt.scale_for(shown.unit, [max(v for _, v in line.points) for line in shown.lines if line.points])
    rows = [
        {"kind": fmt.printable(line.label), "t": seconds, "value": value / scale.divisor}
        for line in shown.lines
        for seconds, value in line.points
    ]
    x = {
        "field": "t",
        "type": "quantitative",
        "axis": {"title": "seconds since the start", "grid": False},
        "scale": {"zero": True, "nice": False},
    }
    bands = {
        "data": {
            "values": [
                {"t": span.start_s, "to": span.end_s, "tip": fmt.printable(span.words)}
                for span in shown.spans
            ]
        },
        "mark": {"type": "rect", "color": "var(--invalid)", "opacity": 0.18},
        "encoding": {"x": x, "x2": {"field": "to"}, "tooltip": {"field": "tip"}},
    }
    several = len(shown.lines) > 1
    lines = {
        "mark": {"type": "line", "interpolate": "step", "strokeWidth": 1.6, "color": PALETTE[0]},
        "encoding": {
            "x": x,
            "y": {"field": "value", "type": "quantitative", "axis": {"title": None, "format": ",.3~r"}},
            **({"color": kind_colour([fmt.printable(one.label) for one in shown.lines])} if several else {}),
        },
    }
    words = [fmt.printable(span.words) for span in shown.spans[:3]]
    more = [f"{len(shown.spans) - 3} more"] if shown.spans[3:] else []
    said = "; ".join([f"{scale.label} over time", *words, *more])
    layers = [*([bands] if shown.spans else []), lines]
    return (Chart(shown.name, fmt.printable(shown.title), scale.label, said, panel(rows, layers, 150)),)
