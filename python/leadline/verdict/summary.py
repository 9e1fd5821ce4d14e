"""A result as rows of the index: each cell's metrics with intervals and validity."""

from __future__ import annotations

import math
from pathlib import Path

from leadline.foreign import UNTOUCHED, reading
from leadline.store.index import IndexRow, journal_size
from leadline.store.reader import Result, open_result
from leadline.verdict.compared.conditions import stored_conditions
from leadline.verdict.findings import build_findings
from leadline.verdict.model import Findings


def summarise(path: Path) -> tuple[IndexRow, ...]:
    """The rows of a stored result, none for a document's figures or a trace. Raises ResultError."""
    size = journal_size(path)  # before it is read: what is appended meanwhile makes the rows stale, not wrong
    result = open_result(path)
    if result.published or result.traced or result.workflows:
        return ()
    findings = build_findings(result, with_charts=False)
    with reading(path, UNTOUCHED):
        return index_rows(result, findings, size)


def index_rows(result: Result, findings: Findings, journal_bytes: int) -> tuple[IndexRow, ...]:
    """The rows of findings that were made already."""
    plan = result.manifest["plan"]
    study = str(plan.get("study", ""))
    targets = ",".join(target.name for target in findings.targets)
    known = {name: one.digests() for name, one in stored_conditions(result.path, result.manifest).items()}
    trials = f"{len(result.finished)}/{len(plan.get('trials', []))}"
    return tuple(
        IndexRow(
            result=findings.id,
            created=findings.created,
            study=study,
            targets=targets,
            trials=trials,
            complete=findings.complete,
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
            version=findings.version,
            journal_bytes=journal_bytes,
            job=known.get(cell.id, ("", ""))[0],
            conditions=known.get(cell.id, ("", ""))[1],
        )
        for cell in findings.cells
        for name, quantity in cell.metrics.items()
    )


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
