"""The section of what goes stage by stage: a chart of time and tables, whoever has measured the stages."""

from __future__ import annotations

from leadline.verdict.model import FigureTable
from leadline.verdict.sections.charts import StageBars, StageSpan
from leadline.verdict.sections.section import Panels, Section

_NOTE = "One trial of each target on one scale of time: a bar for each operation, from its start to its end."


def stages_section(
    tables: tuple[FigureTable, ...], spans: tuple[StageSpan, ...], note: str = _NOTE
) -> Section:
    """Its tables below the chart, where any stage took a time; `note` says what the chart shows."""
    drawn = any(span.end_s > 0 for span in spans)
    chart = (Panels(((StageBars("stages", spans),),), note=note, legend=True, still=True),) if drawn else ()
    document = {"tables": tables, "points": [], "models": [], "stages": spans}
    return Section(
        name="copies",
        title="Operation by operation",
        parts=(*chart, *tables),
        short="Operations",
        json={"application": document},
        in_csv=False,
    )
