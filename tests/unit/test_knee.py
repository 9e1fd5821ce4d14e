"""The knee of a rate over one or two options: found from few cells, with its interval."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import pytest

from leadline.analysis.knee import CELLS_A_BLOCK, Grid, Place, find_knee, next_cells
from leadline.plan.make import first_cells

GRID = Grid.whole([2.0**power for power in range(16, 27)], [2.0**power for power in range(7)])
ALONE = Grid.whole([2.0**power for power in range(16, 28)])
Rate = Callable[[float], float]


def sharp(amount: float) -> float:
    """A plateau of 100 MB/s from 4 MiB on."""
    return min(1e8, 1e8 * amount / 2**22)


def falling(amount: float) -> float:
    """The same, and a third less for each four doublings beyond 32 MiB."""
    return sharp(amount) * max(amount / 2**25, 1.0) ** -0.15


def swept(
    grid: Grid,
    rate: Rate,
    noise: float,
    seed: int = 1,
    most: int = 60,
    broken: frozenset[Place] = frozenset(),
) -> tuple[dict[Place, dict[int, float]], int]:
    """The rates that a whole sweep measures, and its trials."""
    chance = random.Random(seed)  # noqa: S311 - data of a test
    seen: dict[Place, dict[int, float]] = {}
    tried: set[Place] = set()
    cells, block, trials = first_cells([len(one) for one in grid.levels], grid.cells), 0, 0
    while cells:
        block, trials = block + 1, trials + len(cells)
        tried.update(cells)
        for cell in set(cells) - broken:
            factor = math.exp(chance.gauss(0, noise))
            seen.setdefault(cell, {})[block] = rate(grid.amount(cell)) * factor
        cells = next_cells(grid, seen, 0.95, tried - set(seen), most - trials)
    return seen, trials


def off(grid: Grid, knee: Place) -> float:
    """Doublings from 4 MiB."""
    return math.log2(grid.amount(knee) / 2**22)


@pytest.mark.parametrize("rate", [sharp, falling])
@pytest.mark.parametrize("noise", [0.02, 0.1])
def test_the_knee_is_found_within_a_step_in_a_part_of_the_grid(rate: Rate, noise: float) -> None:
    seen, trials = swept(GRID, rate, noise)
    found = find_knee(GRID, seen)
    assert found is not None
    assert abs(off(GRID, found.knee)) <= 1
    assert found.amounts[0] <= 2**22 <= found.amounts[1]
    assert found.plateau[1] <= 1e8 <= found.plateau[2]
    assert trials <= 60
    assert len(seen) < len(GRID.cells) / 2
    assert not found.rising


def test_the_knee_of_one_option_is_found() -> None:
    seen, trials = swept(ALONE, sharp, 0.03, most=25)
    found = find_knee(ALONE, seen)
    assert found is not None
    assert abs(off(ALONE, found.knee)) <= 1
    assert trials <= 25
    assert all(ALONE.amount(cell) < 2**24 for cell in found.could_be)


def test_a_rate_that_rises_to_the_end_of_the_grid_has_no_plateau() -> None:
    seen, _ = swept(GRID, lambda amount: amount, 0.03, most=30)
    found = find_knee(GRID, seen)
    assert found is not None
    assert found.rising


def test_what_decides_is_repeated_before_a_sweep_ends_by_itself() -> None:
    seen, trials = swept(GRID, sharp, 0.01, most=200)
    found = find_knee(GRID, seen)
    assert found is not None
    assert trials < 100  # it ended by itself
    assert found.sure >= 0.9
    assert len(seen[found.knee]) >= 3


def test_cells_that_fail_are_left_alone_and_the_knee_is_found_beside_them() -> None:
    large = frozenset(cell for cell in GRID.cells if GRID.amount(cell) >= 2**31)
    seen, _ = swept(GRID, sharp, 0.03, broken=large)
    found = find_knee(GRID, seen)
    assert found is not None
    assert abs(off(GRID, found.knee)) <= 1
    assert not large & seen.keys()


def test_one_stalled_trial_does_not_move_the_knee_by_more_than_a_step() -> None:
    seen, _ = swept(GRID, sharp, 0.03)
    one = max(seen, key=lambda cell: (len(seen[cell]), cell))
    block = next(iter(seen[one]))
    seen[one] = {**seen[one], block: seen[one][block] / 3}
    found = find_knee(GRID, seen)
    assert found is not None
    assert abs(off(GRID, found.knee)) <= 1


def test_the_same_trials_choose_the_same_cells() -> None:
    seen = {cell: {1: sharp(GRID.amount(cell))} for cell in first_cells([11, 7], GRID.cells)}
    first = next_cells(GRID, seen, 0.95, (), 60)
    assert first == next_cells(GRID, dict(reversed(seen.items())), 0.95, (), 60)
    assert 0 < len(first) <= CELLS_A_BLOCK


def test_no_cells_are_chosen_where_nothing_can_tell() -> None:
    assert next_cells(GRID, {}, 0.95, (), 60) == ()
    assert next_cells(GRID, {(0, 0): {1: 1e6}}, 0.95, (), 0) == ()
    assert next_cells(GRID, {}, 0.95, GRID.cells, 60) == ()
    assert find_knee(GRID, {}) is None


def test_no_more_cells_are_chosen_than_trials_are_left() -> None:
    seen = {cell: {1: sharp(GRID.amount(cell))} for cell in first_cells([11, 7], GRID.cells)}
    assert len(next_cells(GRID, seen, 0.95, (), 2)) == 2


def test_a_sweep_starts_with_its_ends_and_between_them() -> None:
    assert first_cells([12], ALONE.cells) == ((0,), (3,), (6,), (8,), (11,))
    assert len(first_cells([11, 7], GRID.cells)) == 9
    assert {(0, 0), (10, 6), (5, 3)} <= set(first_cells([11, 7], GRID.cells))


def test_a_start_keeps_to_cells_that_can_be_tried() -> None:
    small = tuple(cell for cell in GRID.cells if GRID.amount(cell) <= 2**28)
    found = first_cells([11, 7], small)
    assert set(found) <= set(small)
    assert len(found) >= 6
