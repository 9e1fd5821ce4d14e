"""Charts of a trace: shares, bytes over time, heat maps of reads and of writes, files, access sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from leadline import units
from leadline.report import format as fmt
from leadline.report.charts import lines as chart_lines
from leadline.report.charts.parts import PALETTE, Chart, name_axis, panel
from leadline.tracing.figures import KINDS
from leadline.tracing.model import TraceProcess, TraceView
from leadline.tracing.words import WORDS
from leadline.verdict.model import Findings

_FILES_SHOWN = 15
_NAME_MAX = 34
_COLOURS = {
    "reading": PALETTE[0],
    "writing": PALETTE[1],
    "metadata": PALETTE[2],
    "syncs": PALETTE[3],
    "computing": "var(--grid)",
}
_LEGEND = {"title": None, "orient": "bottom", "symbolType": "square"}
_WAYS = {"read": "reading", "write": "writing"}


def draw(findings: Findings, place: int, view: TraceView) -> dict[str, tuple[Chart, ...]]:
    """Every chart that a trace has numbers for, by section of the page."""
    names = _process_names(view)
    cell = findings.cells[place]
    curves = chart_lines.latency(place, cell.work, (cell,), [fmt.printable(cell.target)])
    return {
        "shares": _some(_shares(place, view)),
        "time": _some(_timeline(place, view), *(_heat(place, view, way, names) for way in _WAYS)),
        "lives": _some(_lives(place, view, names)),
        "latency": tuple(curves),
        "files": _some(_files(place, view)),
        "sizes": _some(*(_sizes(place, view, way) for way in _WAYS)),
    }


def _some(*charts: Chart | None) -> tuple[Chart, ...]:
    return tuple(chart for chart in charts if chart)


def _colour(names: Sequence[str]) -> dict[str, Any]:
    return {
        "field": "kind",
        "type": "nominal",
        "scale": {"domain": list(names), "range": [_COLOURS[name] for name in names]},
        "legend": _LEGEND,
    }


def _seconds(value: float) -> str:
    return units.format_latency(value * 1e9)


def _shares(place: int, view: TraceView) -> Chart | None:
    """One bar a copy, divided by what its time went into."""
    order = [WORDS[kind] for kind in (*KINDS, "compute")]
    bars = [(f"copy {item.copy}", item.share) for item in view.copies]
    if len(bars) > 1:
        bars.append(("all", view.whole))
    rows = [
        {
            "bar": name,
            "kind": WORDS[kind],
            "place": number,
            "value": value * 100,
            "tip": f"{name}: {units.format_percent(value)} {WORDS[kind]}",
        }
        for name, share in bars
        for number, kind in enumerate((*KINDS, "compute"))
        if (value := getattr(share, kind)) is not None
    ]
    if not rows:
        return None
    names = [name for name in order if any(row["kind"] == name for row in rows)]
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
            "color": _colour(names),
            "tooltip": {"field": "tip"},
        },
    }
    words = "; ".join(str(row["tip"]) for row in rows)
    unit = f"% of {view.whole.basis}"
    return Chart(f"shares-{place}", "Where the time went", unit, words, panel(rows, [layer], 30 * len(bars)))


def _timeline(place: int, view: TraceView) -> Chart | None:
    """Bytes per second over the run, reads and writes as lines of one scale."""
    moved = view.over_time
    if moved is None or not any((*moved.read, *moved.written)):
        return None
    rates = {
        "reading": [value / moved.bin_s for value in moved.read],
        "writing": [value / moved.bin_s for value in moved.written],
    }
    rates = {name: values for name, values in rates.items() if any(values)}
    scale = fmt.scale_for("B/s", [max(values) for values in rates.values()])
    rows = [
        {"kind": name, "t": (number + 0.5) * moved.bin_s, "value": value / scale.divisor}
        for name, values in rates.items()
        for number, value in enumerate(values)
    ]
    layer = {
        "mark": {"type": "line", "interpolate": "step", "strokeWidth": 1.6},
        "encoding": {
            "x": _time_axis(),
            "y": {"field": "value", "type": "quantitative", "axis": {"title": None, "format": ",.3~r"}},
            "color": _colour(list(rates)),
            "strokeDash": {
                "field": "kind",
                "type": "nominal",
                "legend": _LEGEND,
                "scale": {"domain": list(rates), "range": [[1, 0], [5, 2]][: len(rates)]},
            },
        },
    }
    peaks = "; ".join(f"{name}: at most {units.format_rate(max(v))}" for name, v in rates.items())
    return Chart(f"time-{place}", "Bytes moved over time", scale.label, peaks, panel(rows, [layer], 200))


def _time_axis(title: str = "seconds since the start") -> dict[str, Any]:
    return {
        "field": "t",
        "type": "quantitative",
        "axis": {"title": title, "grid": False},
        "scale": {"zero": True, "nice": False},
    }


def _process_names(view: TraceView) -> dict[int, str]:
    several = len(view.copies) > 1
    return {item.process: _process_name(item, several) for item in view.processes}


def _process_name(item: TraceProcess, several: bool) -> str:
    program = fmt.printable(item.executable.rpartition("/")[2] or item.command)[:14]
    return f"{item.process} {program}" + (f", copy {item.copy}" if several else "")


def _heat(place: int, view: TraceView, way: str, names: Mapping[int, str]) -> Chart | None:
    """A row a process, a column a bin; the darker the more bytes. Reads and writes never share a map."""
    moved = view.over_time
    if moved is None:
        return None
    by_process = moved.read_by_process if way == "read" else moved.written_by_process
    shown = {number: values for number, values in by_process.items() if any(values)}
    if not shown:
        return None
    rows = [
        {
            "process": names.get(number, str(number)),
            "t": place_in * moved.bin_s,
            "t2": (place_in + 1) * moved.bin_s,
            "value": value / moved.bin_s,
            "tip": f"{names.get(number, number)}, {place_in * moved.bin_s:.3g} s:"
            f" {units.format_rate(value / moved.bin_s)}",
        }
        for number, values in shown.items()
        for place_in, value in enumerate(values)
        if value > 0
    ]
    layer = {
        "mark": {"type": "rect", "color": _COLOURS[_WAYS[way]]},
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
    title = "Reads of each process" if way == "read" else "Writes of each process"
    words = f"{len(shown)} processes; at most {most}"
    return Chart(
        f"heat-{way}-{place}",
        title,
        f"full colour: {most}",
        words,
        panel(rows, [layer], 22 * len(shown) + 10),
    )


def _lives(place: int, view: TraceView, names: Mapping[int, str]) -> Chart | None:
    """When each process ran: where calls were only counted this is all that is known of time."""
    if len(view.processes) < 2:
        return None
    ordered = sorted(view.processes, key=lambda p: -(p.bytes_read + p.bytes_written))[:40]
    last = max((p.ended_s or 0.0 for p in view.processes), default=0.0)
    rows = [
        {
            "process": names[p.process],
            "t": p.started_s,
            "t2": last if p.ended_s is None else p.ended_s,
            "tip": f"{names[p.process]}: {fmt.printable(p.command)[:120]},"
            f" {units.format_size(p.bytes_read)} read, {units.format_size(p.bytes_written)} written",
        }
        for p in sorted(ordered, key=lambda p: (p.started_s, p.process))
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
    return Chart(
        f"lives-{place}", "When each process ran", "seconds", words, panel(rows, [layer], 18 * len(rows) + 10)
    )


def _files(place: int, view: TraceView) -> Chart | None:
    """The files that took longest, divided into reading, writing and metadata."""
    shown = [item for item in view.files if item.io_s > 0][:_FILES_SHOWN]
    if not shown:
        return None
    parts = {"reading": "read_s", "writing": "write_s", "metadata": "meta_s"}
    scale = fmt.scale_for("s", [item.io_s for item in shown])
    rows = [
        {
            "file": f"{number + 1} {_short(item.path)}",
            "kind": name,
            "value": value / scale.divisor,
            "tip": f"{fmt.printable(item.path)} ({item.module}): {_seconds(value)} {name}",
        }
        for number, item in enumerate(shown)
        for name, attribute in parts.items()
        if (value := getattr(item, attribute))
    ]
    layer = {
        "mark": {"type": "bar", "height": 11},
        "encoding": {
            "y": {
                "field": "file",
                "type": "nominal",
                "sort": None,
                "title": None,
                "axis": {**name_axis(), "labelLimit": 260},
            },
            "x": {
                "field": "value",
                "type": "quantitative",
                "stack": "zero",
                "axis": {"title": None, "tickCount": 5},
            },
            "color": _colour([name for name in parts if any(row["kind"] == name for row in rows)]),
            "tooltip": {"field": "tip"},
        },
    }
    words = "; ".join(f"{fmt.printable(item.path)} {_seconds(item.io_s)}" for item in shown[:5])
    return Chart(
        f"files-{place}", "Files by time", scale.label, words, panel(rows, [layer], 21 * len(shown) + 10)
    )


def _short(path: str) -> str:
    text = fmt.printable(path)
    return text if len(text) <= _NAME_MAX else f"…{text[1 - _NAME_MAX :]}"


def _sizes(place: int, view: TraceView, way: str) -> Chart | None:
    """How large accesses were, in Darshan's bins."""
    counts = view.sizes.get(way, {})
    if not any(counts.values()):
        return None
    rows = [
        {"bin": _bin_words(name), "value": count, "tip": f"{_bin_words(name)}: {count:,}"}
        for name, count in counts.items()
    ]
    layer = {
        "mark": {"type": "bar", "color": _COLOURS[_WAYS[way]]},
        "encoding": {
            "x": {
                "field": "bin",
                "type": "nominal",
                "sort": None,
                "axis": {"title": None, "labelAngle": -40, "grid": False},
            },
            "y": {
                "field": "value",
                "type": "quantitative",
                "axis": {"title": None, "tickCount": 4, "format": "~s"},
            },
            "tooltip": {"field": "tip"},
        },
    }
    title = "Sizes of reads" if way == "read" else "Sizes of writes"
    words = "; ".join(str(row["tip"]) for row in rows if row["value"])
    return Chart(f"sizes-{way}-{place}", title, "accesses", words, panel(rows, [layer], 150))


def _bin_words(name: str) -> str:
    return name.replace("_PLUS", "+").replace("_", " to ")
