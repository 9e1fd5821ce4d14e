"""When a run adds blocks, of what, and when it ends."""

from __future__ import annotations

import math

import pytest
from builders import cell

from leadline.analysis.cells import CellTable
from leadline.analysis.metrics import Measured
from leadline.cli.growth import spent_s
from leadline.plan import Plan, with_block
from leadline.run.session import grown_plan
from leadline.spec.target import Target
from leadline.store.journal import Event
from leadline.verdict.stopping import WorkState, next_works, work_states


def state(work: str, blocks: int, half_width: float | None, tried: int | None = None) -> WorkState:
    return WorkState(work, blocks, blocks if tried is None else tried, half_width)


def test_only_works_with_wide_intervals_go_on() -> None:
    states = (state("a", 6, 0.02), state("b", 6, 0.2), state("c", 6, 0.1))
    assert next_works(states, 0.03, widest_only=False) == ("b", "c")
    assert next_works(states, 0.03, widest_only=True) == ("b",)
    assert next_works(states, 0.3, widest_only=False) == ()


def test_a_budget_alone_narrows_the_widest() -> None:
    assert next_works((state("a", 3, 0.02), state("b", 3, 0.2)), None, widest_only=True) == ("b",)
    assert next_works((state("a", 1, None), state("b", 3, 0.2)), None, widest_only=True) == ("a",)


def test_nothing_is_looked_at_before_six_blocks() -> None:
    assert next_works((state("a", 3, 0.0001), state("b", 6, 0.0001)), 0.03, widest_only=False) == ("a",)


def test_works_that_fail_or_are_never_narrow_are_given_up() -> None:
    assert next_works((state("a", 4, 0.2, tried=6),), 0.03, widest_only=False) == ()
    assert next_works((state("a", 7, None),), 0.03, widest_only=False) == ()
    assert next_works((state("a", 100, 0.2),), 0.03, widest_only=False) == ()


def test_the_width_is_that_of_the_comparison_of_two_targets_and_of_the_mean_of_one() -> None:
    cells = (cell("a.w"), cell("b.w"))
    drift = {1: 100.0, 2: 200.0, 3: 400.0}
    tables = {
        name: CellTable(name, (), {block: Measured({"iops": factor * v}, {}) for block, v in drift.items()})
        for name, factor in (("a.w", 1.0), ("b.w", 2.0))
    }
    (both,) = work_states(cells, tables, "a", {"w": 3})
    assert both.half_width == pytest.approx(0.0, abs=1e-9)
    (alone,) = work_states(cells[:1], tables, "a", {"w": 3})
    assert alone.half_width is not None
    assert alone.half_width > 1


def plan() -> Plan:
    cells = (cell("a.v"), cell("a.w"))
    empty = Plan("s", "s", "", 7, 0, (Target("a", "/x"),), cells, (), 0.0, {"a": 0})
    return with_block(with_block(empty, ["a.v", "a.w"]), ["a.v", "a.w"])


def test_added_blocks_go_on_with_numbers_and_come_back_from_the_journal() -> None:
    events = (Event(1, "run_started", {}), Event(2, "block_added", {"cells": ["a.w"]}))
    grown = grown_plan(plan(), events)
    assert [(t.id, t.order, t.block, t.cell) for t in grown.trials[4:]] == [("t0005", 5, 3, "a.w")]
    assert grown.trials == with_block(plan(), ["a.w"]).trials
    assert len({trial.seed for trial in grown.trials}) == 5


def test_time_between_a_run_and_its_resumption_is_not_spent() -> None:
    names = ("run_started", "trial_finished", "run_started", "trial_finished")
    events = [Event(t * 10**9, name, {}) for t, name in zip((10, 14, 100, 103), names, strict=True)]
    assert spent_s(events) == pytest.approx(7.0)
    assert spent_s([]) == 0.0
    assert math.isclose(spent_s(events[:1]), 0.0)
