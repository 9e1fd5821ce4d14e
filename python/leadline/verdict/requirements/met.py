"""Holds requirements against the cells of a result: met, not met, or undecided and what would decide it.

The judge is that of `--fail-if`: the whole 95 % interval fulfils what is asked, or none of it does. What has
no interval, or rests on a cell that is not VALID, is undecided here: a requirement is no alarm but a promise.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from leadline.analysis.cells import CellTable, compare_cells
from leadline.units import format_quantity, printable
from leadline.verdict.gates import Truth, all_of, any_of, judge_quantity
from leadline.verdict.model import (
    UNUSABLE,
    Cell,
    Code,
    JudgedRequirement,
    Quantity,
    RequiredFigure,
    severity,
    worst,
)
from leadline.verdict.requirements.requirements import AskedBound, Requirement, Requirements

_MANY = ("numjobs", "copies", "streams", "clients")  # options that say how many processes a cell has
_FOLLOWS = ("size", "engine", "notes", "files")  # what may follow from the option that varies
_MOST_BLOCKS = 100  # beyond it no one waits: the figure is as good as met, or as good as missed
_ENOUGH_BLOCKS = 6


@dataclass(frozen=True)
class MeasuredCells:
    """A result's cells with what ratios are made of; `hosts` is how many took part, by cell."""

    cells: Sequence[Cell]
    tables: Mapping[str, CellTable]
    hosts: Mapping[str, int]
    alpha: float

    def processes(self, cell: Cell) -> int:
        """Of all hosts together."""
        own = next((cell.job[name] for name in _MANY if isinstance(cell.job.get(name), int)), 1)
        return own * self.hosts.get(cell.id, 1)


def judge_requirements(asked: Requirements, measured: MeasuredCells) -> tuple[JudgedRequirement, ...]:
    """Each requirement, in the order in which they are written."""
    return tuple(_judged(name, one, measured) for name, one in asked.requirements.items())


def _judged(name: str, one: Requirement, measured: MeasuredCells) -> JudgedRequirement:
    found = JudgedRequirement(name, one.source, one.words, one.where, None)
    named = [cell for cell in measured.cells if one.is_of(cell.target, cell.work)]
    cells = [cell for cell in named if measured.processes(cell) >= one.processes]
    if not cells:
        return replace(found, why=_none_of(one, named, measured), decides="measure such a cell")
    groups = [[_of_cell(cell, bound, measured) for bound in one.asked if not bound.over] for cell in cells]
    for bound in one.asked:
        if bound.over:
            pairs = list(_pairs(cells, bound.over))
            groups += [[_of_pair(base, other, bound, measured)] for base, other in pairs]
            if not pairs:
                why = f"no two of its cells differ in {bound.over} alone"
                decides = f"measure several levels, for example --set 'factors.{bound.over}=[1,2,4]'"
                return replace(found, why=why, decides=decides)
    groups = [group for group in groups if group]
    truths = [all_of([figure.met for figure in group]) for group in groups]
    met = any_of(truths) if one.cells == "one" else all_of(truths)
    return replace(found, met=met, figures=tuple(itertools.chain.from_iterable(groups)))


def _none_of(one: Requirement, named: Sequence[Cell], measured: MeasuredCells) -> str:
    if not named:
        return f"no cell is called {one.target}.{one.work}"
    most = max(measured.processes(cell) for cell in named)
    return f"no cell has {one.processes} processes, the most is {most}"


def _of_cell(cell: Cell, bound: AskedBound, measured: MeasuredCells) -> RequiredFigure:
    """A metric of a cell, or the part of it that each process or host has."""
    quantity = cell.metrics.get(bound.metric)
    if quantity is None:
        quantity = Quantity(None, "", reason=f"this work has no {bound.metric}")
    share = bound.limit.share
    parts = {"process": measured.processes(cell), "host": measured.hosts.get(cell.id, 1), None: 1}[share]
    figure = f"{bound.metric} per {share}" if share else bound.metric
    figure += f", of {parts}," if parts > 1 else ""
    return _figure((cell,), figure, bound, _part(quantity, parts))


def _part(quantity: Quantity, parts: int) -> Quantity:
    """An equal part of it."""
    if parts == 1 or quantity.value is None:
        return quantity
    low, high = (None if end is None else end / parts for end in (quantity.low, quantity.high))
    return replace(quantity, value=quantity.value / parts, low=low, high=high)


def _pairs(cells: Sequence[Cell], option: str) -> Iterator[tuple[Cell, Cell]]:
    """Cells that differ in one option alone: each level with the one before it."""
    groups: dict[str, list[Cell]] = {}
    for cell in cells:
        if isinstance(cell.job.get(option), int | float):
            rest = {key: value for key, value in cell.job.items() if key not in (option, *_FOLLOWS)}
            groups.setdefault(json.dumps([cell.target, cell.kind, rest], sort_keys=True), []).append(cell)
    for group in groups.values():
        group.sort(key=lambda cell: cell.job[option])
        yield from (
            (one, other) for one, other in itertools.pairwise(group) if one.job[option] < other.job[option]
        )


