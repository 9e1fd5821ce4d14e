"""Sections as plain values for JSON and CSV: figures in base units, nothing where nothing was measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from leadline.verdict.model import FigureTable, Quantity
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
        return _quantity(value)
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
                "values": [_quantity(item) for item in row.values],
                **({"states": list(row.states)} if row.states else {}),
            }
            for row in table.rows
        ],
    }


def _quantity(item: Quantity) -> dict[str, Any]:
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
