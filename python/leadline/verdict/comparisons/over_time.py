"""Sentences about what changed while a study ran: a drift, a change of level, blocks that hang together."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from leadline.analysis.cells import CellTable
from leadline.analysis.statistics.drift import FEWEST_BLOCKS, Change, find_changes
from leadline.plan.model import PlannedCell
from leadline.units import format_number, format_quantity
from leadline.verdict.comparisons.comparisons import asked_metrics
from leadline.verdict.kinds import metric_kind
from leadline.verdict.model import State, Statement

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
        text += " A comparison is about the mean over the run, and its blocks are not all alike."
        if any(change.kind == "dependence" for change in changes):
            text += (
                " Where blocks hang together its interval may be too narrow: run more blocks, longer apart."
            )
    else:
        text += " What targets share leaves their comparison alone, since it is made within each block."
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
        return f"neighbouring blocks of {series.words} resembled each other"
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
