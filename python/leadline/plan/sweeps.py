"""The sweeps of a plan: which cells are of which, and the few over the whole grid that each starts with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from itertools import product

from leadline.plan.model import TRIAL_OVERHEAD_S, Plan, PlannedCell

_ALONE, _EACH = 5, 3  # levels of the only option, and of each of two


def sweeps_of(cells: Iterable[PlannedCell]) -> dict[tuple[str, str], list[PlannedCell]]:
    """The cells of every sweep, by its target and its name."""
    found: dict[tuple[str, str], list[PlannedCell]] = {}
    for cell in cells:
        if cell.swept is not None:
            found.setdefault((cell.target, cell.swept.name), []).append(cell)
    return found


def without_sweeps(plan: Plan) -> Plan:
    """The plan of the works whose blocks are planned."""
    swept = {cell.id for cell in plan.cells if cell.swept is not None}
    return replace(
        plan,
        cells=tuple(cell for cell in plan.cells if cell.id not in swept),
        trials=tuple(trial for trial in plan.trials if trial.cell not in swept),
    )


def starting(cells: Iterable[PlannedCell]) -> frozenset[str]:
    """The ids of the cells that sweeps start with."""
    found: set[str] = set()
    for own in sweeps_of(cells).values():
        places = {cell.swept.place: cell.id for cell in own if cell.swept}
        levels = own[0].swept.sweep.levels if own[0].swept else ()
        found |= {places[place] for place in first_cells([len(one) for one in levels], places)}
    return frozenset(found)


def sweep_trials(own: Sequence[PlannedCell]) -> int:
    """The most trials that a sweep of these cells may have."""
    return own[0].swept.sweep.trials if own[0].swept else 0


def most_seconds(plan: Plan) -> float:
    """How long the plan takes if its sweeps have all the trials that they may, each as long as their mean."""
    planned = Counter(trial.cell for trial in plan.trials)
    added = 0.0
    for own in sweeps_of(plan.cells).values():
        count = sweep_trials(own) - sum(planned[cell.id] for cell in own)
        added += max(count, 0) * trial_seconds(own)
    return plan.seconds + added


def trial_seconds(own: Sequence[PlannedCell]) -> float:
    """How long a trial of one of these cells takes on average."""
    return sum(cell.seconds for cell in own) / len(own) + TRIAL_OVERHEAD_S


def first_cells(levels: Sequence[int], cells: Collection[tuple[int, ...]]) -> tuple[tuple[int, ...], ...]:
    """Of a grid with so many levels of each option the cells to begin with, of those that can be tried."""
    most = _ALONE if len(levels) == 1 else _EACH
    axes = [sorted({round(n * (count - 1) / (most - 1)) for n in range(most)}) for count in levels]
    nearest = (min(sorted(cells), key=lambda cell: _distance(cell, one)) for one in product(*axes))
    return tuple(sorted(dict.fromkeys(nearest)))


def _distance(cell: tuple[int, ...], other: tuple[int, ...]) -> int:
    return sum((a - b) ** 2 for a, b in zip(cell, other, strict=True))
