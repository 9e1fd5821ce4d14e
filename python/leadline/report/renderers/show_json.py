"""`leadline show --json`: format leadline.show/1, the contract that other programs rely on."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from leadline.verdict.model import Cell, Chain, Code, Comparison, FigureTable, Findings, Quantity
from leadline.verdict.sections.section import Facts, Marked, Section, TextTable, Words


def section_json(section: Section) -> dict[str, Any]:
    """The keys of `show --json` that a section has: its own, or its parts under its name."""
    if section.json is not None:
        return {key: value_json(value) for key, value in section.json.items()}
    parts = [value_json(part) for part in section.parts]
    return {section.name: {"title": section.title, "note": section.note, "parts": parts}}


def value_json(value: Any) -> Any:
    """A value of a section as JSON has it."""
    if isinstance(value, FigureTable):
        return _table(value)
    if isinstance(value, Quantity):
        return _section_quantity(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {one.name: value_json(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, Mapping):
        return {key: value_json(item) for key, item in value.items()}
    if isinstance(value, frozenset):
        return sorted(value)
    return [value_json(item) for item in value] if isinstance(value, list | tuple) else value


def _table(table: FigureTable) -> dict[str, Any]:
    return {
        "name": table.name,
        "title": table.title,
        "keys": list(table.keys),
        "columns": list(table.columns),
        "rows": [
            {
                "keys": list(row.keys),
                "state": row.state,
                "values": [_section_quantity(item) for item in row.values],
                **({"states": list(row.states)} if row.states else {}),
            }
            for row in table.rows
        ],
    }


def _section_quantity(item: Quantity) -> dict[str, Any]:
    known: dict[str, Any] = {"value": item.value, "unit": item.unit, "low": item.low, "high": item.high}
    known |= {"blocks": item.blocks} | ({"text": item.text} if item.text else {})
    return known | ({"reason": item.reason} if item.value is None else {})


_Row = tuple[str, Mapping[str, Any], str, Quantity, str]


def section_rows(section: Section) -> Iterator[_Row]:
    """(what of, factors, metric, quantity, state) of every figure; a word that is none is its reason."""
    for part in section.parts if section.in_csv else ():
        if isinstance(part, FigureTable):
            yield from _figure_rows(f"{section.name}.{part.name}", part)
        elif isinstance(part, TextTable):
            yield from _text_rows(f"{section.name}.{part.title}", part)
        elif isinstance(part, Words):
            for said in part.items:
                yield section.name, {}, said.lead, Quantity(None, "", reason=said.text), ""
        elif isinstance(part, Facts):
            for name, value in part.values.items():
                yield f"{section.name}.{part.title}", {}, str(name), _fact(value), ""


def _figure_rows(name: str, table: FigureTable) -> Iterator[_Row]:
    for row in table.rows:
        keys = dict(zip(table.keys, row.keys, strict=True))
        states = row.states or (row.state,) * len(row.values)
        for column, item, state in zip(table.columns, row.values, states, strict=True):
            yield name, keys, column, item, state or ""


def _text_rows(name: str, table: TextTable) -> Iterator[_Row]:
    for row in table.rows:
        texts = [one.text if isinstance(one, Marked) else one for one in row]
        levels = dict(zip(table.headings, texts, strict=True))
        yield name, levels, "", Quantity(None, "", reason="words, see factors"), ""


def _fact(value: Any) -> Quantity:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return Quantity(value, "")
    return Quantity(None, "", reason=str(value))


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
