"""Charts over time, and of counts: bytes moved, heat maps, lives, what took longest, how large."""

from __future__ import annotations

from typing import Any

from leadline import units
from leadline.report import format as fmt
from leadline.report.charts.parts import (
    LEGEND,
    PALETTE,
    Chart,
    in_order,
    kind_colour,
    name_axis,
    panel,
    shade_of,
)
from leadline.verdict.sections.charts import CountBars, HeatMap, LifeBars, RateLines, TimeBars


def rate_charts(shown: RateLines) -> tuple[Chart, ...]:
    """Bytes per second, lines of one scale."""
    rates = {name: [value / shown.bin_s for value in values] for name, values in shown.moved}
    scale = fmt.scale_for("B/s", [max(values) for values in rates.values()])
    rows = [
        {"kind": name, "t": (number + 0.5) * shown.bin_s, "value": value / scale.divisor}
        for name, values in rates.items()
        for number, value in enumerate(values)
    ]
    layer = {
        "mark": {"type": "line", "interpolate": "step", "strokeWidth": 1.6},
        "encoding": {
            "x": _time_axis(),
            "y": {"field": "value", "type": "quantitative", "axis": {"title": None, "format": ",.3~r"}},
            "color": kind_colour(list(rates)),
            "strokeDash": {
                "field": "kind",
                "type": "nominal",
                "legend": LEGEND,
                "scale": {"domain": list(rates), "range": [[1, 0], [5, 2]][: len(rates)]},
            },
        },
    }
    peaks = "; ".join(f"{name}: at most {units.format_rate(max(v))}" for name, v in rates.items())
    return (Chart(shown.name, fmt.printable(shown.title), scale.label, peaks, panel(rows, [layer], 200)),)


def _time_axis(title: str = "seconds since the start") -> dict[str, Any]:
    return {
        "field": "t",
        "type": "quantitative",
        "axis": {"title": title, "grid": False},
        "scale": {"zero": True, "nice": False},
    }


def heat_charts(shown: HeatMap) -> tuple[Chart, ...]:
    """A row each, a column a bin; the darker the more bytes."""
    rows = [
        {
            "process": fmt.printable(label),
            "t": place * shown.bin_s,
            "t2": (place + 1) * shown.bin_s,
            "value": value / shown.bin_s,
            "tip": f"{fmt.printable(label)}, {place * shown.bin_s:.3g} s:"
            f" {units.format_rate(value / shown.bin_s)}",
        }
        for label, values in shown.rows
        for place, value in enumerate(values)
        if value > 0
    ]
    layer = {
        "mark": {"type": "rect", "color": shade_of(shown.kind, [shown.kind])},
        "encoding": {
            "y": {"field": "process", "type": "nominal", "sort": None, "title": None, "axis": name_axis()},
            "x": _time_axis(),
            "x2": {"field": "t2"},
            "fillOpacity": {
                "field": "value",
                "type": "quantitative",
                "legend": None,
                "scale": {"type": "sqrt", "domainMin": 0, "range": [0.08, 1]},
            },
            "tooltip": {"field": "tip"},
        },
    }
    most = units.format_rate(max(float(str(row["value"])) for row in rows))
    words = f"{len(shown.rows)} processes; at most {most}"
    spec = panel(rows, [layer], 22 * len(shown.rows) + 10)
    return (Chart(shown.name, fmt.printable(shown.title), f"full colour: {most}", words, spec),)


def life_charts(shown: LifeBars) -> tuple[Chart, ...]:
    """A bar each, from its start to its end."""
    rows = [
        {
            "process": fmt.printable(bar.label),
            "t": bar.start_s,
            "t2": bar.end_s,
            "tip": fmt.printable(bar.words),
        }
        for bar in shown.bars
    ]
    layer = {
        "mark": {"type": "bar", "height": 9, "color": PALETTE[6]},
        "encoding": {
            "y": {"field": "process", "type": "nominal", "sort": None, "title": None, "axis": name_axis()},
            "x": _time_axis(),
            "x2": {"field": "t2"},
            "tooltip": {"field": "tip"},
        },
    }
    words = "; ".join(str(row["tip"]) for row in rows[:10])
    spec = panel(rows, [layer], 18 * len(rows) + 10)
    return (Chart(shown.name, fmt.printable(shown.title), "seconds", words, spec),)


def time_charts(shown: TimeBars) -> tuple[Chart, ...]:
    """A bar each, divided by what its seconds went into."""
    scale = fmt.scale_for("s", [bar.total_s for bar in shown.bars])
    names = list(dict.fromkeys(name for bar in shown.bars for name, _ in bar.parts))
    rows = [
        {
            "file": fmt.printable(bar.label),
            "kind": name,
            "value": seconds / scale.divisor,
            "tip": f"{fmt.printable(bar.words)}: {_seconds(seconds)} {name}",
        }
        for bar in shown.bars
        for name, seconds in bar.parts
    ]
    label = {**name_axis(), "labelLimit": 260}
    layer = {
        "mark": {"type": "bar", "height": 11},
        "encoding": {
            "y": {"field": "file", "type": "nominal", "sort": None, "title": None, "axis": label},
            "x": {
                "field": "value",
                "type": "quantitative",
                "stack": "zero",
                "axis": {"title": None, "tickCount": 5},
            },
            "color": kind_colour(in_order(names)),
            "tooltip": {"field": "tip"},
        },
    }
    words = "; ".join(f"{fmt.printable(bar.title)} {_seconds(bar.total_s)}" for bar in shown.bars[:5])
    spec = panel(rows, [layer], 21 * len(shown.bars) + 10)
    return (Chart(shown.name, fmt.printable(shown.title), scale.label, words, spec),)


def _seconds(value: float) -> str:
    return units.format_latency(value * 1e9)


def count_charts(shown: CountBars) -> tuple[Chart, ...]:
    """A column each, as high as it was often."""
    rows = [
        {"bin": name, "value": count, "tip": f"{name}: {count:,}"}
        for name, count in ((fmt.printable(name), count) for name, count in shown.counts)
    ]
    bins = {
        "field": "bin",
        "type": "nominal",
        "sort": None,
        "axis": {"title": None, "labelAngle": -40, "grid": False},
    }
    layer = {
        "mark": {"type": "bar", "color": shade_of(shown.kind, [shown.kind])},
        "encoding": {
            "x": bins,
            "y": {
                "field": "value",
                "type": "quantitative",
                "axis": {"title": None, "tickCount": 4, "format": "~s"},
            },
            "tooltip": {"field": "tip"},
        },
    }
    words = "; ".join(str(row["tip"]) for row in rows if row["value"])
    return (Chart(shown.name, fmt.printable(shown.title), shown.unit, words, panel(rows, [layer], 150)),)
