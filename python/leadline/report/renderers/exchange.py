"""Outputs for other programs: CSV (RFC 4180), JUnit XML for continuous integration, OpenMetrics."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from xml.etree import ElementTree as Tree

from leadline import units
from leadline.report import format as fmt
from leadline.report.renderers.show_json import finite, plain, section_rows
from leadline.verdict.model import Cell, Findings, Passed, Quantity, Regression, RegressionCheck

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
            figure = _csv_figure(metric, item, cell.validity.state, codes)
            writer.writerow([*_names(findings.title, names, cell.factors), *figure])
    for section in findings.sections:
        for work, factors, metric, item, state in section_rows(section):
            figure = _csv_figure(metric, item, state, "")
            writer.writerow([*_names(findings.title, ("", "", work), factors), *figure])
    return stream.getvalue()


def _names(study: str, names: tuple[str, ...], factors: Mapping[str, Any]) -> list[str]:
    levels = json.dumps(plain(dict(factors)), ensure_ascii=False)
    return [safe(text) for text in (study, *names, levels)]


def _csv_figure(metric: str, item: Quantity, state: str, codes: str) -> list[str | int]:
    wide = _says_nothing(item)
    bounds = ["", ""] if wide else [_digits(item.low), _digits(item.high)]
    numbers: list[str | int] = [safe(metric), _digits(item.value), safe(item.unit), *bounds, item.blocks]
    return [*numbers, state, safe(codes), safe(_TOO_NOISY if wide else _reason(item))]


_TOO_NOISY = f"too noisy for a CI: its ends are more than {units.TELLS:,.0f}x apart"


def _says_nothing(item: Quantity) -> bool:
    """An interval from 0.002 ns to years is no bound, and nobody should draw it."""
    low, high = finite(item.low), finite(item.high)
    return low is not None and high is not None and low > 0 and units.unbounded(low, high)


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


# What XML 1.0 cannot hold even escaped; `printable` shows the rest of the controls as escapes.
_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


_FAILURES: tuple[Passed, ...] = ("lost", "missing", "undecided")


def to_junit(found: Regression, *, allow_undecided: bool) -> str:
    """The document: INVALID is an error, a loss a failure, undecided one of its own type, or skipped."""
    failures = tuple(kind for kind in _FAILURES if not (allow_undecided and kind == "undecided"))
    counts = {
        "tests": len(found.checks),
        "failures": found.count(*failures),
        "errors": found.count("invalid"),
        "skipped": found.count("undecided") if allow_undecided else 0,
    }
    numbers = {name: str(count) for name, count in counts.items()}
    suites = Tree.Element("testsuites", {"name": "leadline", **numbers})
    suite = Tree.SubElement(
        suites, "testsuite", {"name": _clean(f"{found.new} against {found.baseline}"), **numbers}
    )
    if found.notes:
        properties = Tree.SubElement(suite, "properties")
        for note in found.notes:
            Tree.SubElement(properties, "property", {"name": "note", "value": _clean(note)})
    for check in found.checks:
        _case(suite, check, failures)
    Tree.indent(suites)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + Tree.tostring(suites, encoding="unicode") + "\n"


def _case(suite: Tree.Element, check: RegressionCheck, failures: Sequence[Passed]) -> None:
    case = Tree.SubElement(
        suite, "testcase", {"classname": _clean(check.name), "name": _clean(check.metric), "time": "0"}
    )
    words = _clean(check.words)
    if check.passed == "invalid":
        Tree.SubElement(case, "error", {"message": words, "type": "INVALID"})
    elif check.passed in failures:
        Tree.SubElement(case, "failure", {"message": words, "type": check.passed})
    elif check.passed == "undecided":
        Tree.SubElement(case, "skipped", {"message": words})
    else:
        Tree.SubElement(case, "system-out").text = words


def _clean(text: str) -> str:
    return _FORBIDDEN.sub("?", fmt.printable(text))


STATES = ("VALID", "DOUBTFUL", "INVALID", "NOT_RUN")
VERDICTS = ("met", "not met", "undecided")
# Base unit of a figure -> (suffix of the family's name, OpenMetrics unit, factor).
_UNITS = {
    "B/s": ("bytes_per_second", "bytes_per_second", 1.0),
    "1/s": ("per_second", "", 1.0),
    "ns": ("seconds", "seconds", 1e-9),
    "s": ("seconds", "seconds", 1.0),
    "B": ("bytes", "bytes", 1.0),
    "1": ("ratio", "ratio", 1.0),
}
_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_]")


@dataclass(frozen=True)
class MetricSample:
    """One line: labels in order, a value."""

    labels: Mapping[str, str]
    value: float


class _Text:
    """Families in the order they were first met, each whole, as the format demands."""

    def __init__(self) -> None:
        self.families: dict[str, tuple[str, str, str, list[MetricSample]]] = {}

    def add(self, name: str, unit: str, words: str, sample: MetricSample) -> None:
        self.families.setdefault(name, ("gauge", unit, words, []))[3].append(sample)

    def add_states(
        self, name: str, words: str, labels: Mapping[str, str], states: Mapping[str, bool]
    ) -> None:
        """A state set: its label has the family's name, as the format demands."""
        samples = self.families.setdefault(name, ("stateset", "", words, []))[3]
        samples += [MetricSample({**labels, name: state}, float(on)) for state, on in states.items()]

    def text(self) -> str:
        lines = []
        for name, (kind, unit, words, samples) in self.families.items():
            lines.append(f"# TYPE {name} {kind}")
            lines += [f"# UNIT {name} {unit}"] if unit else []
            lines.append(f"# HELP {name} {escape(words)}")
            lines += [f"{name}{_labels(sample.labels)} {_number(sample.value)}" for sample in samples]
        return "\n".join([*lines, "# EOF"]) + "\n"