def _of_pair(base: Cell, other: Cell, bound: AskedBound, measured: MeasuredCells) -> RequiredFigure:
    """The ratio of a metric of two cells, paired by block."""
    empty = CellTable("", (), {})
    sides = [measured.tables.get(cell.id, empty) for cell in (base, other)]
    ratio = compare_cells(sides[0], sides[1], bound.metric)
    quantity = Quantity(None, "1", reason=f"no block has {bound.metric} of both")
    if ratio is not None:
        known = ratio.estimate(measured.alpha)
        quantity = Quantity(known.value, "1", known.low, known.high, known.count)
    levels = [base.job[str(bound.over)], other.job[str(bound.over)]]
    figure = f"{bound.metric} at {bound.over} {levels[1]} over that at {levels[0]}"
    return _figure((base, other), figure, bound, quantity)


def _figure(cells: tuple[Cell, ...], figure: str, bound: AskedBound, quantity: Quantity) -> RequiredFigure:
    state = worst(cell.validity.state for cell in cells)
    ids = tuple(cell.id for cell in cells)
    found = RequiredFigure(ids, figure, bound.words, quantity, state, None, "")
    if state in UNUSABLE or quantity.value is None:
        return _without_figure(found, cells)
    limit = bound.limit.value if bound.over else bound.limit_in(quantity.unit)
    if limit is None:
        return replace(found, why=f"{quantity.unit or 'a share'} is not what {bound.limit.text} is")
    met, seen = _held(quantity, bound, limit)
    found = replace(found, seen=seen)
    if state == "DOUBTFUL":
        return replace(found, why=_doubt(cells), decides=_remedy(cells))
    if quantity.low is None:
        more = f"--blocks {_ENOUGH_BLOCKS}"
        return replace(found, why="one block: there is no interval", decides=f"measure more blocks: {more}")
    if met is None:
        why = f"the interval lies on both sides of {bound.limit.text}"
        return replace(found, why=why, decides=_blocks_that_decide(quantity, limit))
    return replace(found, met=met)


def _held(quantity: Quantity, bound: AskedBound, limit: float) -> tuple[Truth, str]:
    """What the judge of conditions says, and the figure with its interval in words."""
    met, _ = judge_quantity(quantity, bound.operator, limit, bound.limit.text)
    seen = format_quantity(quantity.value, quantity.unit)
    if quantity.low is not None and quantity.high is not None:
        low, high = (format_quantity(end, quantity.unit) for end in (quantity.low, quantity.high))
        seen += f" ({low} to {high}, {quantity.blocks} blocks)"
    return met, seen


def _without_figure(found: RequiredFigure, cells: Sequence[Cell]) -> RequiredFigure:
    if found.state in UNUSABLE:
        said = "INVALID" if found.state == "INVALID" else "not run"
        return replace(found, seen=said, why=_doubt(cells), decides=_remedy(cells))
    reason = printable(found.quantity.reason or "no reason is known")
    return replace(found, seen="not measured", why=f"not measured: {reason}", decides="measure it")


def _codes(cells: Sequence[Cell]) -> tuple[Cell, tuple[Code, ...]]:
    """The worst cell, and the codes that make it so."""
    cell = max(cells, key=lambda one: severity(one.validity.state))
    own = tuple(code for code in cell.validity.codes if code.state == cell.validity.state)
    return cell, own or cell.validity.codes


def _doubt(cells: Sequence[Cell]) -> str:
    cell, own = _codes(cells)
    state = cell.validity.state
    said = "could not be run" if state == "NOT_RUN" else f"is {state}"
    names = f" ({', '.join(code.code for code in own)})" if own else ""
    return f"{cell.id} {said}{names}"


def _remedy(cells: Sequence[Cell]) -> str:
    _, own = _codes(cells)
    return own[0].remedy if own else "run it again"


def _blocks_that_decide(quantity: Quantity, limit: float) -> str:
    """About how many blocks, if the figure stays: intervals narrow with the root of their number."""
    if quantity.value is None or quantity.low is None or quantity.high is None:
        return ""
    if min(quantity.value, quantity.low, limit) <= 0:
        return "more blocks may decide it"
    distance = abs(math.log(quantity.value / limit))
    half = math.log(quantity.high / quantity.low) / 2
    blocks = math.inf if distance <= 0 else math.ceil(quantity.blocks * (half / distance) ** 2) + 1
    if blocks > _MOST_BLOCKS:
        return f"not even {_MOST_BLOCKS} blocks would: the figure is that which is asked for"
    return f"about {max(blocks, quantity.blocks + 1)} blocks would, if the figure stays where it is"
