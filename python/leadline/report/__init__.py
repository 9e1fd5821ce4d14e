"""Renders findings: the only thing it reads is `leadline.verdict.model.Findings`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from leadline.verdict.model import Findings

FORMATS = ("html", "md", "csv", "json", "fio", "openmetrics")


def prepare(format: str) -> None:
    """Begin beside what follows what takes a second before a page's first chart is drawn as SVG."""
    if format == "html":
        from leadline.report.still_charts import begin_drawing

        begin_drawing()


def left_out(format: str) -> str:
    """What a report in this format lacks on this host, why, and what to do; "" where nothing."""
    if format != "html":
        return ""
    from leadline.report.still_charts import undrawable

    lacking = undrawable()
    return f"the page draws its charts by scripts only: {lacking[0]}. {lacking[1]}" if lacking else ""


def render(findings: Findings, format: str) -> str:
    """The whole result as text in one of `FORMATS`. Raises UsageError for any other format.

    CSV has RFC 4180's line ends: write it without translating them.
    """
    if format == "html":
        from leadline.report.renderers.page import to_html

        return to_html(findings)
    if format == "md":
        from leadline.report.renderers.markdown import to_markdown

        return to_markdown(findings)
    if format == "csv":
        from leadline.report.renderers.exchange import to_csv

        return to_csv(findings)
    if format == "fio":
        from leadline.report.renderers.fio import to_fio

        return to_fio(findings)
    if format == "openmetrics":
        from leadline.report.renderers.exchange import to_openmetrics

        return to_openmetrics(findings)
    if format == "json":
        import json

        from leadline.report.renderers.show_json import to_json

        return json.dumps(to_json(findings), indent=2, allow_nan=False) + "\n"
    from leadline.errors import UsageError

    raise UsageError(f"there is no report format {format!r}", f"choose one of {', '.join(FORMATS)}")
