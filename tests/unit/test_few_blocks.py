"""Intervals of few blocks that learn from all cells of a study, and what a table that explores may claim."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from builders import cell
from hypothesis import given
from hypothesis import strategies as st

from leadline.analysis.cells import CellTable
from leadline.analysis.metrics import Measured
from leadline.analysis.statistics.intervals import ALPHA, discovery_levels, mean_of_blocks
from leadline.analysis.statistics.means import paired_ratio
from leadline.analysis.statistics.moderated import (
    Moderated,
    blocks_for,
    common_share,
    correlation_weights,
    independent_shares,
    moderate,
    smallest_difference,
    smallest_learned_difference,
)
from leadline.units import format_ratio_interval
from leadline.verdict.comparisons.comparisons import compare_targets
from leadline.verdict.comparisons.deciding import Pair, decide, more_statements
from leadline.verdict.model import Comparison

_P_VALUES = st.lists(st.floats(1e-9, 1.0), min_size=1, max_size=20)
Array = np.ndarray


def study(seed: int, targets: int = 6, works: int = 6, blocks: int = 3, rho: float = 0.0) -> Array:
    """Logarithms, targets x works x blocks, of cells that scatter alike."""
    rows = np.random.default_rng(seed).standard_normal((targets, works, blocks))
    for block in range(1, blocks):
        rows[..., block] = rho * rows[..., block - 1] + np.sqrt(1 - rho * rho) * rows[..., block]
    return rows


def ratios_of(cells: Array) -> Array:
    return np.asarray((cells[1:] - cells[:1]).reshape(-1, cells.shape[2]))


def judged(cells: Array) -> Moderated:
    targets, works, blocks = cells.shape
    names = [str(target) for target in range(1, targets) for _ in range(works)]
    bases = [str(work) for _ in range(1, targets) for work in range(works)]
    return moderate(ratios_of(cells), names, bases, cells.reshape(-1, blocks))


def holding(cells: Array) -> Array:
    """By ratio whether its 95 % interval holds the true one, which is 0."""
    means = judged(cells).means
    away = np.abs(ratios_of(cells).mean(axis=1))
    return np.array(
        [one.beyond(np.array([far]))[0] >= ALPHA for one, far in zip(means, away, strict=True)], dtype=float
    )


@pytest.mark.parametrize(("blocks", "rho"), [(3, 0.0), (6, 0.0), (3, 0.4), (6, 0.5)])
def test_an_interval_learned_from_all_cells_holds(blocks: int, rho: float) -> None:
    held = [holding(study(seed, blocks=blocks, rho=rho)).mean() for seed in range(20)]
    assert np.mean(held) >= 0.93


def test_it_is_far_shorter_than_that_of_three_blocks_alone() -> None:
    cells = study(1)
    learned = np.median([one.half_width(0.01)[0] for one in judged(cells).means])
    assert learned < 0.5 * np.median(mean_of_blocks(ratios_of(cells)).half_width(0.01))


def test_a_target_that_scatters_ten_times_as_much_is_learned_of_by_its_own_works() -> None:
    held, shorter = [], []
    for seed in range(12):
        cells = study(seed)
        cells[-1] *= 10
        held.append(holding(cells)[-6:].mean())
        learned = [one.half_width(0.01)[0] for one in judged(cells).means[-6:]]
        shorter.append(np.median(learned) / np.median(mean_of_blocks(ratios_of(cells)[-6:]).half_width(0.01)))
    assert np.mean(held) >= 0.9
    assert np.median(shorter) < 0.7


def test_a_cell_unlike_all_others_is_named_and_has_the_interval_of_its_own_blocks() -> None:
    cells = study(3)
    cells[2, 4] *= 40
    found = judged(cells)
    at = 1 * 6 + 4
    assert found.unlike == {at}
    alone = mean_of_blocks(ratios_of(cells)[at])
    assert found.means[at].half_width(0.05)[0] == pytest.approx(alone.half_width(0.05)[0])


def test_what_blocks_did_to_all_cells_is_no_correlation_and_what_cells_keep_is() -> None:
    drift = np.array([3.0, 2.0, 1.0, -1.0, -2.0, -3.0])
    independent, kept = study(5, 8, 8, 6) + drift, study(5, 8, 8, 6, rho=0.7)
    likely = [correlation_weights(cells.reshape(-1, 6)) for cells in (independent, kept)]
    assert likely[0][:3].sum() > 0.8
    assert likely[1][5:].sum() > 0.9


def test_cells_that_go_up_and_down_together_count_as_few() -> None:
    alike = np.repeat(study(7, 1, 6, 6)[0], 5, axis=0)
    groups = [str(at // 5) for at in range(30)]
    assert common_share(alike - alike.mean(axis=1, keepdims=True), groups, 0.0) == pytest.approx(1)
    apart = study(7, 5, 6, 6).reshape(30, 6)
    assert common_share(apart - apart.mean(axis=1, keepdims=True), groups, 0.0) < 0.1


def test_what_cannot_be_learned_is_refused_with_its_reason() -> None:
    assert judged(study(1, targets=2, works=5)).refused == "fewer than 6 comparisons"
    still = np.zeros((3, 6, 3))
    assert judged(still).refused == "half of the ratios do not vary"
    hanging = study(1, 6, 6, 10, rho=0.95)
    assert str(judged(hanging).refused).startswith("neighbouring blocks resemble each other")
    unlike = study(1, 6, 6, 6) * 10.0 ** np.random.default_rng(1).uniform(-3, 3, (1, 6, 1))
    assert judged(unlike).refused == "the cells' spreads have little in common"


def test_studies_in_which_nothing_differs_rarely_claim_anything() -> None:
    claims = 0
    for seed in range(30):
        cells = study(100 + seed, 3, 6)
        away = np.abs(ratios_of(cells).mean(axis=1))
        found = [
            float(one.beyond(np.array([far]))[0]) for one, far in zip(judged(cells).means, away, strict=True)
        ]
        claims += any(p < level for p, level in zip(found, discovery_levels(found), strict=True))
    assert claims <= 5  # of 30 at a rate of 5 %: more come in fewer than one of 200 cases


@given(_P_VALUES)
def test_a_discovery_is_made_exactly_where_its_p_value_is_below_its_level(p_values: list[float]) -> None:
    """By Benjamini and Hochberg's own procedure."""
    ordered = sorted(p_values)
    count = len(ordered)
    found = max((k for k in range(1, count + 1) if ordered[k - 1] <= k * ALPHA / count), default=0)
    levels = discovery_levels(p_values)
    for p_value, level in zip(p_values, levels, strict=True):
        assert level <= ALPHA
        assert (p_value <= level * (1 + 1e-12)) == (found > 0 and p_value <= ordered[found - 1])


