"""Charts made of lines: latency percentiles, throughput over time, and the faults meanwhile."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from leadline.report import format as fmt
from leadline.report.charts.parts import (
    Chart,
    colour,
    dash,
    flagged,
    if_invalid,
    listed,
    marks,
    panel,
    quantitative,
    shape,
)
from leadline.verdict.model import Cell, Curve, Line

_LABELS_MAX = 4
_LABEL_PIXELS, _LABEL_LETTERS = 13, 56  # what a panel has room for
_OPACITY = 0.3  # of all bands together, where every trial has one
_OPACITY_MIN = 0.03


def fault_rows(lines: Sequence[Line]) -> list[dict[str, Any]]:
    """A row for each fault and trial, numbered by fault; `begins`, `ends`: it does so in the trial."""
    numbers = {words: number for number, words in enumerate(_words(lines), 1)}
    return [
        {
            "from": round(span.from_s, 3),
            "to": round(span.to_s, 3),
            "number": numbers[span.words],
            "begins": span.from_s > 0,
            "ends": span.to_s < max(second for second, _ in line.points),
            "tip": f"{fmt.printable(span.words)}, in {line.trial}",
        }
        for line in lines
        for span in line.faults
    ]


def fault_labels(lines: Sequence[Line]) -> list[str]:
    """What each number stands for, and in how many trials where that is not all of them."""
    labels = []
    for number, words in enumerate(_words(lines), 1):
        count = sum(any(span.words == words for span in line.faults) for line in lines)
        which = "" if count == len(lines) else f" ({count} of {fmt.plural(len(lines), 'trial')})"
        labels.append(f"{number}: {_short(fmt.printable(words), _LABEL_LETTERS - len(which))}{which}")
    return labels


def fault_layers(rows: Sequence[dict[str, Any]], labels: Sequence[str]) -> list[dict[str, Any]]:
    """Bands from top to bottom with their numbers, lines where they begin and end, and the labels above."""
    if not rows:
        return []
    x, x2 = quantitative("from"), {"field": "to"}
    edge = {"type": "rule", "color": "var(--invalid)", "strokeDash": [3, 2], "opacity": 0.7}
    opacity = max(_OPACITY / len(rows), _OPACITY_MIN)
    band = {"type": "rect", "color": "var(--invalid)", "opacity": opacity}
    at_end = {"x": {**x, "field": "to"}}
    bands: list[dict[str, Any]] = [
        marks(band, {"x": x, "x2": x2, "description": {"field": "tip"}}),
        marks(edge, {"x": x}, "datum.begins"),
        marks(edge, at_end, "datum.ends"),
    ]
    shown = list(labels[:_LABELS_MAX])
    if len(labels) > len(shown):
        shown[-1] += f" and {len(labels) - len(shown)} more"
    words = [
        {
            "data": {"values": [{"label": label}]},
            "mark": _text("bottom"),
            "encoding": {
                "x": {"value": 0},
                "y": {"value": -4 - _LABEL_PIXELS * (len(shown) - 1 - place)},
                "text": {"field": "label"},
            },
        }
        for place, label in enumerate(shown)
    ]
    bands += [_number(place + 1, x) for place in range(len(shown))]
    return [{"data": {"values": list(rows)}, "layer": bands}, *words]


def _number(number: int, x: dict[str, Any]) -> dict[str, Any]:
    """The number of a fault where its bands begin, above those of the ones before it."""
    above = 3 + _LABEL_PIXELS * (number - 1)
    return marks(
        _text("bottom", dx=3),
        {"x": x, "y": {"value": {"expr": f"height - {above}"}}, "text": {"value": str(number)}},
        f"datum.number === {number}",
    )


def _words(lines: Sequence[Line]) -> list[str]:
    """The faults of all lines by their words, each once, in the order of the first."""
    return list(dict.fromkeys(span.words for line in lines for span in line.faults))


def _text(baseline: str, dx: int = 0) -> dict[str, Any]:
    mark = {"type": "text", "align": "left", "baseline": baseline, "fontSize": 10, "fontWeight": 600}
    return {**mark, "dx": dx, "color": "var(--invalid)"}


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


# A page of many trials stays below about 10 MB; a panel has no more pixels than this in any case.
_PAGE_POINTS_MAX = 60_000
_LINE_POINTS_MIN, _LINE_POINTS_MAX = 40, 240
_NINES_MAX = 6.0
_POINTS_SHOWN_MAX = 60
_DRAWN_CLOCKS = ("total", "intended")
_HAS_WORD = "datum.word !== ''"
_MARKED_PERCENTILES = (50.0, 90.0, 99.0, 99.9, 99.99)


def latency(place: int, work: str, cells: tuple[Cell, ...], names: list[str]) -> list[Chart]:
    """Latency percentiles of one work, a panel for each direction and clock."""
    every = [curve for cell in cells for curve in cell.curves if curve.clock in _DRAWN_CLOCKS]
    kinds = dict.fromkeys((curve.direction, curve.clock) for curve in every)
    several = len({direction for direction, _ in kinds}) > 1
    charts = []
    for direction, clock in kinds:
        pairs = [
            (cell, curve)
            for cell in cells
            for curve in cell.curves
            if (curve.direction, curve.clock) == (direction, clock)
        ]
        details = ([direction] if several else []) + ([] if clock == "total" else [f"from the {clock} start"])
        title = ", ".join([fmt.printable(work), *details])
        charts.append(_latency_panel(f"latency-{place}-{direction}-{clock}", title, pairs, names))
    return [chart for chart in charts if chart]


def _latency_panel(name: str, title: str, pairs: list[tuple[Cell, Curve]], names: list[str]) -> Chart | None:
    values = [value for _, curve in pairs for _, value in curve.points if value > 0]
    if not values:
        return None
    scale = fmt.scale_for("ns", values)
    rows = [row for cell, curve in pairs for row in _curve_rows(cell, curve, scale)]
    words = "; ".join(_curve_words(cell, curve, scale) for cell, curve in pairs)
    spec = panel(rows, _curve_layers(names, rows))
    return Chart(name, title, scale.label, words, spec, _percentile_reading(pairs))


def _percentile_reading(pairs: list[tuple[Cell, Curve]]) -> str:
    """The highest percentile that all have of p99 and p50; the lowest latency first."""
    known = [
        (cell.target, dict(curve.points))
        for cell, curve in pairs
        if not flagged(cell.validity.state) and curve.points
    ]
    which = next((one for one in (99.0, 50.0) if known and all(one in points for _, points in known)), None)
    if which is None:
        return "No percentile can be used."
    found = sorted((points[which], target) for target, points in known)
    said = [f"{fmt.printable(target)} {fmt.with_unit(value, 'ns')}" for value, target in found]
    return f"p{which:g}: {listed(said, 'target')}"


def nines(percentile: float, operations: int) -> float | None:
    """Where a percentile stands on an axis of nines: 90 at 1, 99 at 2; the largest of N at log10 N.

    None for a percentile that has not one operation beyond it.
    """
    last = math.log10(max(operations, 2))
    beyond = 1 - percentile / 100
    place = last if beyond <= 0 else -math.log10(beyond)
    if place > last + 1e-9:
        return None
    return min(place, _NINES_MAX)


def _curve_rows(cell: Cell, curve: Curve, scale: fmt.Scale) -> list[dict[str, Any]]:
    target, word = fmt.printable(cell.target), flagged(cell.validity.state)
    rows: list[dict[str, Any]] = []
    for percentile, value in sorted(curve.points):
        place = nines(percentile, curve.operations)
        if place is None or value <= 0:
            continue
        label = "max" if percentile >= 100 else f"p{percentile:g}"
        rows.append(
            {
                "target": target,
                "nines": round(place, 4),
                "value": value / scale.divisor,
                "marked": percentile in _MARKED_PERCENTILES,
                "state": cell.validity.state,
                "tip": f"{target} {word} {label}: {fmt.with_unit(value, 'ns')}".replace("  ", " "),
                "word": "",
            }
        )
    if rows:
        rows[-1]["word"] = word
    return rows


def _curve_words(cell: Cell, curve: Curve, scale: fmt.Scale) -> str:
    parts = [
        f"p{p:g} {fmt.number(v, scale)} {scale.label}" for p, v in curve.points if p in _MARKED_PERCENTILES
    ]
    return f"{fmt.printable(cell.target)} {flagged(cell.validity.state)} {', '.join(parts)}".replace(
        "  ", " "
    )


def _curve_layers(names: list[str], rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    ticks = [0.30103, *range(1, int(max((row["nines"] for row in rows), default=2)) + 1)]
    x = quantitative(
        "nines",
        axis={
            "title": "percentile",
            "values": ticks,
            "labelExpr": _PERCENTILE_LABEL,
            "labelOverlap": "greedy",
            "labelSeparation": 5,
        },
    )
    y = quantitative(
        "value",
        scale={"type": "log", "nice": False},
        axis={"title": None, "format": ",.3~r", "labelOverlap": "greedy", **_log_values(rows)},
    )
    shared = {"x": x, "y": y, "color": colour(names)}
    return [
        marks({"type": "line", "strokeWidth": 1.8}, {**shared, "strokeDash": dash(names)}),
        marks(
            {"type": "point", "filled": True, "size": 46, "opacity": 1},
            {**shared, "shape": shape(names), "description": {"field": "tip"}},
            "datum.marked",
        ),
        *_word_marks(rows, x, y),
    ]


# 1 nine is 90, 2 are 99, each further one a digit more; below 1 only the median has a tick.
_PERCENTILE_LABEL = (
    "datum.value < 0.9 ? '50' : datum.value < 1.5 ? '90' : "
    "slice('99.9999', 0, datum.value < 2.5 ? 2 : 2 + round(datum.value) - 1)"
)


def _word_marks(rows: list[dict[str, Any]], x: dict[str, Any], y: dict[str, Any]) -> list[dict[str, Any]]:
    """INVALID or DOUBTFUL at the end of its curve, on a halo so that it can be read across lines."""
    if not any(row["word"] for row in rows):
        return []
    mark = {"type": "text", "align": "right", "dx": -2, "dy": -9, "fontSize": 10, "fontWeight": 600}
    shared = {"x": x, "y": y, "text": {"field": "word"}}
    return [
        marks({**mark, "stroke": "var(--paper)", "strokeWidth": 4, "strokeJoin": "round"}, shared, _HAS_WORD),
        marks(mark, {**shared, "color": if_invalid("var(--invalid)", "var(--ink)")}, _HAS_WORD),
    ]


def _log_values(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Our ticks, or Vega's own where the range is too narrow for two of ours."""
    ticks = log_ticks([row["value"] for row in rows])
    return {"values": ticks} if len(ticks) > 1 else {"tickCount": 4}


