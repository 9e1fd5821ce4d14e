"""Charts made of bars: how fast each target is, where the bytes went, and wholes in parts."""

from __future__ import annotations

from typing import Any

from leadline import units
from leadline.report import format as fmt
from leadline.report import metrics
from leadline.report.charts.parts import (
    TINT,
    Chart,
    charts_of,
    colour,
    flagged,
    if_invalid,
    in_order,
    kind_colour,
    label,
    linear_ticks,
    listed,
    marks,
    most_of,
    name_axis,
    nominal,
    panel,
    place_of,
    quantitative,
    scaled,
    shade_of,
    tips,
)
from leadline.report.screen_table import metric_unit
from leadline.verdict.model import Cell, Origin
from leadline.verdict.sections.charts import GroupedBars, ShareBar, ShareBars

_SAME = 0.005  # of one: a bar that is full
# An interval of two blocks can be a hundred times its value: beyond this it is cut and ends in an arrow.
_AXIS_LIMIT = 1.6


def rate(place: int, work: str, cells: tuple[Cell, ...], names: list[str], si: bool) -> Chart | None:
    """Bandwidth or IOPS of one work on each target with the 95 % interval; None without any number."""
    metric = metrics.rate_metric(cells)
    found = [(cell, pair[1]) for cell in cells if (pair := metrics.find(cell, metric))]
    if not any(item.value is not None for _, item in found):
        return None
    scale = fmt.scale_for(found[0][1].unit, [item.value for _, item in found], si=si)
    unit = "IOPS" if metric == "iops" else scale.label
    limit = _AXIS_LIMIT * max(scaled(item.value, scale) or 0 for _, item in found)
    rows: list[dict[str, Any]] = []
    for cell, item in found:
        word = flagged(cell.validity.state)
        low, high, value = (scaled(each, scale) for each in (item.low, item.high, item.value))
        rows.append(
            {
                "target": fmt.printable(cell.target),
                "value": value,
                "low": low,
                "high": None if high is None else min(high, limit),
                "cut": high is not None and high > limit,
                "end": min(max(value or 0, high or 0), limit),
                "state": cell.validity.state,
                "label": label(word, None if item.value is None else fmt.number(item.value, scale)),
                "tip": f"{fmt.printable(cell.target)}: {word} {fmt.number(item.value, scale)} {unit}"
                f" {fmt.spread(item)}".replace("  ", " "),
            }
        )
    widest = max((row["end"] for row in rows), default=1) or 1
    room = 1.85 if any(flagged(str(row["state"])) for row in rows) else 1.3
    usable = [
        (fmt.printable(cell.target), item.value) for cell, item in found if not flagged(cell.validity.state)
    ]
    base = metric_unit(found[0][1].unit)
    reading = most_of(usable, lambda value: fmt.with_unit(value, base, si=si))
    spec = panel(rows, _bars(names, widest, room), 24 * len(rows))
    return Chart(f"rate-{place}", fmt.printable(work), unit, tips(rows), spec, reading)


def _bars(names: list[str], widest: float, room: float) -> list[dict[str, Any]]:
    y = nominal("target", sort=names, title=None, axis=name_axis())
    x_scale = {"domain": [0, widest * room], "nice": False}
    # 150k reads in a narrow panel where 150,000 would not.
    x_axis = {
        "title": None,
        "values": linear_ticks(widest),
        "labelExpr": "format(datum.value, datum.value < 1e4 ? ',.3~r' : '~s')",
    }
    return [
        marks(
            {"type": "bar", "height": 13, "strokeWidth": 1.5},
            {
                "y": y,
                "x": quantitative("value", scale=x_scale, axis=x_axis),
                "color": colour(names),
                "stroke": {**colour(names)},
                "fillOpacity": if_invalid(0.0, 1.0),
                "strokeDash": if_invalid([3, 2], [1, 0]),
                "description": {"field": "tip"},
            },
        ),
        marks(
            {"type": "rule", "color": "var(--ink)", "strokeWidth": 1.4},
            {"y": y, "x": quantitative("low"), "x2": {"field": "high"}},
            "isValid(datum.low) && isValid(datum.high)",
        ),
        _whisker_end(y, "low", "isValid(datum.low)"),
        _whisker_end(y, "high", "isValid(datum.high) && !datum.cut"),
        marks(
            {"type": "point", "shape": "triangle-right", "filled": True, "size": 40, "color": "var(--ink)"},
            {"y": y, "x": quantitative("high")},
            "datum.cut",
        ),
        marks(
            {"type": "text", "align": "left", "dx": 6},
            {
                "y": y,
                "x": quantitative("end"),
                "text": {"field": "label"},
                "color": if_invalid("var(--invalid)", "var(--ink)"),
            },
        ),
    ]


