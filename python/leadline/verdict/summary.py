"""A result as rows of the index: each cell's metrics with intervals and validity."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from leadline.foreign import UNTOUCHED, reading
from leadline.store.index import IndexRow, journal_size
from leadline.store.reader import Result, open_result
from leadline.verdict.cells import CellFigures, judge_figures
from leadline.verdict.comparisons.conditions import stored_conditions
from leadline.verdict.inputs import read_material
from leadline.verdict.model import Cell


def summarise(path: Path) -> tuple[IndexRow, ...]:
    """The rows of a stored result, none of one without cells. Raises ResultError.

    The judgement stops at cells: nothing is compared, and no sentence is made.
    """
    size = journal_size(path)  # before it is read: what is appended meanwhile makes the rows stale, not wrong
    result = open_result(path)
    if result.published or result.traced or result.workflows or "search" in result.manifest:
        return ()
    with reading(path, UNTOUCHED):
        return index_rows(result, judge_figures(read_material(result, with_charts=False)), size)


def index_rows(
    result: Result, cells: Iterable[CellFigures | Cell], journal_bytes: int
) -> tuple[IndexRow, ...]:
    """The rows of cells that were judged already."""
    manifest, plan = result.manifest, result.manifest["plan"]
    known = {name: one.digests() for name, one in stored_conditions(result.path, manifest).items()}
    shared: dict[str, Any] = {
        "result": str(manifest["id"]),
        "created": str(manifest.get("created", "")),
        "study": str(plan.get("study", "")),
        "targets": ",".join(target["name"] for target in plan["targets"]),
        "trials": f"{len(result.finished)}/{len(plan.get('trials', []))}",
        "complete": result.complete,
        "version": str(manifest.get("version", "")),
        "journal_bytes": journal_bytes,
    }
    return tuple(
        IndexRow(
            **shared,
            target=cell.target,
            work=cell.work,
            cell=cell.id,
            metric=name,
            value=_finite(quantity.value),
            unit=quantity.unit,
            low=_finite(quantity.low),
            high=_finite(quantity.high),
            blocks=quantity.blocks,
            state=cell.validity.state,
            codes=" ".join(code.code for code in cell.validity.codes),
            job=known.get(cell.id, ("", ""))[0],
            conditions=known.get(cell.id, ("", ""))[1],
        )
        for cell in cells
        for name, quantity in cell.metrics.items()
    )


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
