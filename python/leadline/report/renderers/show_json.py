"""`leadline show --json`: format leadline.show/1, the contract that other programs rely on.

Keys may be added within version 1; none may change its meaning. What was not measured is null with a reason.
"""

from __future__ import annotations

import math
from typing import Any

from leadline.report.sections.values import section_json
from leadline.verdict.model import Cell, Chain, Code, Comparison, Findings, Quantity

FORMAT = "leadline.show/1"


def to_json(findings: Findings) -> dict[str, Any]:
    """`findings` as plain JSON values, and the keys of its sections besides."""
    document = _document(findings)
    for section in findings.sections:
        document |= section_json(section)
    return document


def _document(findings: Findings) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "kind": findings.kind,
        "id": findings.id,
        "title": findings.title,
        "question": findings.answer.question if findings.answer else None,
        "answer": findings.answer.text if findings.answer else None,
        "created": findings.created,
        "complete": findings.complete,
        "state": findings.state if findings.cells else None,  # nothing was judged
        "version": findings.version,
        "targets": [
            {"name": target.name, "url": target.url, "access": target.access, "words": target.words}
            for target in findings.targets
        ],
        "cells": [_cell(cell) for cell in findings.cells],
        "comparisons": [comparison_to_json(item) for item in findings.comparisons],
        "statements": [
            {"tone": item.tone, "says": item.says, "text": item.text, "evidence": list(item.evidence)}
            for item in findings.statements
        ],
    }


def _cell(cell: Cell) -> dict[str, Any]:
    return {
        "id": cell.id,
        "target": cell.target,
        "work": cell.work,
        "factors": {str(name): plain(level) for name, level in cell.factors.items()},
        "metrics": {name: _quantity(item) for name, item in cell.metrics.items()},
        "validity": {"state": cell.validity.state, "codes": [_code(code) for code in cell.validity.codes]},
        "chains": [_chain(chain) for chain in cell.chains],
    }


def _chain(chain: Chain) -> dict[str, Any]:
    return {
        "direction": chain.direction,
        "application_bytes": chain.application_bytes,
        "acknowledged": chain.acknowledged,
        "model": chain.model,
        "together": chain.together,
        "places": [
            {
                "name": place.name,
                "words": place.words,
                "share": finite(place.share),
                "bytes": place.bytes,
                "bytes_per_byte": finite(place.bytes_per_byte),
                "model": finite(place.model),
                "reason": place.reason,
            }
            for place in chain.places
        ],
    }


def _code(code: Code) -> dict[str, Any]:
    return {
        "code": code.code,
        "state": code.state,
        "title": code.title,
        "evidence": code.evidence,
        "remedy": code.remedy,
    }


def _quantity(item: Quantity) -> dict[str, Any]:
    value = finite(item.value)
    known: dict[str, Any] = {
        "value": value,
        "unit": item.unit,
        "low": finite(item.low),
        "high": finite(item.high),
        "blocks": item.blocks,
    }
    if value is None:
        known["reason"] = item.reason or "not measured"
    return known


def comparison_to_json(item: Comparison) -> dict[str, Any]:
    """One comparison as `leadline.show/1` and `leadline.compare/1` have it."""
    return {
        "work": item.work,
        "metric": item.metric,
        "base": item.base,
        "other": item.other,
        "ratio": finite(item.ratio),
        "low": finite(item.low),
        "high": finite(item.high),
        "verdict": item.verdict,
        "blocks": item.blocks,
        "margin": item.margin,
        "assumption": item.assumption,
        "validity": item.validity,
        "confidence": item.confidence,
        "correction": item.correction,
        "skewness": item.skewness,
        "at_least": finite(item.at_least),
        "unlike": item.unlike,
        "values": [{"value": finite(one.value), "unit": one.unit} for one in item.values],
        "more_blocks": {"blocks": item.more.blocks, "tells": item.more.tells} if item.more else None,
    }


def finite(value: float | None) -> float | None:
    """JSON has no NaN and no infinity: both are null."""
    return value if value is not None and math.isfinite(value) else None


def plain(value: Any) -> Any:
    """A value of a study as JSON: containers are kept, numbers made finite, the rest printed."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return finite(value)
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return str(value)