def _whisker_end(y: dict[str, Any], end: str, shown: str) -> dict[str, Any]:
    return marks(
        {"type": "tick", "color": "var(--ink)", "thickness": 1.4, "size": 7},
        {"y": y, "x": quantitative(end)},
        shown,
    )


def origin(place: int, work: str, cells: tuple[Cell, ...], names: list[str]) -> Chart | None:
    """Bytes on the wire, the device and the OSDs for each application byte; None where none was observed."""
    rows = [row for cell in cells if cell.origin for row in _origin_rows(cell, cell.origin)]
    if not any(row["value"] is not None for row in rows):
        return None
    widest = max(row["value"] or 0 for row in rows) or 1
    drawn = len({row["target"] for row in rows})
    words = "; ".join(f"{row['target']} {row['layer']} {row['label']}" for row in rows)
    known = [row for row in rows if row["value"] is not None and not flagged(row["state"])]
    title, unit = fmt.printable(work), "bytes per byte"
    if known and len(known) == len(rows) and all(abs(row["value"] - 1) < _SAME for row in rows):
        even = "Each place moved one byte for each byte of the application."
        return Chart(f"origin-{place}", title, unit, words, {}, even)
    most = max(known, key=lambda row: float(row["value"]), default=None)
    reading = f"{most['target']}, {most['layer']}: {fmt.number(most['value'])}, the most." if most else ""
    spec = panel(rows, _grouped_layers(names, widest, ["wire", "device", "OSDs"]), 3 * (14 * drawn + 8))
    return Chart(f"origin-{place}", title, unit, words, spec, reading or "No value can be used.")


def _origin_rows(cell: Cell, origin: Origin) -> list[dict[str, Any]]:
    layers = {"wire": origin.wire_bytes, "device": origin.device_bytes, "OSDs": origin.osd_bytes}
    total, word = origin.application_bytes, flagged(cell.validity.state)
    rows = []
    for layer, amount in layers.items():
        share = amount / total if amount is not None and total > 0 else None
        label = "not observable" if share is None else f"{word} {fmt.ratio(share)}".strip()
        row = {"target": fmt.printable(cell.target), "layer": layer, "value": share, "end": share or 0}
        state = cell.validity.state if share is not None else "VALID"
        rows.append({**row, "label": label, "state": state})
    return rows


def grouped_charts(shown: GroupedBars, names: list[str]) -> tuple[Chart, ...]:
    """Bars by group in their order, a bar for each target beside the others; none without a number."""
    values = [bar.value.value for bar in shown.bars]
    if not any(value is not None for value in values):
        return ()
    scale = fmt.scale_for(shown.bars[0].value.unit, values)
    rows: list[dict[str, Any]] = []
    for bar in shown.bars:
        value, word = scaled(bar.value.value, scale), flagged(bar.state)
        number = fmt.number(bar.value.value, scale)
        rows.append(
            {
                "target": fmt.printable(bar.target),
                "layer": bar.group,
                "value": value,
                "end": value or 0,
                "label": f"{word} {number} {fmt.spread(bar.value)}".strip(),
                "state": bar.state,
                "tip": " ".join(f"{bar.group} {fmt.printable(bar.label)}: {word} {number}".split()),
            }
        )
    groups = list(dict.fromkeys(bar.group for bar in shown.bars))
    widest = max(row["end"] for row in rows) or 1
    drawn = len({row["target"] for row in rows})
    usable = [
        (f"{row['target']} at {row['layer']}", row["value"]) for row in rows if not flagged(row["state"])
    ]
    reading = most_of(usable, lambda value: f"{fmt.number(value)} {scale.label}")
    layers, height = _grouped_layers(names, widest, groups), len(groups) * (14 * drawn + 8)
    return charts_of(shown, scale.label, tips(rows), rows, layers, height, reading)