def escape(text: str) -> str:
    """Backslash, quote and line end, as the format escapes them; other controls shown."""
    return fmt.printable(text).replace("\\", "\\\\").replace('"', '\\"')


def _labels(labels: Mapping[str, str]) -> str:
    inside = ",".join(f'{name}="{escape(value)}"' for name, value in labels.items())
    return f"{{{inside}}}" if inside else ""


def _number(value: float) -> str:
    return repr(float(value))


def to_openmetrics(findings: Findings) -> str:
    """Every cell's figures, bounds and validity, of INVALID cells the validity only; and each requirement."""
    text = _Text()
    for cell in findings.cells:
        labels = {"study": findings.title, "result": findings.id, "target": cell.target, "work": cell.work}
        for name, quantity in cell.metrics.items() if _usable(cell) else ():
            _metric_figure(text, name, quantity, labels)
        states = {state: cell.validity.state == state for state in STATES}
        text.add_states("leadline_cell_validity", "1 for the state that the cell is in", labels, states)
    for one in findings.required:
        labels = {"study": findings.title, "result": findings.id, "requirement": one.name}
        verdicts = {verdict: one.verdict == verdict for verdict in VERDICTS}
        text.add_states("leadline_requirement", "1 for the verdict on the requirement", labels, verdicts)
    _created(text, findings)
    return text.text()


def _usable(cell: Cell) -> bool:
    return cell.validity.state in ("VALID", "DOUBTFUL")


def _metric_figure(text: _Text, name: str, quantity: Quantity, labels: Mapping[str, str]) -> None:
    suffix, unit, factor = _UNITS.get(quantity.unit, ("", "", 1.0))
    family = "_".join(part for part in ("leadline", _NOT_IN_NAMES.sub("_", name), suffix) if part)
    bounds = {"value": quantity.value, "low": quantity.low, "high": quantity.high}
    for bound, value in bounds.items():
        if value is not None and math.isfinite(value):
            words = f"{name}: geometric mean over blocks and its 95 % CI (label bound)"
            text.add(family, unit, words, MetricSample({**labels, "bound": bound}, value * factor))


def _created(text: _Text, findings: Findings) -> None:
    try:
        moment = datetime.fromisoformat(findings.created).timestamp()
    except ValueError:
        return
    labels = {"study": findings.title, "result": findings.id}
    words = "when the result was made, seconds since 1970"
    text.add("leadline_result_created_seconds", "seconds", words, MetricSample(labels, moment))


def regression_openmetrics(found: Regression) -> str:
    """A regression check: ratios with bounds, and how each cell came out."""
    text = _Text()
    for check in found.checks:
        labels = {"cell": check.name, "metric": check.metric}
        bounds = {"value": check.ratio, "low": check.low, "high": check.high}
        for bound, value in bounds.items() if check.passed not in ("invalid", "missing") else ():
            if value is not None and math.isfinite(value):
                words = "new result over baseline, and its 95 % CI (label bound)"
                text.add(
                    "leadline_gate_ratio", "ratio", words, MetricSample({**labels, "bound": bound}, value)
                )
        ends = {end: check.passed == end for end in ("holds", "lost", "undecided", "invalid", "missing")}
        text.add_states("leadline_gate_outcome", "1 for how the check ended", labels, ends)
    text.add("leadline_gate_allow_ratio", "ratio", "the loss that is allowed", MetricSample({}, found.allow))
    return text.text()
