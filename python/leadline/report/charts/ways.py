"""Charts of ways: of bytes to the device and back, of a cell's parts, and of a pipeline's stages in time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from leadline.report import format as fmt
from leadline.report.charts.parts import (
    FIELD,
    PALETTE,
    Chart,
    charts_of,
    colour,
    flagged,
    if_invalid,
    linear_ticks,
    listed,
    marks,
    name_axis,
    nominal,
    panel,
    quantitative,
    tips,
)
from leadline.units import whole_percent
from leadline.verdict.model import Cell, Chain, Findings
from leadline.verdict.sections.charts import PlacesChain, PlaceUse, StageBars, StageSpan

_DARKNESS = {
    "memory": 0.15,
    "page_cache": 0.15,
    "client_cache": 0.32,
    "wire": 0.44,
    "gateway": 0.44,
    "osd_cache": 0.56,
    "osd": 0.72,
    "server": 1.0,
    "store": 1.0,
    "device": 1.0,
}
_LABEL_SHARE_MIN = 0.12
_FULL = 0.4995  # from a half: a part that is nothing, or all


def chain(place: int, work: str, cells: tuple[Cell, ...], names: list[str], direction: str) -> Chart | None:
    """The chains of one work in one direction; None where nothing is known of them."""
    found = [(cell, item) for cell in cells for item in cell.chains if item.direction == direction]
    rows = [row for cell, item in found for row in _rows(cell, item)]
    if not any(row["known"] for row in rows):
        return None
    drawn = len({row["target"] for row in rows})
    several = len({item.direction for cell in cells for item in cell.chains}) > 1
    unit = "of the bytes read" if direction == "read" else "of the bytes written"
    title = fmt.printable(work) + (f", {direction}" if several else "")
    words = "; ".join(dict.fromkeys(row["tip"] for row in rows))
    full = all(row["known"] and abs(row["end"] - row["begin"] - 0.5) > _FULL for row in rows)
    spec = {} if full else panel(rows, _chain_layers(names), 26 * drawn + 24)
    said = [_largest_place(cell, item) for cell, item in found]
    return Chart(
        f"chain-{direction}-{place}", title, unit, words, spec, listed(list(filter(None, said)), "target")
    )


def _largest_place(cell: Cell, chain: Chain) -> str:
    """The place that has the largest part of a cell's bytes."""
    known = [item for item in chain.places if item.share is not None]
    if not known or flagged(cell.validity.state):
        return ""
    most = max(known, key=lambda item: item.share or 0.0)
    return fmt.printable(f"{cell.target}: {whole_percent(most.share)} {most.words}")


def chain_legend(findings: Findings) -> tuple[tuple[str, float], ...]:
    """(words, darkness) of every place that a chart shows, from the application to the device."""
    found = {
        item.words: darkness(item.name)
        for cell in findings.cells
        for part in cell.chains
        for item in part.places
        if item.share
    }
    return tuple(sorted(found.items(), key=lambda item: item[1]))


def darkness(name: str) -> float:
    """How dark a place is drawn; places that nothing tells apart as the nearest of them."""
    return min(_DARKNESS[part] for part in name.split("+"))


def _rows(cell: Cell, chain: Chain) -> list[dict[str, Any]]:
    target, word = fmt.printable(cell.target), flagged(cell.validity.state)
    shared = {"target": target, "state": cell.validity.state, "word": word}
    if not any(item.share is not None for item in chain.places):
        text = "not observable"
        return [
            {
                **shared,
                "begin": 0.0,
                "end": 0.0,
                "dark": 0.0,
                "label": text,
                "tip": f"{target}: {text}",
                "known": False,
            }
        ]
    tip = f"{target}{f' {word}' if word else ''}: " + ", ".join(
        f"{item.words} {whole_percent(item.share)}" for item in chain.places
    )
    rows: list[dict[str, Any]] = []
    begin = 0.0
    for item in chain.places:
        end = begin + (item.share or 0.0)
        rows.append(
            {
                **shared,
                "begin": begin,
                "end": end,
                "dark": darkness(item.name),
                "label": whole_percent(item.share) if end - begin >= _LABEL_SHARE_MIN else "",
                "tip": tip,
                "known": True,
            }
        )
        begin = end
    return rows


