"""Which doubts can change what an answer says, and which cannot: those are footnotes.

A code says how the value of a cell may err: it `raises` it (cached reads), `lowers` it (a busy host) or it
`scatters` (few blocks), which the confidence interval holds already. What is 5x slower stays slower where its
own value may be too high, and where the value that it is compared with may be too low. A code without a
direction can change everything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from leadline.verdict.codes.catalogue import catalogue
from leadline.verdict.model import UNUSABLE, Cell, Comparison, Quantity, Validity
from leadline.verdict.sections.section import AskedFigure


def with_footnotes(
    figures: Sequence[AskedFigure], cells: Sequence[Cell]
) -> tuple[tuple[AskedFigure, ...], tuple[str, ...]]:
    """The figures, those that no doubt can change marked so; and the codes that can change none of them."""
    validity = {cell.id: cell.validity for cell in cells}
    compared = any(one.comparison for one in figures)
    base = {(one.work, one.metric): one for one in figures if one.comparison is None}
    changing: set[str] = set()
    found = []
    for one in figures:
        own = _codes_of(validity.get(one.cell))
        if one.comparison is not None:
            held = base.get((one.work, one.metric))
            other = validity.get(one.comparison.base) or (validity.get(held.cell) if held else None)
            codes = {name for name in own if _changes(name, one.comparison, of_base=False)}
            codes |= {name for name in _codes_of(other) if _changes(name, one.comparison, of_base=True)}
        else:
            codes = set() if compared else {name for name in own if _changes_value(name, one.quantity)}
        changing |= codes
        doubtful = one.state == "DOUBTFUL" or (one.comparison and one.comparison.validity == "DOUBTFUL")
        found.append(replace(one, footnoted=bool(doubtful) and not codes))
    asked = {one.cell for one in figures}
    every = {name for cell in cells if cell.id in asked for name in _codes_of(cell.validity)}
    elsewhere = {name for cell in cells if cell.id not in asked for name in _codes_of(cell.validity)}
    return tuple(found), tuple(sorted(every - changing - elsewhere))


def _codes_of(validity: Validity | None) -> tuple[str, ...]:
    """The codes of a cell that cast doubt; what cannot be used is no footnote."""
    return tuple(one.code for one in validity.codes if one.state == "DOUBTFUL") if validity else ()


def _changes(code: str, found: Comparison, *, of_base: bool) -> bool:
    """Whether the verdict could be another without what the code is about."""
    if found.validity in UNUSABLE:
        return False
    moves = catalogue()[code].moves
    if moves == "scatters":
        return found.verdict == "undecided"
    if found.verdict in ("undecided", "same") or not moves:
        return True
    too_high = (moves == "raises") != of_base  # the ratio of other to base, where the code is right
    return too_high == (found.verdict == "faster")


def _changes_value(code: str, item: Quantity) -> bool:
    """Whether the value itself, compared with nothing, could be another: what scatters is in its interval."""
    return catalogue()[code].moves != "scatters" or item.low is None
