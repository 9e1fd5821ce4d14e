"""From ratios to words: faster, slower, the same within a margin, or undecided."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from leadline.analysis.cells import CellTable, compare_cells
from leadline.analysis.metrics import default_metrics, metric_kind
from leadline.analysis.statistics import Estimate
from leadline.plan import PlannedCell
from leadline.verdict.model import Comparison, Outcome, State
from leadline.verdict.validity import worst

# Below this many blocks the interval is only as good as its assumptions: nothing can test them.
FEW_BLOCKS = 6


def outcome_of(estimate: Estimate | None, higher_is_better: bool, margin: float) -> Outcome:
    """What the interval of the ratio other/base allows one to say of `other`."""
    if estimate is None or estimate.low is None or estimate.high is None:
        return "undecided"
    if 1 / (1 + margin) <= estimate.low and estimate.high <= 1 + margin:
        return "same"
    if estimate.low > 1:
        return "faster" if higher_is_better else "slower"
    if estimate.high < 1:
        return "slower" if higher_is_better else "faster"
    return "undecided"


def compare(
    base: CellTable,
    other: CellTable,
    names: tuple[str, str, str],
    metric: str,
    margin: float,
    states: Sequence[State],
) -> Comparison:
    """One comparison. `names` are work, base and other; `states` the validity of both cells."""
    estimate = compare_cells(base, other, metric)
    state = worst(states)
    outcome = outcome_of(estimate, metric_kind(metric).higher_is_better, margin)
    blocks = estimate.count if estimate else 0
    return Comparison(
        work=names[0],
        metric=metric,
        base=names[1],
        other=names[2],
        ratio=estimate.value if estimate else None,
        low=estimate.low if estimate else None,
        high=estimate.high if estimate else None,
        blocks=blocks,
        verdict="undecided" if state in ("INVALID", "NOT_RUN") else outcome,
        margin=margin,
        assumption=_assumption(blocks),
        validity=state,
    )


def _assumption(blocks: int) -> str | None:
    if blocks < 2:
        return "one block gives no interval"
    if blocks < FEW_BLOCKS:
        return f"{blocks} blocks: rests on the assumption that ratios are lognormal and blocks independent"
    return None


def wanted_metrics(cell: PlannedCell) -> tuple[str, ...]:
    """What is compared where the study does not say: what the work is asked for, and its p99."""
    return default_metrics(cell.job.as_json()) if cell.search is None else (cell.search.metric,)


def compare_beside(
    cells: Sequence[PlannedCell],
    tables: Mapping[str, CellTable],
    states: Mapping[str, State],
    metrics: Sequence[str],
    margin: float,
) -> tuple[Comparison, ...]:
    """Each job that ran together with others against the same job as a work of its own, where there is one.

    `base` and `other` are cells here; `work` is the job that is alone.
    """
    found = []
    for cell in cells:
        alone = _alone(cell, cells)
        if alone is None:
            continue
        pair = [tables.get(one.id) or CellTable(one.id, (), {}) for one in (alone, cell)]
        names = (alone.work, alone.id, cell.id)
        both = (states[alone.id], states[cell.id])
        wanted = metrics or wanted_metrics(cell)
        found += [compare(pair[0], pair[1], names, metric, margin, both) for metric in wanted]
    return tuple(c for c in found if c.ratio is not None or c.validity in ("INVALID", "NOT_RUN"))


def _alone(cell: PlannedCell, cells: Sequence[PlannedCell]) -> PlannedCell | None:
    """The work of one job that does on the same target, option by option, what this job of a group does."""
    if cell.group is None or cell.order != "together":
        return None
    same = (c for c in cells if c.group is None and c.target == cell.target and c.job == cell.job)
    return next((c for c in same if c.steady is None and c.search is None), None)


def compare_targets(
    cells: Sequence[PlannedCell],
    tables: Mapping[str, CellTable],
    states: Mapping[str, State],
    base: str,
    metrics: Sequence[str],
    margin: float,
) -> tuple[Comparison, ...]:
    """Every other target against `base`, work by work. No `metrics` means: what the work is asked for."""
    by_place = {(cell.target, cell.work): cell for cell in cells}
    found = []
    for cell in cells:
        anchor = by_place.get((base, cell.work))
        if cell.target == base or anchor is None:
            continue
        pair = [tables.get(anchor.id), tables.get(cell.id)]
        for metric in metrics or wanted_metrics(cell):
            first = pair[0] or CellTable(anchor.id, (), {})
            second = pair[1] or CellTable(cell.id, (), {})
            found.append(
                compare(
                    first,
                    second,
                    (cell.work, base, cell.target),
                    metric,
                    margin,
                    (states[anchor.id], states[cell.id]),
                )
            )
    return tuple(c for c in found if c.ratio is not None or c.validity in ("INVALID", "NOT_RUN"))
