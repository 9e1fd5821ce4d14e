"""Compares two traces: ratios only, since one trial of each has no interval."""

from __future__ import annotations

from collections.abc import Sequence

from leadline.store.reader import Result
from leadline.tracing.findings import trace_findings
from leadline.verdict.model import Cell, Comparison, worst

_ALONE = "one trial of each: a ratio without an interval, so that no verdict is given"


def compare_traces(
    base: Result, other: Result, metrics: Sequence[str], margin: float
) -> tuple[Comparison, ...]:
    """The figures of `other` against those of `base`, trial by trial in their order."""
    sides = [trace_findings(result, with_charts=False).cells for result in (base, other)]
    return tuple(
        _compare(first, second, metric, margin)
        for first, second in zip(*sides, strict=False)
        for metric in (metrics or tuple(first.metrics))
        if metric in first.metrics and metric in second.metrics
    )


def _compare(first: Cell, second: Cell, metric: str, margin: float) -> Comparison:
    before, after = first.metrics[metric].value, second.metrics[metric].value
    work = first.work if first.work == second.work else f"{first.work}, {second.work}"
    return Comparison(
        work=work,
        metric=metric,
        base=f"A:{first.target}",
        other=f"B:{second.target}",
        ratio=after / before if before and after is not None else None,
        low=None,
        high=None,
        blocks=1,
        verdict="undecided",
        margin=margin,
        assumption=_ALONE,
        validity=worst([first.validity.state, second.validity.state]),
    )
