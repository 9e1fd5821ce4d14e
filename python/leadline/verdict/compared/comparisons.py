"""From ratios to words: faster, slower, the same within a margin, or undecided."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from leadline.analysis.cells import CellTable, compare_cells
from leadline.analysis.statistics.lopsided import lopsided
from leadline.analysis.statistics.means import Estimate, Ratio
from leadline.analysis.statistics.multiplicity import ALPHA, holm_levels
from leadline.plan.model import PlannedCell
from leadline.verdict.model import UNUSABLE, Comparison, Outcome, State, worst
from leadline.workloads.judged import judged, metric_kind, metric_part

# Below this many blocks the interval is only as good as its assumptions: nothing can test them.
FEW_BLOCKS = 6
# What a work is asked for gets four fifths of what it may err, its percentile the rest.
PRIMARY_WEIGHT = 4.0


@dataclass(frozen=True)
class Pair:
    """Two cells in one metric, before it is known at which confidence they are compared.

    `weight` is the comparison's share of the chance to err; `basis` says what the interval rests on
    apart from the number of blocks.
    """

    work: str
    base: str
    other: str
    metric: str
    ratio: Ratio | None
    state: State
    weight: float = 1.0
    basis: str | None = None


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


def decide(pairs: Sequence[Pair], margin: float, alpha: float = ALPHA) -> tuple[Comparison, ...]:
    """One comparison each. Those that can be decided share the chance `alpha` to err (Holm), and one chance
    in twenty to be called lopsided without being so.
    """
    ratios = [pair.ratio if pair.state not in UNUSABLE else None for pair in pairs]
    family = [(i, ratio) for i, ratio in enumerate(ratios) if ratio is not None and ratio.series]
    levels = dict.fromkeys(range(len(pairs)), alpha)
    weights = [pairs[i].weight for i, _ in family]
    found = holm_levels([ratio.p_value() for _, ratio in family], weights, alpha)
    levels |= {i: level for (i, _), level in zip(family, found, strict=True)}
    correction = _correction([levels[i] for i, _ in family], alpha)
    uneven = {i: lopsided(ratio.logarithms, ALPHA / len(family)) for i, ratio in family}
    return tuple(
        _comparison(pair, levels[i], margin, correction, uneven.get(i)) for i, pair in enumerate(pairs)
    )


def _comparison(
    pair: Pair, level: float, margin: float, correction: str | None, skewness: float | None
) -> Comparison:
    estimate = pair.ratio.estimate(level) if pair.ratio else None
    outcome = outcome_of(estimate, metric_kind(pair.metric).higher_is_better, margin)
    blocks = estimate.count if estimate else 0
    parts = [part for part in (pair.basis, _assumption(blocks), _skew_words(skewness)) if part]
    return Comparison(
        work=pair.work,
        metric=pair.metric,
        base=pair.base,
        other=pair.other,
        ratio=estimate.value if estimate else None,
        low=estimate.low if estimate else None,
        high=estimate.high if estimate else None,
        blocks=blocks,
        verdict="undecided" if pair.state in UNUSABLE else outcome,
        margin=margin,
        assumption="; ".join(parts) or None,
        validity=pair.state,
        confidence=1 - level,
        correction=correction,
        skewness=skewness,
        part=metric_part(pair.metric),
    )


def _skew_words(skewness: float | None) -> str | None:
    return None if skewness is None else "a few blocks lie far to one side: a mean of so few may be off"


def _assumption(blocks: int) -> str | None:
    if blocks < 2:
        return "one block gives no interval"
    if blocks < FEW_BLOCKS:
        return (
            f"{blocks} blocks: rests on the assumption that ratios are lognormal and blocks hardly correlated"
        )
    return None


def _correction(levels: Sequence[float], alpha: float) -> str | None:
    """The sentence that belongs below a table of several comparisons."""
    if not levels or (len(levels) < 2 and levels[0] == ALPHA):
        return None
    least, most = 1 - max(levels), 1 - min(levels)
    each = confidence_words(least)
    if most - least > 1e-9:
        each = f"{confidence_words(least)[:-2]} to {confidence_words(most)}"
    looked = " that were looked at more than once" if alpha < ALPHA else ""
    return (
        f"corrected for {len(levels)} comparison{'s' if len(levels) > 1 else ''}{looked} (Holm):"
        f" each interval has the confidence at which its comparison is decided, here {each}"
    )


def confidence_words(confidence: float) -> str:
    """A confidence in percent, with as many digits as tell it from certainty: `95 %`, `99.64 %`."""
    return f"{100 * confidence:.4g} %"


def compare_targets(
    cells: Sequence[PlannedCell],
    tables: Mapping[str, CellTable],
    states: Mapping[str, State],
    base: str,
    metrics: Sequence[str],
    margin: float,
    alpha: float = ALPHA,
) -> tuple[Comparison, ...]:
    """Every other target against `base`, work by work. No `metrics` means: what the work is asked for."""
    pairs = pair_targets(cells, tables, states, base, metrics)
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
        first = tables.get(anchor.id) or CellTable(anchor.id, (), {})
        second = tables.get(cell.id) or CellTable(cell.id, (), {})
        state = worst((states[anchor.id], states[cell.id]))
        for metric in metrics or wanted_metrics(cell):
            ratio = compare_cells(first, second, metric)
            found.append(Pair(cell.work, base, cell.target, metric, ratio, state, weight_of(metric)))
    return found


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
        pair = [tables.get(one.id) or CellTable(one.id, (), {}) for one in (alone, cell)]
        state = worst((states[alone.id], states[cell.id]))
        for metric in metrics or wanted_metrics(cell):
            ratio = compare_cells(pair[0], pair[1], metric)
            weight = weight_of(metric)
            found.append(Pair(alone.work, alone.id, cell.id, metric, ratio, state, weight))
    return found


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
