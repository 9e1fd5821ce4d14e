"""Many comparisons in one study, and what is said of changes during a run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from builders import cell

from leadline.analysis.cells import CellTable
from leadline.analysis.metrics import Measured
from leadline.analysis.statistics.intervals import lopsided
from leadline.analysis.statistics.means import paired_ratio
from leadline.verdict.comparisons.comparisons import changes_over_time
from leadline.verdict.comparisons.deciding import Pair, decide
from leadline.verdict.messages import statements
from leadline.verdict.model import State
from leadline.workloads.metadata.job import MetadataJob

_ALIKE = [100.0, 103.0, 98.0, 101.0, 99.0, 102.0, 100.5, 97.5]
_OTHER = [101.0, 102.0, 99.5, 100.0, 99.5, 101.0, 101.5, 98.0]


def pair(work: str, factor: float, state: State = "VALID", weight: float = 1.0) -> Pair:
    other = [factor * value for value in _OTHER]
    return Pair(work, "a", "b", "iops", paired_ratio(_ALIKE, other), state, weight)


def test_what_is_shown_agrees_with_what_is_said() -> None:
    for found in decide([pair(f"w{i}", 1 + i / 200) for i in range(12)], margin=0.001):
        assert found.low is not None
        assert found.high is not None
        assert (found.verdict == "faster") == (found.low > 1)
        assert found.confidence >= 0.95


@pytest.mark.parametrize(("metric", "more"), [("iops", "faster"), ("latency_mean", "slower")])
def test_more_of_a_rate_is_faster_and_more_of_a_latency_slower(metric: str, more: str) -> None:
    less = {"faster": "slower", "slower": "faster"}[more]
    for factor, verdict in ((2.0, more), (0.5, less)):
        (found,) = decide([replace(pair("w", factor), metric=metric)], 0.05)
        assert found.verdict == verdict


def test_an_interval_is_drawn_at_the_confidence_that_it_is_said_to_have() -> None:
    pairs = [pair("v", 1.0), pair("w", 1.5)]  # too few to learn of: each rests on its own blocks
    for one, found in zip(pairs, decide(pairs, 0.05), strict=True):
        assert one.ratio is not None
        expected = one.ratio.estimate(1 - found.confidence)
        assert (found.low, found.high) == (pytest.approx(expected.low), pytest.approx(expected.high))


def test_a_single_comparison_keeps_95_percent_and_many_say_that_they_are_corrected() -> None:
    (alone,) = decide([pair("w", 1.0)], 0.05)
    assert (alone.confidence, alone.correction) == (0.95, None)
    many = decide([pair("v", 1.0), pair("w", 1.0)], 0.05)
    assert {found.confidence for found in many} == {0.975}
    assert many[0].correction is not None
    assert "corrected for 2 comparisons" in many[0].correction
    assert "here 97.5 %" in many[0].correction


def test_figures_that_say_nothing_cost_the_others_nothing() -> None:
    found = decide([pair("v", 1.0), pair("w", 1.5, "INVALID")], 0.05)
    assert [item.confidence for item in found] == [0.95, 0.95]
    assert found[1].verdict == "undecided"


def test_a_block_far_to_one_side_is_said_and_even_ones_are_not() -> None:
    noise = np.random.default_rng(5).normal(0, 0.01, 12)
    even = pair("w", 1.0)
    spread = Pair("w", "a", "b", "iops", paired_ratio([1.0] * 12, list(np.exp(noise))), "VALID")
    one_slow = np.exp(noise - 0.5 * (np.arange(12) == 4))
    slow = Pair("w", "a", "b", "iops", paired_ratio([1.0] * 12, list(one_slow)), "VALID")
    for quiet in (even, spread):
        assert decide([quiet], 0.05)[0].skewness is None
    (found,) = decide([slow], 0.05)
    assert found.skewness is not None
    assert found.skewness < -2
    assert found.assumption is not None
    assert "far to one side" in found.assumption
    text = [s.text for s in statements((), (), (found,), True) if s.tone == "caution"]
    assert len(text) == 1
    assert text[0].startswith("1 of 1 comparisons have a few blocks far to one side")


def test_even_blocks_are_rarely_called_lopsided() -> None:
    rows = np.random.default_rng(7).standard_normal((400, 8))
    alarms = sum(lopsided(row, 0.05) is not None for row in rows)
    assert alarms <= 33  # of 400 at a rate of 5 %: more come in fewer than one of 200 cases
    assert lopsided([1.0, 1.0, 1.0, 1.0, 9.0], 0.05) is None
    assert lopsided([2.0] * 12, 0.05) is None


def tables(ratio: np.ndarray) -> dict[str, CellTable]:
    noise = np.random.default_rng(3).normal(0, 0.002, (2, len(ratio)))
    values = {"a.w": 100 * np.exp(noise[0]), "b.w": 100 * np.exp(noise[1]) * ratio}
    return {
        name: CellTable(
            name, (), {block: Measured({"iops": float(v)}, {}) for block, v in enumerate(row, start=1)}
        )
        for name, row in values.items()
    }


def said(ratio: np.ndarray) -> list[str]:
    states: dict[str, State] = {"a.w": "VALID", "b.w": "DOUBTFUL"}
    found = changes_over_time((cell("a.w"), cell("b.w")), tables(ratio), states, "a")
    return [statement.text for statement in found]


def test_a_ratio_that_falls_during_the_run_is_said_with_its_figures() -> None:
    text = said(np.linspace(2.0, 1.0, 12))[0]
    assert text.startswith("During the run iops of b / a in w fell from 1.8")
    assert "in the first third to 1.1" in text


def test_a_step_names_its_block_and_a_warm_up_the_first() -> None:
    assert "changed from 1.00 before block 7 to 2.00 from there on" in said(1.0 + (np.arange(12) >= 6))[0]
    assert "was 1.99 in block 1 and 1.00 after it (warm-up)" in said(1.0 + (np.arange(12) == 0))[0]


def test_each_rate_of_metadata_is_looked_at_over_time() -> None:
    job = MetadataJob(
        operations=("create", "stat"),
        files=10,
        branch=1,
        depth=0,
        private=True,
        file_size=0,
        bs=4096,
        numjobs=1,
        time_based=False,
        runtime_ns=0,
    )
    noise = 100 * np.exp(np.random.default_rng(3).normal(0, 0.01, (2, 12)))
    falling = noise[1] * np.linspace(2.0, 1.0, 12)
    by_block = {
        block: Measured({"create_iops": float(a), "stat_iops": float(b)}, {})
        for block, (a, b) in enumerate(zip(noise[0], falling, strict=True), start=1)
    }
    tree = replace(cell("a.tree"), job=job, layout=None)
    found = changes_over_time(
        (tree,), {"a.tree": CellTable("a.tree", (), by_block)}, {"a.tree": "VALID"}, "a"
    )
    assert [statement.text.split(" from ")[0] for statement in found] == [
        "During the run stat_iops of a.tree fell"
    ]


def test_a_steady_run_says_nothing_of_time() -> None:
    assert said(np.ones(12)) == []
    assert said(np.linspace(2.0, 1.0, 4)) == []