def test_discoveries_make_others_easier_and_a_weight_is_a_share() -> None:
    assert discovery_levels([0.001, 0.9]) == (0.025, 0.025)
    assert discovery_levels([0.001, 0.002, 0.9, 0.9]) == pytest.approx((0.025,) * 4)
    assert discovery_levels([0.5, 0.5], [4.0, 1.0]) == pytest.approx((0.04, 0.01))
    assert discovery_levels([]) == ()


def pairs(cells: Array, metric: str = "iops", **options: object) -> list[Pair]:
    values = np.exp(0.1 * cells)
    blocks = list(range(1, cells.shape[2] + 1))
    return [
        Pair(
            f"w{work}",
            "t0",
            f"t{target}",
            metric,
            paired_ratio(list(values[0, work]), list(values[target, work]), blocks),
            "VALID",
            **options,  # type: ignore[arg-type]
        )
        for target in range(1, cells.shape[0])
        for work in range(cells.shape[1])
    ]


def test_a_comparison_says_what_it_was_learned_from_and_how_it_was_corrected() -> None:
    found = decide(pairs(study(1, 3, 4)), 0.05)
    assert {one.assumption for one in found} == {"few blocks: variation estimated from all 12 cells"}
    assert found[0].correction is not None
    assert found[0].correction.startswith("corrected for 8 comparisons (Benjamini and Hochberg: on average")


def test_percentiles_are_learned_of_apart_from_rates() -> None:
    rates, waits = pairs(study(1, 3, 4)), pairs(study(2, 2, 4), "latency_p99")
    found = decide([*rates, *waits], 0.05)
    assert "variation estimated from all 12 cells" in str(found[0].assumption)
    assert "the CI assumes" in str(found[-1].assumption)


def test_the_studys_own_question_is_decided_so_that_nothing_errs() -> None:
    cells = study(1, 3, 4)
    cells[1] += 20
    asked = decide(pairs(cells, asked=True), 0.05)
    explored = decide(pairs(cells), 0.05)
    assert "Holm" in str(asked[0].correction)
    assert {one.confidence for one in explored} == {1 - ALPHA * 4 / 8}
    assert min(one.confidence for one in asked) == 1 - ALPHA / 4  # four are left, each with its whole share


