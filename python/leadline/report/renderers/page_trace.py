"""What the HTML page of a trace shows: the sections of each trial with their charts and tables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from leadline.report.charts import trace as trace_charts
from leadline.report.charts.parts import Chart
from leadline.report.renderers.terminal_trace import Sheet, next_steps, sheets
from leadline.tracing.model import TraceView
from leadline.tracing.words import cost_words
from leadline.verdict.model import Findings

_ROWS_SHOWN = 100


@dataclass(frozen=True)
class Section:
    """One trial's trace on the page."""

    view: TraceView
    charts: dict[str, tuple[Chart, ...]]
    sheets: tuple[Sheet, ...]
    costs: tuple[str, ...]


def sections(findings: Findings) -> tuple[Section, ...]:
    """A section for each trial that was traced."""
    return tuple(
        Section(
            view,
            trace_charts.draw(findings, place, view),
            tuple(sheets(view, _ROWS_SHOWN)) if view.processes else (),
            tuple(cost_words(item, view) for item in view.findings),
        )
        for place, view in enumerate(findings.traces)
    )


def charts_of(found: tuple[Section, ...]) -> Iterator[Chart]:
    """All charts of the page."""
    for section in found:
        for charts in section.charts.values():
            yield from charts


def context(findings: Findings, found: tuple[Section, ...]) -> dict[str, Any]:
    """What the template needs besides what all pages share."""
    return {
        "findings": findings,
        "sections": found,
        "codes": [code for cell in findings.cells for code in cell.validity.codes],
        "next_steps": next_steps(findings),
    }