def _chain_layers(names: list[str]) -> list[dict[str, Any]]:
    y = nominal("target", sort=names, title=None, axis=name_axis())
    axis = {"title": None, "values": [0, 0.25, 0.5, 0.75, 1], "format": ".0%"}
    begin = quantitative("begin", scale={"domain": [0, 1.28], "nice": False}, axis=axis)
    return [
        marks(
            {"type": "bar", "height": 17, "color": FIELD, "stroke": PALETTE[0]},
            {
                "y": y,
                "x": begin,
                "x2": {"field": "end"},
                "fillOpacity": quantitative("dark", scale=None, legend=None),
                "strokeDash": if_invalid([3, 2], [1, 0]),
                "description": {"field": "tip"},
            },
            "datum.end > datum.begin",
        ),
        marks(
            {"type": "text", "align": "left", "dx": 5, "fontSize": 10},
            {"y": y, "x": begin, "text": {"field": "label"}, "color": {"value": "var(--ink)"}},
        ),
        marks(
            {"type": "text", "align": "left", "dx": 6, "fontSize": 10, "color": "var(--invalid)"},
            {"y": y, "x": {"datum": 1}, "text": {"field": "word"}},
            "datum.word !== '' && datum.begin == 0",
        ),
    ]


_ROW_PX = 50
_TOP, _END = 0.37, 0.6  # of a row: above it stand its names, below what waits
_BEAD = -0.035  # left of the frames, in their widths: a bead each, and the thread from one to the next
_LETTERS = 62  # of what waits: as many as a panel has room for
_MARKED = {"condition": {"test": "datum.bounds", "value": "var(--invalid)"}}


def places_chart(shown: PlacesChain) -> tuple[Chart, ...]:
    """One picture, part below part, in the direction in which a request goes."""
    if not shown.uses:
        return ()
    rows = [_place_row(place, part) for place, part in enumerate(shown.uses)]
    bound = fmt.sentence(shown.bound)
    words = f"{fmt.printable(bound)}. " + tips(rows)
    return charts_of(shown, "", words, rows, _place_layers(len(rows)), _ROW_PX * len(rows), f"{bound}.")


def _place_row(place: int, part: PlaceUse) -> dict[str, Any]:
    number = "not observed" if part.can_be_full else ""
    if part.use is not None:
        number = f"{100 * part.use:.0f} %"
    waits = fmt.printable(part.waits) if part.waits != number else ""
    said = [words for words in (number, waits, "bottleneck" if part.bounds else "") if words]
    return {
        "top": place + _TOP,
        "end": place + _END,
        "middle": place + (_TOP + _END) / 2,
        "next": place + 1 + (_TOP + _END) / 2,
        "bead": _BEAD,
        "left": 0,
        "right": 1,
        "place": part.place,
        "what": part.what,
        "use": min(part.use or 0.0, 1.0),
        "seen": part.use is not None,
        "framed": part.can_be_full,
        "number": f"{number}  \u25c0 bottleneck".strip() if part.bounds else number,
        "waits": waits if len(waits) <= _LETTERS else f"{waits[: _LETTERS - 1]}\u2026",
        "bounds": part.bounds,
        "tip": f"{part.place}, {part.what}: {', '.join(said)}",
    }


def _place_layers(rows: int) -> list[dict[str, Any]]:
    shape = {"type": "quantitative", "axis": None}
    x = {**shape, "scale": {"domain": [1.4 * _BEAD, 1], "nice": False}}
    y = {**shape, "scale": {"domain": [0, rows], "reverse": True, "nice": False}}
    bead = {"x": {"field": "bead", **x}, "y": {"field": "middle", **y}}
    left, right = {"field": "left", **x}, {"field": "right", **x}
    box = {"x": left, "y": {"field": "top", **y}, "y2": {"field": "end"}, "description": {"field": "tip"}}
    above, below = {"field": "top", **y}, {"field": "end", **y}
    names = {"align": "left", "baseline": "bottom", "dy": -3}
    return [
        *_beads(bead, rows),
        marks(
            {"type": "rect", "cornerRadius": 2},
            {
                **box,
                "x2": {"field": "use"},
                "color": {**_MARKED, "value": "var(--series-1)"},
                "fillOpacity": {"condition": {"test": "datum.bounds", "value": 0.85}, "value": 0.55},
            },
            "datum.seen",
        ),
        _frame(box, "datum.framed && datum.seen", [1, 0]),
        _frame(box, "datum.framed && !datum.seen", [3, 3]),
        _text("place", {**names, "fontWeight": 600}, left, above),
        _text("what", {**names, "dx": 56}, left, above),
        _text("number", {**names, "align": "right"}, right, above, {**_MARKED, "value": "var(--ink)"}),
        _text("waits", {"align": "left", "baseline": "top", "dy": 3, "fontSize": 10}, left, below),
    ]


