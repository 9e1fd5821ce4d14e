"""Turns each writer of a coherence study into a cell for every reader, itself included."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from leadline.workloads.coherence.job import CoherenceJob

if TYPE_CHECKING:
    from leadline.plan.model import PlannedCell


def targets_of(cell: PlannedCell) -> tuple[str, ...]:
    """Every target that a cell needs."""
    return (cell.target, cell.job.reader) if isinstance(cell.job, CoherenceJob) else (cell.target,)


def with_readers(cells: Sequence[PlannedCell]) -> list[PlannedCell]:
    """The cells, those of coherence once for each reader: every target that can do the same work."""
    found: list[PlannedCell] = []
    for cell in cells:
        if not isinstance(cell.job, CoherenceJob):
            found.append(cell)
            continue
        for reader in [other.target for other in cells if other.work == cell.work]:
            work = f"{cell.work}_to_{reader}"
            job = cell.job.model_copy(update={"reader": reader})
            found.append(replace(cell, id=f"{cell.target}.{work}", work=work, job=job))
    return found
