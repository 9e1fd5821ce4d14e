"""The figures that works are asked for, each with the comparison that the question is about."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from leadline.plan.model import PlannedCell
from leadline.study.left_out import LeftOut
from leadline.verdict.compared.comparisons import asked_metrics
from leadline.verdict.model import Cell, Comparison, Quantity, part_label
from leadline.verdict.sections.answer import AskedFigure
from leadline.workloads.judged import metric_kind, metric_part


def asked_figures(
    planned: Sequence[PlannedCell],
    cells: Sequence[Cell],
    comparisons: Iterable[Comparison],
    metrics: Sequence[str],
    left_out: Sequence[LeftOut],
) -> tuple[AskedFigure, ...]:
    """A figure for each work, or operation of it, on each target; `metrics` are those that the study names.

    `comparisons` are of targets by name, or of cells by id. What a target could not do has its reason.
    """
    several = len({cell.work for cell in cells}) > 1
    known = {(one.other, one.work, one.metric): one for one in comparisons}
    found = []
    for plan, cell in zip(planned, cells, strict=True):
        asked = asked_metrics(plan, metrics)
        leading = [name for name in asked if metric_kind(name).leads] or asked[:1]
        for name in asked:
            compared = known.get((cell.target, cell.work, name))
            if compared is None:
                compared = next(
                    (one for key, one in known.items() if (key[0], key[2]) == (cell.id, name)), None
                )
            quantity = cell.metrics.get(name) or Quantity(None, "", reason="not measured")
            label = _label(cell.work, name, leading, several=several)
            found.append(
                AskedFigure(
                    label,
                    cell.target,
                    cell.id,
                    name,
                    quantity,
                    cell.validity.state,
                    compared,
                    name in leading,
                    metric_kind(name).higher_is_better,
                )
            )
    return (*found, *_left_out(found, planned, left_out))


def _label(work: str, metric: str, leading: Sequence[str], *, several: bool) -> str:
    part = metric_part(metric)
    if part:
        return part_label(work, part)
    words = metric_kind(metric).words
    return work if metric in leading[:1] else f"{work}: {words}" if several else words


def _left_out(
    found: Sequence[AskedFigure], planned: Sequence[PlannedCell], left_out: Sequence[LeftOut]
) -> Iterator[AskedFigure]:
    """A work that a target cannot do, wherever another could."""
    works = {cell.id: cell.work for cell in planned}
    for one in left_out:
        rows = {figure.work: figure for figure in found if works[figure.cell] == one.work}
        for figure in rows.values():
            reason = Quantity(None, figure.quantity.unit, reason=one.reason)
            yield replace(
                figure, target=one.target, cell="", quantity=reason, state="NOT_RUN", comparison=None
            )
