"""All charts of a page as Vega-Lite specifications in plain dicts: small multiples, one panel per work."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from leadline.report import tables
from leadline.report.charts import bars as chart_bars
from leadline.report.charts import chain as chart_chain
from leadline.report.charts import lines as chart_lines
from leadline.report.charts.application import run_time_charts, share_charts
from leadline.report.charts.parts import Chart, target_names
from leadline.report.charts.stages import stage_charts
from leadline.report.operations import by_operation
from leadline.verdict.model import Findings


@dataclass(frozen=True)
class Panels:
    """All charts of a page, a tuple for each of its sections."""

    rates: tuple[Chart, ...]
    latencies: tuple[Chart, ...]
    series: tuple[Chart, ...]
    origins: tuple[Chart, ...]
    chains: tuple[Chart, ...] = ()
    copies: tuple[Chart, ...] = ()
    shares: tuple[Chart, ...] = ()
    stages: tuple[Chart, ...] = ()

    @property
    def every(self) -> tuple[Chart, ...]:
        """All of them."""
        figures = (*self.rates, *self.copies, *self.shares, *self.stages, *self.latencies, *self.series)
        return (*figures, *self.origins, *self.chains)


def draw(findings: Findings) -> Panels:
    """Every chart that `findings` has numbers for."""
    names = target_names(findings)
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
    return Panels(
        _drawn(rates),
        tuple(latencies),
        tuple(series),
        _drawn(origins),
        _drawn(chains),
        run_time_charts(findings.application, names),
        share_charts(findings.application),
        stage_charts(findings.application, names),
    )


def _drawn(charts: Iterable[Chart | None]) -> tuple[Chart, ...]:
    return tuple(chart for chart in charts if chart)
