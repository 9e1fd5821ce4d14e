"""What many works say together of a target that no single one of them tells apart."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import pytest

from leadline.analysis.cells import CellTable
from leadline.analysis.metrics import Measured
from leadline.verdict.answers.messages import WORKS_MIN, Together, against_base, together
from leadline.verdict.model import Comparison, Outcome, Quantity, State
from leadline.verdict.sections.section import AskedFigure


def study(
    ratios: Sequence[Sequence[float]],
    *,
    verdict: Outcome = "undecided",
    state: State = "VALID",
    higher: bool = True,
) -> tuple[list[AskedFigure], dict[str, CellTable]]:
    """Works of a base at 10, 100, 1000 … a second, and of another target at these ratios, a row a work."""
    figures, tables = [], {}
    for place, row in enumerate(ratios):
        work = f"w{place}"
        found = Comparison(work, "iops", "base", "other", 1.0, 0.1, 9.0, len(row), verdict, validity=state)
        for target, times in (("base", [1.0] * len(row)), ("other", row)):
            cell = f"{target}.{work}"
            values = {block: Measured({"iops": 10.0**place * one}, {}) for block, one in enumerate(times)}
            tables[cell] = CellTable(cell, (), values)
            compared = found if target == "other" else None
            quantity = Quantity(1.0, "1/s")
            figures.append(AskedFigure(work, target, cell, "iops", quantity, state, compared, True, higher))
    return figures, tables


NOISY = [[0.5 * math.exp(random.Random(seed).gauss(0, 0.3)) for seed in range(n, n + 3)] for n in range(22)]  # noqa: S311 - data of a test


def test_works_that_are_each_undecided_decide_together_which_target_is_slower() -> None:
    figures, tables = study(NOISY)
    (found,) = together(figures, "base", tables, 0.05)
    assert (found.target, found.works, found.better) == ("other", 22, False)
    assert 1 < found.factor < 2
    said = against_base(figures, "base", (found,))
    assert said.startswith("Over 22 workloads together other is slower than base: at least 1.")


def test_less_that_is_better_turns_the_verdict_around() -> None:
    figures, tables = study(NOISY, higher=False)
    assert together(figures, "base", tables, 0.05)[0].better


@pytest.mark.parametrize(
    ("ratios", "options"),
    [
        ([[0.5, 0.5, 0.5], [2, 2, 2]] * 11, {}),  # some faster, some slower by as much
        ([[0.5, 1.9, 0.6]] * 22, {}),  # a block that contradicts the others
        (NOISY[: WORKS_MIN - 1], {}),
        ([row[:2] for row in NOISY], {}),
        (NOISY, {"verdict": "slower"}),  # said by the works themselves
        (NOISY, {"state": "INVALID"}),
    ],
)
def test_nothing_is_said_where_works_disagree_are_few_or_speak_for_themselves(
    ratios: Sequence[Sequence[float]], options: dict[str, str]
) -> None:
    figures, tables = study(ratios, **options)  # type: ignore[arg-type]
    assert together(figures, "base", tables, 0.05) == ()


def test_targets_that_do_not_differ_are_told_apart_in_one_of_twenty_studies_at_most() -> None:
    wrong = 0
    for seed in range(200):
        chance = random.Random(seed)  # noqa: S311 - data of a test
        blocks = [chance.gauss(0, 0.1) for _ in range(3)]
        rows = [[math.exp(chance.gauss(one, 0.3)) for one in blocks] for _ in range(12)]
        wrong += len(together(*study(rows)[:1], "base", study(rows)[1], 0.05))
    assert wrong <= 18  # of 10: 99 % of such simulations have no more


def test_a_factor_is_said_as_much_as_is_certain() -> None:
    assert "at least 1.4x on average" in against_base(
        study(NOISY)[0], "base", (Together("other", 22, False, 1.449),)
    )
