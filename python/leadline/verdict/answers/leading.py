"""Which target is first in each work: for certain only where it is told apart from every other.

The first by its figure is held against all others, and all these comparisons of a study are decided together.
That the best was chosen by what was measured does no harm: a two-sided comparison of the winner with the
others keeps its level (Hung and Fithian, "Rank verification for exponential families", Annals of Statistics
47, 2019).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from leadline.analysis.cells import CellTable, compare_cells
from leadline.verdict.comparisons.deciding import decide
from leadline.verdict.comparisons.pair import Pair
from leadline.verdict.model import UNUSABLE, Comparison, worst
from leadline.verdict.sections.answer import AskedFigure


@dataclass(frozen=True)
class Leader:
    """The first of a work. `compared` are its ratios to each of `others`."""

    figure: AskedFigure
    others: tuple[str, ...]
    compared: tuple[Comparison, ...]

    @property
    def decided(self) -> bool:
        """It is before every other one for certain."""
        return all(one.verdict == "faster" for one in self.compared)

    @property
    def lead(self) -> float:
        """How many times it is before the next at least."""
        return min(one.least_factor for one in self.compared)

    @property
    def in_front(self) -> tuple[str, ...]:
        """It, and those that are not told apart from it."""
        pairs = zip(self.others, self.compared, strict=True)
        return (self.figure.target, *(other for other, one in pairs if one.verdict != "faster"))


def find_leaders(
    figures: Sequence[AskedFigure],
    passed_by: frozenset[str],
    tables: Mapping[str, CellTable],
    margin: float,
    alpha: float,
) -> tuple[Leader, ...]:
    """The first of each work that several targets have figures of; those in `passed_by` are no choice."""
    chosen: list[tuple[AskedFigure, tuple[str, ...], list[Pair]]] = []
    for work in dict.fromkeys(one.work for one in figures):
        own = [one for one in figures if one.work == work and _counts(one)]
        remote = [one for one in own if one.target not in passed_by]
        ranked = sorted(remote or own, key=_value, reverse=all(one.higher_is_better for one in own))
        if len(ranked) > 1:
            names = tuple(other.target for other in ranked[1:])
            chosen.append((ranked[0], names, [_pair(ranked[0], other, tables) for other in ranked[1:]]))
    decided = iter(decide([pair for *_, pairs in chosen for pair in pairs], margin, alpha))
    return tuple(Leader(best, names, tuple(next(decided) for _ in pairs)) for best, names, pairs in chosen)


def _counts(figure: AskedFigure) -> bool:
    return figure.leads and figure.quantity.value is not None and figure.state not in UNUSABLE


def _value(figure: AskedFigure) -> float:
    return figure.quantity.value or 0.0


def _pair(best: AskedFigure, other: AskedFigure, tables: Mapping[str, CellTable]) -> Pair:
    sides = [tables.get(one.cell) for one in (other, best)]
    ratio = compare_cells(sides[0], sides[1], best.metric) if sides[0] and sides[1] else None
    state = worst((best.state, other.state))
    return Pair(best.work, other.cell, best.cell, best.metric, ratio, state)
