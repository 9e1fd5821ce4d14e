"""Compares two results that were measured apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from leadline.analysis.cells import CellTable, compare_cells_of_two_runs
from leadline.errors import ResultError
from leadline.plan.model import Plan, PlannedCell
from leadline.registry import offered
from leadline.store.reader import Result, require_cells
from leadline.verdict.comparisons.comparisons import wanted_metrics, weight_of
from leadline.verdict.comparisons.conditions import (
    Differences,
    conditions_of,
    differences_of,
    require_same_jobs,
)
from leadline.verdict.comparisons.deciding import decide
from leadline.verdict.comparisons.pair import Pair
from leadline.verdict.findings import build_findings
from leadline.verdict.inputs import alpha_of, needed_plan, tables_of
from leadline.verdict.kinds import judged
from leadline.verdict.model import Comparison, State, worst

_APART = "measured at different times: holds only as far as nothing else changed in between"


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
    sides = (base, other)
    return _differences(sides, [needed_plan(result) for result in sides]).notes()


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
