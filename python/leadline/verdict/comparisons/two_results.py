"""Compares two results that were measured apart: cell by cell, as a site's own check of regressions, or as
copies.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from leadline.analysis.cells import CellTable, compare_cells_of_two_runs
from leadline.errors import ResultError, UsageError
from leadline.plan.model import Plan, PlannedCell
from leadline.registry import offered
from leadline.store.reader import Result, refuse_search, require_cells
from leadline.units import format_count, unbounded
from leadline.verdict.comparisons.comparisons import wanted_metrics, weight_of
from leadline.verdict.comparisons.conditions import (
    Differences,
    conditions_of,
    differences_of,
    require_same_jobs,
)
from leadline.verdict.comparisons.deciding import Pair, decide
from leadline.verdict.findings import build_findings
from leadline.verdict.inputs import alpha_of, needed_plan, tables_of
from leadline.verdict.kinds import judged, metric_kind
from leadline.verdict.model import Comparison, Passed, Regression, RegressionCheck, State, worst


def in_common(first: Result, second: Result) -> str | None:
    """What two results have in common that were not measured apart, in words; None where they were.

    By their ids, or by the starts and lengths of trials in nanoseconds, whatever the ids and directories are:
    no two trials agree in both. A result that was copied and gone on with has some of its trials in common.
    """
    same_id = first.manifest["id"] == second.manifest["id"]
    mine, theirs = _trials(first), _trials(second)
    shared = len(mine & theirs)
    if not same_id and not shared:
        return None
    where = f"{second.path} and {first.path}"
    if not shared:
        return f"{where} are one result, {first.manifest['id']}: of the same trials, or of some of them"
    if mine == theirs:
        return f"{where} have the same trials: one is the other, or its copy"
    return f"{where} have {shared} of their {format_count(len(mine | theirs), 'trial')} in common"


def _trials(result: Result) -> set[tuple[int, int]]:
    """Starts and lengths; of what has no trials, when it was stored."""
    if result.published or result.traced or result.workflows:
        return {(event.t_ns, 0) for event in result.events}
    return {(row.started_unix_ns, row.measured_ns) for row in result.trials()}


# Beyond these a percentage would have digits without meaning.
_PERCENT_MAX, _PERCENT_ALL = 10_000.0, 99.9


def check_regression(
    baseline: Result, new: Result, metrics: Sequence[str], allow: float, *, across_jobs: bool = False
) -> Regression:
    """Every cell of the baseline. Raises ResultError where the two have no cell in common, UsageError where
    they have trials in common: a result that is held against itself loses nothing; or where cells of one name
    ran different jobs, unless that is asked for (`across_jobs`).
    """
    for one in (baseline, new):
        refuse_search(one.path, one.manifest)
    shared = in_common(baseline, new)
    if shared:
        raise UsageError(f"nothing was checked: {shared}", "give two results that were measured separately")
    comparisons = compare_results(baseline, new, metrics, allow, asked=True, across_jobs=across_jobs)
    checks = [check_of(comparison, allow) for comparison in comparisons]
    gone = [
        RegressionCheck(name, "-", "missing", "the new result lacks this cell of the baseline")
        for name in missing_cells(baseline, new)
    ]
    notes = apart_from_figures(baseline, new)
    return Regression(str(baseline.path), str(new.path), allow, (*checks, *gone), notes)


def check_of(comparison: Comparison, allow: float) -> RegressionCheck:
    """Judge one comparison of new against baseline by its interval."""
    passed, words = _judge(comparison, allow)
    target = comparison.other.removeprefix("B:")
    return RegressionCheck(
        name=f"{target}.{comparison.work}",
        metric=comparison.metric,
        passed=passed,
        words=words,
        ratio=comparison.ratio,
        low=comparison.low,
        high=comparison.high,
        blocks=comparison.blocks,
        state=comparison.validity,
    )


def _judge(comparison: Comparison, allow: float) -> tuple[Passed, str]:
    if comparison.validity in ("INVALID", "NOT_RUN"):
        return "invalid", f"{comparison.validity.replace('_', ' ')}: its values must not be compared"
    if comparison.ratio is None:
        return "undecided", "not measured in both"
    if not (math.isfinite(comparison.ratio) and comparison.ratio > 0):
        return "undecided", "no ratio: one of the two values is too close to zero"
    higher = metric_kind(comparison.metric).higher_is_better
    change = _change(comparison.ratio, higher)
    if comparison.low is None or comparison.high is None:
        return "undecided", f"{change} (1 block: no CI)"
    lost = [1 - end if higher else end - 1 for end in (comparison.low, comparison.high)]
    range_words = f"{change} (CI: {_span(comparison.low, comparison.high, higher)})"
    limit = f"the allowed loss of {100 * allow:.1f} %"
    if min(lost) > allow:
        return "lost", f"{range_words}: the whole CI exceeds {limit}"
    if max(lost) <= allow:
        return "holds", range_words
    if unbounded(comparison.low, comparison.high):
        blocks = format_count(comparison.blocks, "block")
        return "undecided", f"{change} ({blocks}: too noisy for a CI); run more blocks"
    return "undecided", f"{range_words}: the CI contains {limit}; run more blocks"


def _change(ratio: float, higher_is_better: bool) -> str:
    """A ratio as a gain or a loss in percent of the baseline."""
    return f"{_direction(ratio, higher_is_better)} of {_percent(ratio)}"


def _span(low: float, high: float, higher_is_better: bool) -> str:
    """`a loss of 2.0 % to 7.0 %`, `a loss of 2.0 % to a gain of 1.0 %`."""
    ends = [_direction(end, higher_is_better) for end in (low, high)]
    second = f"a {ends[1]} of " if ends[0] != ends[1] else ""
    return f"a {ends[0]} of {_percent(low)} to {second}{_percent(high)}"


def _direction(ratio: float, higher_is_better: bool) -> str:
    return "gain" if (ratio >= 1) == higher_is_better else "loss"


def _percent(ratio: float) -> str:
    percent = 100 * (ratio - 1)
    if percent > _PERCENT_MAX or percent < -_PERCENT_ALL:
        most = f"{_PERCENT_MAX:,.0f}" if percent > 0 else f"{_PERCENT_ALL:.1f}"
        return f"more than {most} %"
    return f"{abs(percent):.1f} %"


_APART = "measured at different times: valid only if nothing else changed in between"


def compare_results(
    base: Result,
    other: Result,
    metrics: Sequence[str],
    margin: float,
    *,
    asked: bool = False,
    across_jobs: bool = False,
) -> tuple[Comparison, ...]:
    """Every cell of `other` against the cell of `base` with the same target and work.

    Two results of one target each match by work alone, whatever their targets are called. `asked`: one answer
    follows from all of them, so none may err; else they explore. Raises UsageError where cells of one name
    ran different jobs, unless that is asked for (`across_jobs`).
    """
    if base.traced and other.traced:
        of_traces: tuple[Comparison, ...] = offered("comparisons of two traces")(base, other, metrics, margin)
        return of_traces
    for result in (base, other):
        require_cells(result.path, result.manifest)
    states = [_states(result) for result in (base, other)]  # first: it says of a damaged one which it is
    plans = [needed_plan(result) for result in (base, other)]
    pairs = _pairs(plans[0], plans[1])
    require_same_jobs(_differences((base, other), plans), (base.path, other.path), across=across_jobs)
    if not pairs:
        raise ResultError(
            f"{base.path} and {other.path} have no cell in common",
            "compare results of the same study, with targets of the same names",
        )
    tables = [tables_of(result, plan) for result, plan in zip((base, other), plans, strict=True)]
    found = []
    for first, second in pairs:
        state = worst([states[0][first.id], states[1][second.id]])
        explaining = judged(first.kind).explaining_metrics(first.job)
        for metric in metrics or (*wanted_metrics(first), *explaining):
            pair = _pair((first, second), (tables[0], tables[1]), metric, state)
            found.append(replace(pair, asked=asked))
    return decide(found, margin, min(alpha_of(base.manifest), alpha_of(other.manifest)))


def apart_from_figures(base: Result, other: Result) -> tuple[str, ...]:
    """What differs between two results besides what they measured, as sentences: of traces, the program; of
    studies the jobs, the access methods, the clients and the releases, as far as these are stored.
    """
    if base.traced and other.traced:
        of_programs: tuple[str, ...] = offered("differences of two traced programs")(base, other)
        return of_programs
    return differences_between((base, other)).notes()


def differences_between(sides: tuple[Result, Result], names: tuple[str, str] = ("A", "B")) -> Differences:
    """What differs between the cells of two studies that are compared; `names` is how the two are called."""
    return replace(_differences(sides, [needed_plan(result) for result in sides]), sides=names)


def _differences(sides: Sequence[Result], plans: Sequence[Plan]) -> Differences:
    """Of the cells that are compared."""
    known = [conditions_of(one.manifest, plan) for one, plan in zip(sides, plans, strict=True)]
    pairs = _pairs(plans[0], plans[1])
    return differences_of([(first.work, known[0][first.id], known[1][second.id]) for first, second in pairs])


def missing_cells(base: Result, other: Result) -> tuple[str, ...]:
    """Cells of `base` that `other` has no counterpart of; one of a sweep's grid need not have been tried."""
    if base.traced:
        return ()
    plans = [needed_plan(base), Plan.from_json(other.manifest["plan"])]
    paired = {first.id for first, _ in _pairs(plans[0], plans[1])}
    return tuple(cell.id for cell in plans[0].cells if cell.id not in paired)


def _pairs(base: Plan, other: Plan) -> list[tuple[PlannedCell, PlannedCell]]:
    alone = len(base.targets) == len(other.targets) == 1
    by_key = {(None if alone else cell.target, cell.work): cell for cell in base.cells}
    keys = [((None if alone else cell.target, cell.work), cell) for cell in other.cells]
    return [(by_key[key], cell) for key, cell in keys if key in by_key]


def _states(result: Result) -> dict[str, State]:
    return {cell.id: cell.validity.state for cell in build_findings(result, with_charts=False).cells}


def _pair(
    cells: tuple[PlannedCell, PlannedCell],
    tables: tuple[dict[str, CellTable], dict[str, CellTable]],
    metric: str,
    state: State,
) -> Pair:
    first, second = (table.get(cell.id) for cell, table in zip(cells, tables, strict=True))
    return Pair(
        work=cells[0].work,
        base=f"A:{cells[0].target}",
        other=f"B:{cells[1].target}",
        metric=metric,
        ratio=compare_cells_of_two_runs(first, second, metric) if first and second else None,
        state=state,
        weight=weight_of(metric),
        basis=_APART,
    )
