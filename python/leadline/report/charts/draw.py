"""All charts of a page as Vega-Lite specifications in plain dicts: small multiples, one panel per work.

Amounts over time, with what went on meanwhile shaded: bytes outstanding and the stalls in them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from leadline.report import format as fmt
from leadline.report import tables
from leadline.report.charts import bars as chart_bars
from leadline.report.charts import lines as chart_lines
from leadline.report.charts import ways as chart_chain
from leadline.report.charts.answer import answer_chart
from leadline.report.charts.bars import share_charts
from leadline.report.charts.growth import (
    count_charts,
    growth_charts,
    heat_charts,
    knee_charts,
    life_charts,
    rate_charts,
    time_charts,
)
from leadline.report.charts.parts import (
    PALETTE,
    Chart,
    charts_of,
    kind_colour,
    marks,
    quantitative,
    target_names,
)
from leadline.report.charts.ways import places_chart, stage_charts
from leadline.report.metrics import by_operation
from leadline.verdict.model import Cell, Findings
from leadline.verdict.sections import charts as verdict_charts
from leadline.verdict.sections.charts import (
    AmountLines,
    CellCurves,
    CountBars,
    GroupedBars,
    GrowthLines,
    HeatMap,
    KneeMap,
    LifeBars,
    PlacesChain,
    RateLines,
    ShareBars,
    StageBars,
    TimeBars,
)
from leadline.verdict.sections.section import Panels


def amount_charts(shown: AmountLines) -> tuple[Chart, ...]:
    """Lines of one scale over bands that say what they are."""
    scale = fmt.scale_for(shown.unit, [max(v for _, v in line.points) for line in shown.lines if line.points])
    rows = [
        {"kind": fmt.printable(line.label), "t": seconds, "value": value / scale.divisor}
        for line in shown.lines
        for seconds, value in line.points
    ]
    x = quantitative(
        "t", axis={"title": "seconds since the start", "grid": False}, scale={"zero": True, "nice": False}
    )
    bands = {
        "data": {
            "values": [
                {"t": span.start_s, "to": span.end_s, "tip": fmt.printable(span.words)}
                for span in shown.spans
            ]
        },
        "mark": {"type": "rect", "color": "var(--invalid)", "opacity": 0.18},
        "encoding": {"x": x, "x2": {"field": "to"}, "description": {"field": "tip"}},
    }
    several = len(shown.lines) > 1
    lines = marks(
        {"type": "line", "interpolate": "step", "strokeWidth": 1.6, "color": PALETTE[0]},
        {
            "x": x,
            "y": quantitative("value", axis={"title": None, "format": ",.3~r"}),
            **({"color": kind_colour([fmt.printable(one.label) for one in shown.lines])} if several else {}),
        },
    )
    words = [fmt.printable(span.words) for span in shown.spans[:3]]
    more = [f"{len(shown.spans) - 3} more"] if shown.spans[3:] else []
    said = "; ".join([f"{scale.label} over time", *words, *more])
    layers = [*([bands] if shown.spans else []), lines]
    peak = max(rows, key=lambda row: float(str(row["value"])), default=None)
    reading = ""
    if peak:
        value = f"{fmt.number(float(str(peak['value'])))} {scale.label}"
        reading = f"{peak['kind']} peaks at {value} after {fmt.number(float(str(peak['t'])))} s."
    return charts_of(shown, scale.label, said, rows, layers, 150, reading)


@dataclass(frozen=True)
class DrawnPanels:
    """The charts of a part of a section, row by row."""

    part: Panels
    rows: tuple[tuple[Chart, ...], ...]

    @property
    def every(self) -> tuple[Chart, ...]:
        """All of them."""
        return tuple(chart for row in self.rows for chart in row)


@dataclass(frozen=True)
class Drawn:
    """All charts of a page, a tuple for each of its sections."""

    rates: tuple[Chart, ...]
    latencies: tuple[Chart, ...]
    series: tuple[Chart, ...]
    origins: tuple[Chart, ...]
    chains: tuple[Chart, ...] = ()
    sections: tuple[DrawnPanels, ...] = ()
    answer: tuple[Chart, ...] = ()

    @property
    def every(self) -> tuple[Chart, ...]:
        """All of them."""
        drawn = (chart for panels in self.sections for chart in panels.every)
        figures = (*self.answer, *self.rates, *drawn, *self.latencies, *self.series)
        return (*figures, *self.origins, *self.chains)

    @property
    def pictures(self) -> tuple[Chart, ...]:
        """Those that are more than a sentence."""
        return tuple(chart for chart in self.every if chart.spec)

    def of(self, part: Panels) -> DrawnPanels:
        """The charts of a part of a section."""
        return next(drawn for drawn in self.sections if drawn.part is part)


def section_charts(findings: Findings, names: list[str]) -> tuple[DrawnPanels, ...]:
    """The charts of all sections."""
    cells = {cell.id: cell for cell in findings.cells}
    parts = (part for section in findings.sections for part in section.parts if isinstance(part, Panels))
    return tuple(
        DrawnPanels(
            part,
            tuple(
                tuple(drawn for chart in row for drawn in _chart(chart, cells, names)) for row in part.rows
            ),
        )
        for part in parts
    )


def _chart(chart: verdict_charts.Chart, cells: Mapping[str, Cell], names: list[str]) -> tuple[Chart, ...]:
    if isinstance(chart, GrowthLines):
        return growth_charts(chart, names)
    if isinstance(chart, GroupedBars):
        return chart_bars.grouped_charts(chart, names)
    if isinstance(chart, StageBars):
        return stage_charts(chart, names)
    if isinstance(chart, CellCurves):
        cell = cells[chart.cell]
        return tuple(chart_lines.latency(chart.place, cell.work, (cell,), [fmt.printable(cell.target)]))
    draw_one: Callable[[Any], tuple[Chart, ...]] = _OF_KIND[type(chart)]
    return draw_one(chart)


_OF_KIND: dict[type, Callable[[Any], tuple[Chart, ...]]] = {
    AmountLines: amount_charts,
    ShareBars: share_charts,
    RateLines: rate_charts,
    HeatMap: heat_charts,
    KneeMap: knee_charts,
    LifeBars: life_charts,
    TimeBars: time_charts,
    CountBars: count_charts,
    PlacesChain: places_chart,
}


def draw(findings: Findings) -> Drawn:
    """Every chart that `findings` has numbers for."""
    names = target_names(findings)
    if not findings.frame.cells:
        return Drawn((), (), (), (), sections=section_charts(findings, names))
    every, findings = findings, replace(findings, cells=tuple(c for c in findings.cells if c.swept is None))
    works = tables.by_work(findings)
    si = findings.published_units
    points = chart_lines.points_per_line(sum(len(cell.lines) for cell in findings.cells))
    each = tables.by_work(by_operation(findings))
    rates = [
        chart_bars.rate(place, work, cells, names, si)
        for place, (work, cells) in enumerate(each.items())
        if not any(cell.shown.own_charts for cell in cells)  # they have charts of their own
    ]
    latencies = [
        chart
        for place, (work, cells) in enumerate(works.items())
        for chart in chart_lines.latency(place, work, cells, names)
    ]
    series = [
        chart
        for place, (work, cells) in enumerate(works.items())
        for chart in chart_lines.series(place, work, cells, names, points, si)
    ]
    origins = [
        chart_bars.origin(place, work, cells, names) for place, (work, cells) in enumerate(works.items())
    ]
    chains = [
        chart_chain.chain(place, work, cells, names, direction)
        for place, (work, cells) in enumerate(works.items())
        for direction in ("read", "write")
    ]
    return Drawn(
        _drawn(rates),
        tuple(latencies),
        tuple(series),
        _drawn(origins),
        tuple(one for one in _drawn(chains) if one.spec),  # the table has what is all from one place
        section_charts(every, names),
        _drawn([answer_chart(findings)]),
    )


def _drawn(charts: Iterable[Chart | None]) -> tuple[Chart, ...]:
    return tuple(chart for chart in charts if chart)
