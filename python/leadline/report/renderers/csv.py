"""The result as CSV (RFC 4180): a row for each cell and metric, then for each figure of sections.

Columns, in order: study, target, access, work, factors (JSON), metric, value, unit, low, high, blocks,
state, codes (space separated), reason. Values are in base units (B/s, 1/s, ns, B, s, 1) and unrounded;
an unmeasured value is an empty field with a reason. New columns are only ever added at the end.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping
from typing import Any

from leadline.report import format as fmt
from leadline.report.renderers.show_json import finite, plain
from leadline.report.sections.values import section_rows
from leadline.verdict.model import Cell, Findings, Quantity

COLUMNS = (
    "study",
    "target",
    "access",
    "work",
    "factors",
    "metric",
    "value",
    "unit",
    "low",
    "high",
    "blocks",
    "state",
    "codes",
    "reason",
)
# A spreadsheet runs a field that begins with one of these as a formula.
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def to_csv(findings: Findings) -> str:
    """All cells x metrics; a cell without any metric has one row that says so. Then sections' own figures."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\r\n")
    writer.writerow(COLUMNS)
    access = {target.name: target.access for target in findings.targets}
    for cell in findings.cells:
        codes = " ".join(code.code for code in cell.validity.codes)
        names = (cell.target, access.get(cell.target, ""), cell.work)
        for metric, item in _metrics(cell):
            figure = _figure(metric, item, cell.validity.state, codes)
            writer.writerow([*_names(findings.title, names, cell.factors), *figure])
    for section in findings.sections:
        for work, factors, metric, item, state in section_rows(section):
            figure = _figure(metric, item, state, "")
            writer.writerow([*_names(findings.title, ("", "", work), factors), *figure])
    return stream.getvalue()


def _names(study: str, names: tuple[str, ...], factors: Mapping[str, Any]) -> list[str]:
    levels = json.dumps(plain(dict(factors)), ensure_ascii=False)
    return [safe(text) for text in (study, *names, levels)]


def _figure(metric: str, item: Quantity, state: str, codes: str) -> list[str | int]:
    bounds = [_digits(item.low), _digits(item.high)]
    numbers: list[str | int] = [safe(metric), _digits(item.value), safe(item.unit), *bounds, item.blocks]
    return [*numbers, state, safe(codes), safe(_reason(item))]


def _metrics(cell: Cell) -> Iterator[tuple[str, Quantity]]:
    if cell.metrics:
        yield from cell.metrics.items()
        return
    reason = "not run" if cell.validity.state == "NOT_RUN" else "not measured"
    yield "", Quantity(None, "", reason=reason)


def _reason(item: Quantity) -> str:
    return "" if finite(item.value) is not None else item.reason or "not measured"


def _digits(value: float | None) -> str:
    value = finite(value)
    return "" if value is None else repr(value)


def safe(value: str) -> str:
    """Foreign text as a field: control characters shown, and never a formula in a spreadsheet."""
    text = fmt.printable(value)
    return f"'{text}" if text.lstrip().startswith(_FORMULA_STARTS) else text
