"""Charts of growth by how many at once, of a sweep's plateau with its knee, and of what moved over time."""

from __future__ import annotations

from typing import Any

from leadline import units
from leadline.report import format as fmt
from leadline.report.charts.parts import (
    FIELD,
    LEGEND,
    PALETTE,
    Chart,
    charts_of,
    colour,
    dash,
    flagged,
    if_invalid,
    in_order,
    kind_colour,
    marks,
    most_of,
    name_axis,
    nominal,
    quantitative,
    shade_of,
    shape,
    tips,
)
from leadline.verdict.sections.charts import (
    CountBars,
    GrowthLines,
    GrowthModel,
    GrowthPoint,
    HeatMap,
    KneeMap,
    LifeBars,
    RateLines,
    TimeBars,
)

_MODEL_DASH = [2, 3]


def growth_charts(shown: GrowthLines, names: list[str]) -> tuple[Chart, ...]:
    """A line for each series with its intervals, the model dotted; one panel."""
    points = [point for point in shown.points if point.value.value is not None]
    if not points:
        return ()
    scale = fmt.scale_for(shown.unit, [point.value.value for point in points])
    rows = [_time_row(point, scale) for point in points]
    models = [row for model in shown.models for row in _model_rows(model, scale)]
    usable = [(f"{row['series']} at {row['copies']}", row["value"]) for row in rows if not row["word"]]
    reading = most_of(usable, lambda value: f"{fmt.number(value)} {scale.label}")
    layers = _time_layers(shown.axis, names, rows)
    return charts_of(shown, scale.label, tips(rows), [*rows, *models], layers, 230, reading)


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
    x = quantitative(
        "copies",
        scale={"zero": True, "nice": False},
        axis={
            "title": fmt.printable(axis),
            "grid": False,
            "values": sorted({row["copies"] for row in rows}),
            "format": "d",
        },
    )
    y = quantitative("value", scale={"zero": True}, axis={"title": None, "tickCount": 5, "format": ",.3~r"})
    shared = {"x": x, "y": y, "color": colour(names), "detail": {"field": "series"}}
    measured = [{"filter": "datum.kind === 'measured'"}]
    return [
        marks(
            {"type": "line", "strokeWidth": 1.2, "strokeDash": _MODEL_DASH, "opacity": 0.8},
            shared,
            "datum.kind === 'model'",
        ),
        {
            "mark": {"type": "rule", "strokeWidth": 1.4},
            "transform": [*measured, {"filter": "isValid(datum.low) && isValid(datum.high)"}],
            "encoding": {"x": x, "y": quantitative("low"), "y2": {"field": "high"}, "color": colour(names)},
        },
        {
            "mark": {"type": "line", "strokeWidth": 1.8},
            "transform": measured,
            "encoding": {**shared, "strokeDash": dash(names)},
        },
        {
            "mark": {"type": "point", "filled": True, "size": 60, "opacity": 1},
            "transform": measured,
            "encoding": {**shared, "shape": shape(names), "description": {"field": "tip"}},
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


_ROW = 30
_OPACITY = [0.04, 1]  # the ink of the numbers stays readable on all of them, in print too
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
        marks(
            {"type": "rect", "color": FIELD},
            {
                **place,
                "fillOpacity": quantitative(
                    "share", legend=None, scale={"domain": [0, 1], "range": _OPACITY}
                ),
                "description": {"field": "tip"},
            },
        ),
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
    found = [str(row["tip"]) for row in rows if row["knee"]]
    others = sum(bool(row["could_be"]) for row in rows)
    reading = (found[0] if found else "No cell is known as the knee") + "."
    if others:
        reading += f" {fmt.plural(others, 'other cell')} could be the knee."
    return charts_of(shown, shown.unit, words, rows, layer, _ROW * len(shown.rows) + 50, reading)


def _axis(field: str, levels: tuple[str, ...], option: str, side: str) -> dict[str, Any]:
    return nominal(
        field,
        sort=[fmt.printable(one) for one in levels],
        scale={"domain": [fmt.printable(one) for one in levels], "padding": 0.08},
        axis={
            "title": fmt.printable(option) or None,
            "orient": side,
            "labelAngle": 0 if len(levels) <= _NARROW // 2 or side == "left" else -40,
            "grid": False,
            "labelColor": "var(--ink)",
        },
    )


def _frame(place: dict[str, Any], test: str, look: dict[str, Any]) -> dict[str, Any]:
    return marks({"type": "rect", "fill": None, **look}, place, test)


def _numbers(place: dict[str, Any], test: str, look: dict[str, Any]) -> dict[str, Any]:
    return marks({"type": "text", **look}, {**place, "text": {"field": "text"}}, test)


def rate_charts(shown: RateLines) -> tuple[Chart, ...]:
    """Bytes per second, lines of one scale."""
    rates = {name: [value / shown.bin_s for value in values] for name, values in shown.moved}
    scale = fmt.scale_for("B/s", [max(values) for values in rates.values()])
    rows = [
        {"kind": name, "t": (number + 0.5) * shown.bin_s, "value": value / scale.divisor}
        for name, values in rates.items()
        for number, value in enumerate(values)
    ]
    layer = marks(
        {"type": "line", "interpolate": "step", "strokeWidth": 1.6},
        {
            "x": _time_axis(),
            "y": quantitative("value", axis={"title": None, "format": ",.3~r"}),
            "color": kind_colour(list(rates)),
            "strokeDash": nominal(
                "kind", legend=LEGEND, scale={"domain": list(rates), "range": [[1, 0], [5, 2]][: len(rates)]}
            ),
        },
    )
    peaks = "; ".join(f"{name}: at most {units.format_rate(max(v))}" for name, v in rates.items())
    peak = max(rows, key=lambda row: float(str(row["value"])))
    value = f"{fmt.number(float(str(peak['value'])))} {scale.label}"
    reading = f"{peak['kind']} peaks at {value} after {fmt.number(float(str(peak['t'])))} s."
    return charts_of(shown, scale.label, peaks, rows, [layer], 200, reading)


def _time_axis(title: str = "seconds since the start") -> dict[str, Any]:
    return quantitative("t", axis={"title": title, "grid": False}, scale={"zero": True, "nice": False})


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
    layer = marks(
        {"type": "rect", "color": shade_of(shown.kind, [shown.kind])},
        {
            "y": nominal("process", sort=None, title=None, axis=name_axis()),
            "x": _time_axis(),
            "x2": {"field": "t2"},
            "fillOpacity": quantitative(
                "value", legend=None, scale={"type": "sqrt", "domainMin": 0, "range": [0.08, 1]}
            ),
            "description": {"field": "tip"},
        },
    )
    most = units.format_rate(max(float(str(row["value"])) for row in rows))
    words = f"{len(shown.rows)} processes; at most {most}"
    peak = max(rows, key=lambda row: float(str(row["value"])))
    reading = f"The most at once: {peak['tip']}."
    height = 22 * len(shown.rows) + 10
    return charts_of(shown, f"full colour: {most}", words, rows, [layer], height, reading)


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
    layer = marks(
        {"type": "bar", "height": 9, "color": PALETTE[6]},
        {
            "y": nominal("process", sort=None, title=None, axis=name_axis()),
            "x": _time_axis(),
            "x2": {"field": "t2"},
            "description": {"field": "tip"},
        },
    )
    words = tips(rows[:10])
    longest = max(shown.bars, key=lambda bar: bar.end_s - bar.start_s)
    seconds = fmt.with_unit(longest.end_s - longest.start_s, "s")
    reading = f"{longest.label} is there the longest of {len(rows)}: {seconds}."
    return charts_of(shown, "seconds", words, rows, [layer], 18 * len(rows) + 10, reading)


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
    label = {**name_axis(), "labelLimit": 190}
    layer = marks(
        {"type": "bar", "height": 11},
        {
            "y": nominal("file", sort=None, title=None, axis=label),
            "x": quantitative("value", stack="zero", axis={"title": None, "tickCount": 5}),
            "color": {**kind_colour(in_order(names)), "legend": {**LEGEND, "columns": 2}},
            "description": {"field": "tip"},
        },
    )
    words = "; ".join(f"{fmt.printable(bar.title)} {_seconds(bar.total_s)}" for bar in shown.bars[:5])
    longest = max(shown.bars, key=lambda bar: bar.total_s)
    reading = f"{longest.label} takes the longest: {_seconds(longest.total_s)}."
    return charts_of(shown, scale.label, words, rows, [layer], 21 * len(shown.bars) + 10, reading)


def _seconds(value: float) -> str:
    return units.format_latency(value * 1e9)


def count_charts(shown: CountBars) -> tuple[Chart, ...]:
    """A column each, as high as it was often."""
    rows = [
        {"bin": name, "value": count, "tip": f"{name}: {count:,}"}
        for name, count in ((fmt.printable(name), count) for name, count in shown.counts)
    ]
    bins = nominal("bin", sort=None, axis={"title": None, "labelAngle": -40, "grid": False})
    layer = marks(
        {"type": "bar", "color": shade_of(shown.kind, [shown.kind])},
        {
            "x": bins,
            "y": quantitative("value", axis={"title": None, "tickCount": 4, "format": "~s"}),
            "description": {"field": "tip"},
        },
    )
    words = "; ".join(str(row["tip"]) for row in rows if row["value"])
    total = sum(count for _, count in shown.counts)
    name, count = max(shown.counts, key=lambda pair: pair[1], default=("", 0))
    reading = f"The most frequent is {name}: {count:,} of {total:,}." if total else ""
    return charts_of(shown, shown.unit, words, rows, [layer], 150, reading)