def _frame(box: dict[str, Any], which: str, dash: list[int]) -> dict[str, Any]:
    return marks(
        {"type": "rect", "fillOpacity": 0, "cornerRadius": 2, "strokeDash": dash},
        {
            **box,
            "x2": {"field": "right"},
            "stroke": {**_MARKED, "value": "var(--muted)"},
            "strokeWidth": {"condition": {"test": "datum.bounds", "value": 2.4}, "value": 0.8},
        },
        which,
    )


def _beads(bead: dict[str, Any], rows: int) -> list[dict[str, Any]]:
    return [
        marks(
            {"type": "rule", "color": "var(--muted)", "strokeWidth": 1},
            {**bead, "y2": {"field": "next"}},
            f"datum.next < {rows}",
        ),
        marks(
            {"type": "point", "shape": "circle", "filled": True, "opacity": 1},
            {
                **bead,
                "size": {"condition": {"test": "datum.bounds", "value": 110}, "value": 36},
                "color": {**_MARKED, "value": "var(--muted)"},
            },
        ),
    ]


def _text(
    field: str,
    mark: dict[str, Any],
    x: dict[str, Any],
    y: dict[str, Any],
    colour: dict[str, Any] | None = None,
) -> dict[str, Any]:
    plain = {"value": "var(--muted)" if field == "waits" else "var(--ink)"}
    encoding = {"x": x, "y": y, "text": {"field": field}, "color": colour or plain}
    return marks({"type": "text", **mark}, encoding)


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
        rows = [_stage_row(span, scale) for span in spans if span.series == series]
        stages = list(dict.fromkeys(str(row["stage"]) for row in rows))
        words = tips(rows)
        clients = len({span.client for span in spans if span.series == series})
        height = len(stages) * (_BAR * clients + _GAP)
        spec = panel(rows, _stage_layers(stages, names, last_s / scale.divisor), height)
        title, reading = fmt.printable(series), _longest_stage([one for one in spans if one.series == series])
        charts.append(Chart(f"{shown.name}-{place}", title, scale.label, words, spec, reading))
    return tuple(charts)


def _longest_stage(spans: Sequence[StageSpan]) -> str:
    usable = [one for one in spans if not (one.state and flagged(one.state))]
    if not usable:
        return "No value can be used."
    longest = max(usable, key=lambda one: one.end_s - one.start_s)
    took = fmt.with_unit(longest.end_s - longest.start_s, "s")
    return fmt.printable(f"{longest.stage} takes the longest: {took}.")


def _stage_row(span: StageSpan, scale: fmt.Scale) -> dict[str, Any]:
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


def _stage_layers(stages: Sequence[str], names: list[str], last: float) -> list[dict[str, Any]]:
    y = nominal(
        "stage",
        sort=list(stages),
        title=None,
        axis={"grid": True, "labelColor": "var(--ink)", "labelLimit": 130},
    )
    # Without a sort of its own each layer has another, and Vega complains of every panel.
    offset = nominal("client", sort="ascending")
    x = quantitative(
        "from",
        scale={"domain": [0, last * _TEXT_ROOM], "nice": False},
        axis={"title": None, "grid": False, "values": linear_ticks(last)},
    )
    return [
        marks(
            {"type": "bar", "height": {"band": 0.8}, "minBandSize": 1},
            {
                "y": y,
                "yOffset": offset,
                "x": x,
                "x2": {"field": "to"},
                "color": colour(names),
                "fillOpacity": if_invalid(0.3, 1.0),
                "description": {"field": "tip"},
            },
        ),
        marks(
            {"type": "text", "align": "left", "dx": 4, "fontSize": 10},
            {
                "y": y,
                "yOffset": offset,
                "x": quantitative("to"),
                "text": {"field": "label"},
                "color": if_invalid("var(--invalid)", "var(--ink)"),
            },
        ),
    ]
