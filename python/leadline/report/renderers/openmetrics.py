"""Figures as OpenMetrics 1.0 text, for Prometheus' textfile collector and its kin.

One gauge family a metric; labels name the cell. Seconds and bytes are base units, as OpenMetrics asks.
Source: the OpenMetrics specification, https://prometheus.io/docs/specs/om/open_metrics_spec/
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from leadline.report import format as fmt
from leadline.verdict.model import Cell, Findings, Quantity, Regression

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
            _figure(text, name, quantity, labels)
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


def _figure(text: _Text, name: str, quantity: Quantity, labels: Mapping[str, str]) -> None:
    suffix, unit, factor = _UNITS.get(quantity.unit, ("", "", 1.0))
    family = "_".join(part for part in ("leadline", _NOT_IN_NAMES.sub("_", name), suffix) if part)
    bounds = {"value": quantity.value, "low": quantity.low, "high": quantity.high}
    for bound, value in bounds.items():
        if value is not None and math.isfinite(value):
            words = f"{name}: geometric mean over blocks and its 95 % interval (label bound)"
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
                words = "new result over baseline, and its 95 % interval (label bound)"
                text.add(
                    "leadline_gate_ratio", "ratio", words, MetricSample({**labels, "bound": bound}, value)
                )
        ends = {end: check.passed == end for end in ("holds", "lost", "undecided", "invalid", "missing")}
        text.add_states("leadline_gate_outcome", "1 for how the check ended", labels, ends)
    text.add("leadline_gate_allow_ratio", "ratio", "the loss that is allowed", MetricSample({}, found.allow))
    return text.text()
