"""What of a study is compared with what: targets with a base, jobs beside others with the same jobs alone,
blocks over time.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from leadline.analysis.cells import CellTable, compare_cells
from leadline.analysis.statistics.drift import FEWEST_BLOCKS, Change, find_changes
from leadline.analysis.statistics.intervals import ALPHA
from leadline.analysis.statistics.means import Ratio
from leadline.plan.model import PlannedCell
from leadline.units import format_number, format_quantity
from leadline.verdict.comparisons.deciding import Pair, decide
from leadline.verdict.kinds import judged, kinds, metric_kind
from leadline.verdict.model import UNUSABLE, Comparison, State, Statement, worst

_SHOWN_MAX = 3


@dataclass(frozen=True)
class _Series:
    """The values of one metric by block: of a cell, or of the ratio of two (`unit` is empty)."""

    words: str
    unit: str
    by_block: Mapping[int, float]


def changes_over_time(
    cells: Sequence[PlannedCell],
    tables: Mapping[str, CellTable],
    states: Mapping[str, State],
    base: str,
    metrics: Sequence[str] = (),
) -> tuple[Statement, ...]:
    """At most two statements: ratios that changed during the run, and figures that did. `metrics` are those
    that the study compares; none: what each work is asked for.

    All series of a study are tested together: 19 of 20 studies in which nothing changes say nothing.
    Only blocks that every series has are looked at, and at least five of them are needed.
    """
    usable = [cell for cell in cells if states[cell.id] not in ("INVALID", "NOT_RUN") and cell.id in tables]
    every = [
        series
        for series in (*_ratios(usable, tables, base, metrics), *_rates(usable, tables, metrics))
        if len(series.by_block) >= FEWEST_BLOCKS
    ]
    if not every:
        return ()
    blocks = sorted(set.intersection(*(set(series.by_block) for series in every)))
    rows = [[math.log(series.by_block[block]) for block in blocks] for series in every]
    found = find_changes(rows)
    ratios = [change for change in found if not every[change.series].unit]
    rates = [change for change in found if every[change.series].unit]
    statements = []
    if ratios:
        statements.append(_statement("ratio", ratios, every, blocks))
    if rates:
        statements.append(_statement("rate", rates, every, blocks))
    return tuple(statements)


def _rates(
    cells: Sequence[PlannedCell], tables: Mapping[str, CellTable], named: Sequence[str]
) -> Iterator[_Series]:
    for cell in cells:
        metrics = asked_metrics(cell, named)
        for metric in metrics:
            words = cell.id if len(metrics) == 1 else f"{metric} of {cell.id}"
            yield _Series(words, metric_kind(metric).unit, _values(tables[cell.id], metric))


def _ratios(
    cells: Sequence[PlannedCell], tables: Mapping[str, CellTable], base: str, named: Sequence[str]
) -> Iterator[_Series]:
    anchors = {cell.work: cell for cell in cells if cell.target == base}
    for cell in cells:
        anchor = anchors.get(cell.work)
        if anchor is None or cell.target == base:
            continue
        for metric in asked_metrics(cell, named):
            own, other = _values(tables[anchor.id], metric), _values(tables[cell.id], metric)
            shared = {block: other[block] / own[block] for block in own if block in other}
            yield _Series(f"{metric} of {cell.target} / {base} in {cell.work}", "", shared)


def _values(table: CellTable, metric: str) -> dict[int, float]:
    found = {block: measured.values.get(metric, 0.0) for block, measured in table.by_block.items()}
    return {block: value for block, value in found.items() if value > 0}


def _statement(
    kind: str, changes: Sequence[Change], every: Sequence[_Series], blocks: Sequence[int]
) -> Statement:
    told = [_words(change, every[change.series], blocks) for change in changes]
    rest = f" and {len(told) - _SHOWN_MAX} more" if len(told) > _SHOWN_MAX else ""
    text = f"During the run {'; '.join(told[:_SHOWN_MAX])}{rest}."
    if kind == "ratio":
        text += " A comparison is of the means over the run, and these blocks differ."
        if any(change.kind == "dependence" for change in changes):
            text += " With correlated blocks its CI may be too narrow: run more blocks, longer apart."
    else:
        text += " Changes that all targets share do not affect comparisons, which are made within each block."
    evidence = tuple(
        f"{every[change.series].words}: {change.kind}, p = {change.p_value:.2g},"
        f" lag-1 correlation {change.correlation:.2f}, {len(blocks)} blocks"
        for change in changes
    )
    if kind == "ratio":
        return Statement("caution", text, evidence, says="ratios_changed")
    return Statement("finding", text, evidence, says="figures_changed")


def _words(change: Change, series: _Series, blocks: Sequence[int]) -> str:
    if change.kind == "dependence" or change.before is None or change.after is None:
        return f"neighbouring blocks of {series.words} were correlated"
    before, after = _figure(change.before, series.unit), _figure(change.after, series.unit)
    if change.kind == "trend":
        verb = "rose" if change.after > change.before else "fell"
        return f"{series.words} {verb} from {before} in the first third to {after} in the last"
    if change.at == 1:
        return f"{series.words} was {before} in block {blocks[0]} and {after} after it (warm-up)"
    where = blocks[change.at or 0]
    return f"{series.words} changed from {before} before block {where} to {after} from there on"


def _figure(logarithm: float, unit: str) -> str:
    value = math.exp(logarithm)
    return format_quantity(value, unit) if unit else format_number(value)


# What a workload is asked for gets four fifths of what it may err, its percentile the rest.
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