def test_only_works_that_decide_are_held_to_it() -> None:
    values = np.exp(0.1 * study(1, 2, 6))
    tables = {
        f"{target}.w{work}": CellTable(
            f"{target}.w{work}",
            (),
            {block: Measured({"iops": float(values[at, work, block])}, {}) for block in range(3)},
        )
        for at, target in enumerate("ab")
        for work in range(6)
    }
    cells, states = [cell(name) for name in tables], dict.fromkeys(tables, "VALID")
    found = compare_targets(cells, tables, states, "a", ("iops",), 0.05, ALPHA, {"w0", "w1"})  # type: ignore[arg-type]
    rules = {one.work: str(one.correction).partition(":")[0] for one in found}
    assert rules["w0"] == rules["w1"] == "corrected for 2 comparisons (Holm)"
    assert rules["w2"] == rules["w5"] == "corrected for 4 comparisons (Benjamini and Hochberg"


def test_a_run_that_looked_at_its_intervals_learns_nothing() -> None:
    found = decide(pairs(study(1, 3, 4, 6)), 0.05, 0.03)
    assert {one.assumption for one in found} == {None}
    assert "tested more than once (Holm)" in str(found[0].correction)


def test_a_cell_unlike_the_others_is_said_in_its_comparison() -> None:
    cells = study(3)
    cells[2, 4] *= 40
    (said,) = [one for one in decide(pairs(cells), 0.05) if one.unlike]
    assert (said.other, said.work) == ("t2", "w4")
    assert "varies more or less than the other cells" in str(said.assumption)


def test_what_is_undecided_says_what_more_blocks_would_tell_and_cost() -> None:
    found = decide(pairs(study(1, 3, 4)), 0.05)
    more = {one.more for one in found if one.verdict == "undecided"}
    assert more
    assert all(one is not None and one.tells <= 1 for one in more)
    (said,) = more_statements(found, 60.0)
    assert "comparisons inconclusive, too few blocks: " in said.text
    assert "more in about " in said.text
    assert "would detect" in said.text


def test_where_a_difference_is_found_at_least_says_its_nearer_end() -> None:
    one = Comparison("w", "iops", "a", "b", 0.1, 0.05, 0.2, 3, "slower")
    assert one.at_least == pytest.approx(5)
    assert replace(one, verdict="undecided").at_least is None
    assert replace(one, ratio=4.0, low=3.0, high=5.0, verdict="faster").at_least == 3


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (1.12, 1.31, "1.12 to 1.31"),
        (8.1, 700.0, "at least 8.1"),
        (1e-9, 0.12, "at most 0.120"),
        (3.6e-8, 36_700_000.0, "unbounded"),
        (0.0, 2.0, "unbounded"),
        (0.02, 3.0, "0.020 to 3.0"),
        (0.00021, 0.0004, "1 / 4,760 to 1 / 2,500"),
        (2.0, 1e160, "at least 2.0"),
    ],
)
def test_an_interval_is_said_as_far_as_it_says_something(low: float, high: float, words: str) -> None:
    assert format_ratio_interval(low, high) == words


def test_a_plan_needs_fewer_blocks_where_spreads_are_learned() -> None:
    learned = smallest_learned_difference(3, 0.1, 0.025, 5, 5)
    alone = smallest_difference(3, 0.1, 0.025)
    assert learned is not None
    assert alone is not None
    assert learned < 0.6 * alone
    assert smallest_learned_difference(3, 0.1, 0.025, 2, 3) is None


def test_the_blocks_asked_for_are_the_fewest_that_find_a_difference() -> None:
    blocks = blocks_for(0.1, 0.05, 0.025)
    assert blocks is not None
    found = [smallest_difference(count, 0.05, 0.025) or 1 for count in (blocks, blocks - 1)]
    assert found[0] <= 0.1 < found[1]
    assert blocks_for(0.001, 1.0, 0.025) is None


def test_ratios_that_go_with_their_base_count_as_one_and_others_as_themselves() -> None:
    shared = np.random.default_rng(3).standard_normal(12)
    rows = np.array([shared - shared.mean()] * 4)
    assert independent_shares(rows, 0.0, list("aaaa")) == pytest.approx([1 / 4] * 4)
    assert independent_shares(rows, 0.0, list("abcd")) == pytest.approx([1.0] * 4)