def log_ticks(values: list[float]) -> list[float]:
    """Ticks of a logarithmic axis: decades, thinned where many, with 2 and 5 between where few."""
    low, high = math.log10(min(values)), math.log10(max(values))
    decades = range(math.floor(low), math.ceil(high) + 1)
    steps = (
        (1.0,) if high - low > 2 else (1.0, 2.0, 5.0) if high - low > 0.8 else tuple(map(float, range(1, 10)))
    )
    every = max(1, math.ceil((high - low) / 5))
    ticks = [step * 10.0**power for power in decades if power % every == 0 for step in steps]
    return [tick for tick in ticks if low - 1e-9 <= math.log10(tick) <= high + 1e-9]


def points_per_line(lines: int) -> int:
    """How many points each of a page's lines may have."""
    return max(_LINE_POINTS_MIN, min(_LINE_POINTS_MAX, _PAGE_POINTS_MAX // max(lines, 1)))


def series(
    place: int, work: str, cells: tuple[Cell, ...], names: list[str], points_max: int, si: bool
) -> list[Chart]:
    """Throughput of one work while its trials ran, the ramp shaded; `points_max` bounds each line."""
    lines = [(cell, line) for cell in cells for line in cell.lines if line.points]
    rates = [pair for pair in lines if pair[1].unit == "B/s"] or lines
    kinds = dict.fromkeys((line.name, line.unit) for _, line in rates)
    charts: list[Chart] = []
    for name, unit in kinds:
        pairs = [pair for pair in rates if (pair[1].name, pair[1].unit) == (name, unit)]
        title = fmt.printable(work) + (f", {fmt.printable(name)}" if len(kinds) > 1 else "")
        thinned = [(cell, replace(line, points=thin(line.points, points_max))) for cell, line in pairs]
        charts.append(_series_panel(f"series-{place}-{len(charts)}", title, thinned, names, si))
    return charts


def _series_panel(name: str, title: str, pairs: list[tuple[Cell, Line]], names: list[str], si: bool) -> Chart:
    scale = fmt.scale_for(pairs[0][1].unit, [value for _, line in pairs for _, value in line.points], si=si)
    rows: list[dict[str, Any]] = []
    flagged_cells: set[str] = set()
    for cell, line in pairs:
        drawn = _line_rows(cell, line, scale)
        if drawn and cell.id not in flagged_cells:
            drawn[-1]["word"] = flagged(cell.validity.state)
            flagged_cells.add(cell.id)
        rows += drawn
    ramp = min(line.measured_from_s for _, line in pairs)
    if any(line.measured_to_s is not None for _, line in pairs):
        title += "; thick: what counts"
    if any(line.shift_s is not None for _, line in pairs):
        title += "; diamond: the level shifts"
    trials = fmt.plural(len(pairs), "trial")
    words = f"{scale.label} over time, {trials}: " + "; ".join(
        dict.fromkeys(
            f"{fmt.printable(cell.target)} {flagged(cell.validity.state)}".strip() for cell, _ in pairs
        )
    )
    drawn_lines = [line for _, line in pairs]
    faults = fault_labels(drawn_lines)
    if faults:
        title += "; red: a fault in force"
        words += f"; faults in force: {'; '.join(faults)}"
    layers = [*_ramp(ramp), *fault_layers(fault_rows(drawn_lines), faults), *_line_layers(names, rows)]
    return Chart(name, title, scale.label, words, panel(rows, layers, 150), _range_reading(pairs, scale))


def _range_reading(pairs: list[tuple[Cell, Line]], scale: fmt.Scale) -> str:
    """Between which values each target ran in what counts."""
    found: dict[str, list[float]] = {}
    for cell, line in pairs:
        if not flagged(cell.validity.state):
            counted = [value for second, value in line.points if second > line.measured_from_s]
            found.setdefault(fmt.printable(cell.target), []).extend(counted)
    said = [
        f"{target}: {fmt.number(min(values), scale)} to {fmt.number(max(values), scale)} {scale.label}"
        for target, values in found.items()
        if values
    ]
    return listed(said, "target") or "No value can be used."


def thin(points: tuple[tuple[float, float], ...], most: int) -> tuple[tuple[float, float], ...]:
    """At most `most` points: neighbours are averaged, so that no byte is lost from the picture."""
    real = [point for point in points if math.isfinite(point[1])]
    width = math.ceil(len(real) / most) or 1
    groups = [real[start : start + width] for start in range(0, len(real), width)]
    return tuple(
        (sum(x for x, _ in group) / len(group), sum(y for _, y in group) / len(group)) for group in groups
    )


def _line_rows(cell: Cell, line: Line, scale: fmt.Scale) -> list[dict[str, Any]]:
    shifted = _shifted_place(line)
    return [
        {
            "target": fmt.printable(cell.target),
            "trial": line.trial,
            "t": round(second, 3),
            "value": float(f"{value / scale.divisor:.5g}"),
            "state": cell.validity.state,
            "word": "",
            **({} if line.measured_to_s is None else {"counted": _is_counted(line, second)}),
            **({"shift": True} if place == shifted else {}),
        }
        for place, (second, value) in enumerate(line.points)
    ]


def _is_counted(line: Line, second: float) -> bool:
    """A point stands at the end of its interval."""
    return line.measured_to_s is not None and line.measured_from_s < second <= line.measured_to_s + 1e-6


def _shifted_place(line: Line) -> int | None:
    """The first point of the new level; a point stands at the end of its interval."""
    if line.shift_s is None:
        return None
    later = (place for place, (second, _) in enumerate(line.points) if second > line.shift_s + 1e-6)
    return next(later, None)


def _line_layers(names: list[str], rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    x = quantitative(
        "t",
        scale={"domain": [0, max((row["t"] for row in rows), default=1)], "nice": False},
        axis={"title": "seconds", "grid": False, "tickCount": 6, "format": ",.3~r"},
    )
    y = quantitative("value", scale={"zero": True}, axis={"title": None, "tickCount": 4, "format": ",.3~r"})
    # A line of one point is invisible, and one of a few is more honest with its points shown.
    points = {"filled": True, "size": 22} if len(rows) <= _POINTS_SHOWN_MAX else False
    lines = marks(
        {"type": "line", "strokeWidth": 1.3, "opacity": 0.85, "point": points},
        {"x": x, "y": y, "color": colour(names), "strokeDash": dash(names), "detail": {"field": "trial"}},
    )
    counted = []
    if any(row.get("counted") for row in rows):
        thick = {"type": "line", "strokeWidth": 4, "opacity": 0.6}
        counted = [{**lines, "mark": thick, "transform": [{"filter": "datum.counted"}]}]
    shifts = []
    if any(row.get("shift") for row in rows):
        diamond = {"type": "point", "shape": "diamond", "filled": True, "size": 90, "opacity": 1}
        mark = {**diamond, "stroke": "var(--paper)", "strokeWidth": 1.2}
        encoding = {"x": x, "y": y, "color": colour(names), "description": {"field": "trial"}}
        shifts = [marks(mark, encoding, "datum.shift")]
    return [lines, *counted, *shifts, *_word_marks(rows, x, y)]


def _ramp(ramp_s: float) -> list[dict[str, Any]]:
    """The part before the measured interval, shaded and named."""
    if ramp_s <= 0:
        return []
    band = {"values": [{"from": 0, "to": ramp_s}]}
    return [
        {
            "data": band,
            "mark": {"type": "rect", "color": "var(--band)"},
            "encoding": {"x": quantitative("from"), "x2": {"field": "to"}},
        },
        {
            "data": band,
            "mark": {
                "type": "text",
                "text": "ramp",
                "align": "left",
                "baseline": "top",
                "dx": 3,
                "color": "var(--muted)",
                "fontSize": 10,
            },
            "encoding": {"x": quantitative("from"), "y": {"value": 3}},
        },
    ]
