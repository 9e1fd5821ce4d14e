"""Compares two traces: figures and ratios without verdicts, since one trial of each has no interval."""

from __future__ import annotations

from collections.abc import Sequence

from leadline.store.reader import Result
from leadline.tracing.findings import trace_findings
from leadline.tracing.lives import by_life
from leadline.tracing.store import TracedProgram, differences, read_processes, stored_program, traced_trials
from leadline.tracing.tables import command_list
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
        values=(first.metrics[metric], second.metrics[metric]),
    )


def different_programs(base: Result, other: Result) -> tuple[str, ...]:
    """What the reader must know before any ratio: that they are not of one program, or that nobody knows."""
    return tuple(differences(_program(base), _program(other)))


def _program(result: Result) -> TracedProgram:
    """What its first process became."""
    trials = traced_trials(result)
    rows = read_processes(result, trials[0]) if trials else ()
    whole = by_life(rows)[:1]
    return stored_program(result.manifest, command_list(whole[0][-1].command) if whole else ())