def _grouped_layers(names: list[str], widest: float, groups: list[str]) -> list[dict[str, Any]]:
    y = nominal("layer", sort=groups, title=None, axis=name_axis())
    shared = {"y": y, "yOffset": {"field": "target", "sort": names, "scale": {"paddingInner": 0.15}}}
    scale = {"domain": [0, widest * 1.75], "nice": False}
    axis = {"title": None, "values": linear_ticks(widest), "format": ",.3~r"}
    return [
        marks(
            {"type": "bar"},
            {
                **shared,
                "x": quantitative("value", scale=scale, axis=axis),
                "color": colour(names),
                "stroke": colour(names),
                "fillOpacity": if_invalid(0.0, 1.0),
            },
        ),
        marks(
            {"type": "text", "align": "left", "dx": 4, "fontSize": 10},
            {
                **shared,
                "x": quantitative("end"),
                "text": {"field": "label"},
                "color": if_invalid("var(--invalid)", "var(--ink)"),
            },
        ),
    ]


_NAMED_SHARE_MIN = 0.08  # a narrower part has no room for its number


def share_charts(shown: ShareBars) -> tuple[Chart, ...]:
    """A bar for each whole; one panel."""
    if shown.bars and _is_plain(shown):
        title, reading = fmt.printable(shown.title), fmt.printable(_largest(shown))
        return (Chart(shown.name, title, shown.unit, reading, {}, reading),)
    return _numbered(shown) if shown.numbers else _plain(shown)


def _names(shown: ShareBars) -> list[str]:
    return list(dict.fromkeys(name for bar in shown.bars for name, _ in bar.parts))


def _largest(shown: ShareBars) -> str:
    """Of the first bars the largest part."""
    parts = [
        (bar, *max(bar.parts, key=lambda part: part[1]))
        for bar in shown.bars
        if bar.parts and not flagged(bar.state)
    ]
    return listed([f"{bar.label}: {units.format_percent(share)} {name}" for bar, name, share in parts], "bar")


def _is_plain(shown: ShareBars) -> bool:
    """Every bar has one part, which is all of it: a picture would show full bars alone."""
    return all(max((share for _, share in bar.parts), default=1.0) > 1 - _SAME for bar in shown.bars)


def _numbered(shown: ShareBars) -> tuple[Chart, ...]:
    rows = [row for bar in shown.bars for row in _numbered_rows(bar)]
    if not rows:
        return ()
    words = "; ".join(f"{row['bar']}: {row['name']} {row['label']}" for row in rows)
    layers = _numbered_layers(shown.axis, [str(row["bar"]) for row in rows], _names(shown))
    return charts_of(shown, shown.unit, words, rows, layers, 28 * len(shown.bars), _largest(shown))


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
    y = nominal(
        "bar", sort=list(dict.fromkeys(bars)), title=axis, axis={"grid": False, "labelColor": "var(--ink)"}
    )
    shades = nominal(
        "name",
        scale={"domain": names, "range": [shade_of(name, names) for name in names]},
        legend={"title": None, "orient": "top", "symbolType": "square", "columns": 3},
    )
    x = quantitative(
        "from",
        scale={"domain": [0, 100], "nice": False},
        axis={"title": None, "values": [0, 25, 50, 75, 100]},
    )
    return [
        marks(
            {"type": "bar", "height": 17},
            {
                "y": y,
                "x": x,
                "x2": {"field": "to"},
                "color": shades,
                "stroke": shades,
                "fillOpacity": if_invalid(0.1, TINT),
                "description": {"field": "tip"},
            },
        ),
        marks(
            {"type": "text", "fontSize": 10, "fontWeight": 600},
            {
                "y": y,
                "x": quantitative("middle"),
                "text": {"field": "shown"},
                "color": {"value": "var(--ink)"},
            },
        ),
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
    layer = marks(
        {"type": "bar", "height": 18},
        {
            "y": nominal("bar", sort=None, title=None, axis=name_axis()),
            "x": quantitative(
                "value",
                stack="zero",
                scale={"domain": [0, 100], "nice": False},
                axis={"title": None, "values": [0, 25, 50, 75, 100]},
            ),
            "order": {"field": "place"},
            "color": kind_colour(names),
            "description": {"field": "tip"},
        },
    )
    words = tips(rows)
    return charts_of(shown, shown.unit, words, rows, [layer], 30 * len(shown.bars), _largest(shown))
