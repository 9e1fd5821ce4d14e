"""What of a study is compared with what: targets with a base, jobs beside others with the same jobs alone."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from leadline.analysis.cells import CellTable, compare_cells
from leadline.analysis.statistics.means import Ratio
from leadline.analysis.statistics.multiplicity import ALPHA
from leadline.plan.model import PlannedCell
from leadline.verdict.comparisons.deciding import decide
from leadline.verdict.comparisons.pair import Pair
from leadline.verdict.kinds import judged, kinds, metric_kind
from leadline.verdict.model import UNUSABLE, Comparison, State, worst

# What a work is asked for gets four fifths of what it may err, its percentile the rest.
PRIMARY_WEIGHT = 4.0


def compare_targets(
    cells: Sequence[PlannedCell],
    tables: Mapping[str, CellTable],
    states: Mapping[str, State],
    base: str,
    metrics: Sequence[str],
    margin: float,
    alpha: float = ALPHA,
    decides: Collection[str] = (),
) -> tuple[Comparison, ...]:
    """Every other target against `base`, work by work. No `metrics` means: what the work is asked for.

    `decides` names the works that answer the study's question, by what they are asked for.
    """
    pairs = [
        replace(pair, asked=pair.work in decides and pair.weight == PRIMARY_WEIGHT)
        for pair in pair_targets(cells, tables, states, base, metrics)
    ]
    return decide([p for p in pairs if p.ratio is not None or p.state in UNUSABLE], margin, alpha)


def pair_targets(
    cells: Sequence[PlannedCell],
    tables: Mapping[str, CellTable],
    states: Mapping[str, State],
    base: str,
    metrics: Sequence[str],
) -> list[Pair]:
    """What `compare_targets` decides, before it is decided."""
    by_place = {(cell.target, cell.work): cell for cell in cells}
    found = []
    for cell in cells:
        anchor = by_place.get((base, cell.work))
        if cell.target == base or anchor is None:
            continue
        for metric in metrics or wanted_metrics(cell):
            ratio, state = _ratio(anchor, cell, tables, states, metric)
            found.append(Pair(cell.work, base, cell.target, metric, ratio, state, weight_of(metric)))
    return found


def _ratio(
    base: PlannedCell,
    other: PlannedCell,
    tables: Mapping[str, CellTable],
    states: Mapping[str, State],
    metric: str,
) -> tuple[Ratio | None, State]:
    """Two cells in one metric, and the worse of their states; one that has no trials has no ratio."""
    sides = [tables.get(one.id) or CellTable(one.id, (), {}) for one in (base, other)]
    return compare_cells(sides[0], sides[1], metric), worst((states[base.id], states[other.id]))


def compare_beside(
    cells: Sequence[PlannedCell],
    tables: Mapping[str, CellTable],
    states: Mapping[str, State],
    metrics: Sequence[str],
    margin: float,
    alpha: float = ALPHA,
) -> tuple[Comparison, ...]:
    """Each job that ran together with others against the same job as a work of its own, where there is one.

    `base` and `other` are cells here; `work` is the job that is alone. They are a family of their own:
    another question than how targets differ.
    """
    found = pair_beside(cells, tables, states, metrics)
    return decide([p for p in found if p.ratio is not None or p.state in UNUSABLE], margin, alpha)


def pair_beside(
    cells: Sequence[PlannedCell],
    tables: Mapping[str, CellTable],
    states: Mapping[str, State],
    metrics: Sequence[str],
) -> list[Pair]:
    """What `compare_beside` decides, before it is decided."""
    found = []
    for cell in cells:
        alone = _alone(cell, cells)
        if alone is None:
            continue
        for metric in metrics or wanted_metrics(cell):
            ratio, state = _ratio(alone, cell, tables, states, metric)
            weight = weight_of(metric)
            found.append(Pair(alone.work, alone.id, cell.id, metric, ratio, state, weight, asked=True))
    return found


def compare_within(
    cells: Sequence[PlannedCell],
    tables: Mapping[str, CellTable],
    states: Mapping[str, State],
    metrics: Sequence[str],
    margin: float,
    alpha: float = ALPHA,
) -> tuple[tuple[Comparison, ...], str]:
    """Cells against others of their target, as their kinds of work say, and words for what they are held to.

    `base` and `other` are cells here, `metrics` those that the study names.
    """
    by_kind: dict[str, list[PlannedCell]] = {}
    for cell in cells:
        by_kind.setdefault(cell.kind, []).append(cell)
    asked = [kind.within(by_kind.get(kind.kind, [])) for kind in kinds()]
    pairs = []
    for base, other in (pair for one in asked for pair in one.pairs):
        for metric in asked_metrics(other, metrics):
            ratio, state = _ratio(base, other, tables, states, metric)
            pairs.append(Pair(other.work, base.id, other.id, metric, ratio, state))
    against = next((one.against for one in asked if one.pairs), "")
    return decide(pairs, margin, alpha), against


def _alone(cell: PlannedCell, cells: Sequence[PlannedCell]) -> PlannedCell | None:
    """The work of one job that does on the same target, option by option, what this job of a group does."""
    if cell.group is None or cell.order != "together":
        return None
    same = (c for c in cells if c.group is None and c.target == cell.target and c.job == cell.job)
    return next((c for c in same if c.steady is None and c.search is None), None)


def wanted_metrics(cell: PlannedCell) -> tuple[str, ...]:
    """What is compared where the study does not say: what the work is asked for, and its p99."""
    return (cell.search.metric,) if cell.search else judged(cell.kind).default_metrics(cell.job)


def weight_of(metric: str) -> float:
    """The share of the chance to err that a comparison gets."""
    return PRIMARY_WEIGHT if metric_kind(metric).asked else 1.0


def asked_metrics(cell: PlannedCell, named: Sequence[str] = ()) -> tuple[str, ...]:
    """What a work is asked for: the metrics that the study names, else its rates without the percentiles.

    Of metadata every operation has a rate of its own. These are what `--until` and `--budget` narrow and what
    is looked at over time: a percentile scatters more than a rate, and would decide how long every run takes.
    """
    return tuple(named) or tuple(m for m in wanted_metrics(cell) if weight_of(m) == PRIMARY_WEIGHT)
