"""A cell of metadata as reports lay it out: a row and a chart for each operation, as rates do not add up."""

from __future__ import annotations

from dataclasses import replace

from leadline.verdict.model import Cell, Comparison, Findings, part_label


def by_operation(findings: Findings) -> Findings:
    """The findings with each metadata cell in parts, named `work operation`; others as they are."""
    cells = tuple(part for cell in findings.cells for part in parts(cell))
    comparisons = tuple(_part(comparison) for comparison in findings.comparisons)
    return replace(findings, cells=cells, comparisons=comparisons)


def parts(cell: Cell) -> tuple[Cell, ...]:
    """A cell for each operation, its metrics without its name; the cell itself where it has none."""
    found = []
    for operation in cell.shown.parts:
        prefix = f"{operation}_"
        metrics = {
            name.removeprefix(prefix): item for name, item in cell.metrics.items() if name.startswith(prefix)
        }
        curves = tuple(curve for curve in cell.curves if curve.direction == operation)
        found.append(
            replace(
                cell,
                work=part_label(cell.work, operation),
                metrics=metrics,
                curves=curves,
                lines=(),
                origin=None,
                chains=(),
            )
        )
    return tuple(found) or (cell,)


def _part(comparison: Comparison) -> Comparison:
    operation = comparison.part
    if operation is None:
        return comparison
    metric = comparison.metric.removeprefix(f"{operation}_")
    return replace(comparison, work=part_label(comparison.work, operation), metric=metric)
