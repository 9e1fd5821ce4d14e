"""Diagnoses as plain values: what `leadline diagnose --json` (leadline.diagnosis/1) and reports have."""

from __future__ import annotations

from typing import Any

from leadline.verdict.diagnosis.budget import LatencyBudget
from leadline.verdict.diagnosis.ceilings import RateCeilings
from leadline.verdict.diagnosis.judge import CauseNamed, Diagnosed
from leadline.verdict.diagnosis.of_result import CellDiagnosed
from leadline.verdict.diagnosis.unseen import measured_by
from leadline.verdict.sections.charts import PlaceUse

FORMAT = "leadline.diagnosis/1"


def cell_json(one: CellDiagnosed) -> dict[str, Any]:
    """A cell and what bounds it, but for the figures of its trials."""
    cell = one.cell
    return {
        "cell": cell.id,
        "target": cell.target,
        "work": cell.work,
        "factors": cell.factors,
        "validity": cell.validity.state,
        "should": _should_json(one.should),
        "notes": list(one.notes),
        **found_json(one.found),
    }


def found_json(found: Diagnosed) -> dict[str, Any]:
    """What bounds it, by which evidence, and what nobody could tell."""
    return {
        "outcome": found.outcome,
        "named": [_cause_json(cause) for cause in found.named],
        "behind": [_cause_json(cause) for cause in found.behind],
        "apart": [_cause_json(cause) for cause in found.apart],
        "open": [{"cause": part.entry.name, "lacks": list(part.lacks)} for part in found.open],
        "places": [_place_json(part) for part in found.uses],
        "budget": None if found.budget is None else _budget_json(found.budget),
    }


def figures_json(found: Diagnosed) -> dict[str, Any]:
    """The figures of each trial that all of it was judged by."""
    return {"figures": [dict(figures) for figures in found.figures]}


def _budget_json(budget: LatencyBudget) -> dict[str, Any]:
    """Seconds of a mean request; null where a segment was not observed."""
    segments = [
        {
            "segment": one.name,
            "title": one.title,
            "seconds": one.seconds.value if one.seconds else None,
            "seconds_low": one.seconds.low if one.seconds else None,
            "seconds_high": one.seconds.high if one.seconds else None,
            "share": one.share,
            "shown_by": one.shown_by or None,
        }
        for one in budget.segments
    ]
    return {"seconds": budget.whole_s, "segments": segments}


def _place_json(part: PlaceUse) -> dict[str, Any]:
    return {
        "place": part.place,
        "what": part.what,
        "use": part.use,
        "bounds": part.bounds,
        "saturation": dict(part.saturation),
        "waits": part.waits,
    }


def _should_json(should: RateCeilings | None) -> dict[str, Any] | None:
    if should is None:
        return None
    ceilings = [{"bytes_per_s": one.bytes_per_s, "by": one.by} for one in should.ceilings]
    return {"measured_bytes_per_s": should.measured, "share": should.share, "ceilings": ceilings}


def _cause_json(cause: CauseNamed) -> dict[str, Any]:
    entry = cause.entry
    return {
        "cause": entry.name,
        "place": entry.place,
        "title": cause.title,
        "share": cause.share,
        "share_kind": None if cause.share is None else entry.share_kind,
        "share_low": cause.shares[0] if cause.shares else None,
        "share_high": cause.shares[1] if cause.shares else None,
        "measured_by": None if cause.share is not None else measured_by(cause),
        "held": cause.held,
        "trials": cause.trials,
        "evidence": cause.evidence,
        "experiment": entry.experiment,
        "remedy": entry.remedy,
        "price": entry.price,
        "source": entry.source,
    }
