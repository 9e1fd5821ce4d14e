"""When a run adds blocks, of what, and when it ends."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import pytest
from builders import cell

from leadline.analysis.cells import CellTable, cell_metrics
from leadline.analysis.duration import spent_s
from leadline.analysis.metrics import Measured
from leadline.analysis.statistics.intervals import ALPHA_AFTER_LOOKS
from leadline.cli.measure.growth import expected_s
from leadline.plan.make import with_block
from leadline.plan.model import TRIAL_OVERHEAD_S, Plan, PlannedCell
from leadline.run.session import grown_plan
from leadline.store.journal import Event
from leadline.study.target import Target
from leadline.study.work import Search
from leadline.verdict.comparisons.stopping import WorkState, next_works, work_states
from leadline.workloads.metadata.job import MetadataJob


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


def test_a_budget_brings_every_work_to_six_blocks_before_it_chooses_by_width() -> None:
    states = (state("a", 5, 0.02), state("b", 4, 0.03), state("c", 6, 0.9))
    assert next_works(states, None, widest_only=True) == ("b",)
    assert next_works((state("a", 6, 0.02), states[2]), None, widest_only=True) == ("c",)


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


def table(name: str, **metrics: list[float]) -> CellTable:
    """A cell whose metrics have these values, a block each."""
    blocks = max(len(values) for values in metrics.values())
    by_block = {
        block: Measured({name: values[block - 1] for name, values in metrics.items()}, {})
        for block in range(1, blocks + 1)
    }
    return CellTable(name, (), by_block)


NARROW, WIDE = [100.0, 101.0, 99.0, 100.5], [100.0, 160.0, 70.0, 120.0]


def widths(cells: list[PlannedCell], tables: Mapping[str, CellTable], *named: str) -> dict[str, float | None]:
    tried = {one.work: 4 for one in cells}
    return {state.work: state.half_width for state in work_states(cells, tables, "a", tried, named)}


def test_every_operation_of_a_metadata_work_is_narrowed() -> None:
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
    cells = [replace(cell(f"{target}.tree"), job=job, layout=None) for target in "ab"]
    tables = {"a.tree": table("a.tree", create_iops=NARROW, stat_iops=NARROW)}
    narrow = widths(cells, tables | {"b.tree": table("b.tree", create_iops=NARROW, stat_iops=NARROW)})
    wide = widths(cells, tables | {"b.tree": table("b.tree", create_iops=NARROW, stat_iops=WIDE)})
    assert narrow["tree"] is not None
    assert wide["tree"] is not None
    assert narrow["tree"] < 0.05
    assert wide["tree"] > 0.5
    alone = widths(cells[:1], {"a.tree": table("a.tree", create_iops=WIDE, stat_iops=NARROW)})
    assert alone["tree"] is not None
    assert alone["tree"] > 0.5


def test_what_a_search_finds_is_narrowed() -> None:
    asked = Search.model_validate({"bound": "20ms"})
    cells = [replace(cell(f"{target}.w"), search=asked) for target in "ab"]
    tables = {
        name: table(name, rate_at_p99_20ms=values, iops=NARROW)
        for name, values in (("a.w", NARROW), ("b.w", WIDE))
    }
    found = widths(cells, tables)["w"]
    assert found is not None
    assert found > 0.5


def test_a_percentile_is_narrowed_only_where_the_study_names_it() -> None:
    cells = [cell("a.w"), cell("b.w")]
    tables = {
        "a.w": table("a.w", iops=NARROW, latency_p99=NARROW),
        "b.w": table("b.w", iops=NARROW, latency_p99=WIDE),
    }
    unnamed, named = widths(cells, tables)["w"], widths(cells, tables, "latency_p99")["w"]
    assert unnamed is not None
    assert named is not None
    assert unnamed < 0.05
    assert named > 0.5


def test_a_job_beside_others_is_narrowed_against_itself_alone_and_both_run_in_one_block() -> None:
    beside = replace(cell("a.both/small"), group="a.both", order="together")
    other = replace(cell("a.both/stream", bs=1 << 20), group="a.both", order="together")
    cells = [cell("a.small"), beside, other]
    tables = {
        "a.small": table("a.small", iops=NARROW),
        "a.both/small": table("a.both/small", iops=WIDE),
        "a.both/stream": table("a.both/stream", bandwidth=NARROW),
    }
    states = work_states(cells, tables, "a", {one.work: 4 for one in cells})
    small, same, stream = states
    assert small.half_width == same.half_width
    assert small.width > 0.5 > stream.width
    assert next_works(states, None, widest_only=True) == ("small", "both/small")


def test_a_job_in_two_groups_runs_with_both() -> None:
    cells = [cell("a.small")]
    cells += [replace(cell(f"a.{g}/small"), group=f"a.{g}", order="together") for g in ("one", "two")]
    values = {"a.small": NARROW, "a.one/small": WIDE, "a.two/small": NARROW}
    tables = {name: table(name, iops=found) for name, found in values.items()}
    states = work_states(cells, tables, "a", {one.work: 4 for one in cells})
    assert next_works(states, None, widest_only=True) == ("small", "one/small", "two/small")


def test_one_target_is_narrowed_at_the_level_that_its_report_draws() -> None:
    """A run that looks draws each figure's interval at 97 %, and that is what is asked to be narrow."""
    (state,) = work_states([cell("a.w")], {"a.w": table("a.w", iops=WIDE)}, "a", {"w": 4})
    estimate = cell_metrics(table("a.w", iops=WIDE), ALPHA_AFTER_LOOKS)["iops"].estimate
    assert estimate is not None
    assert estimate.low is not None
    assert estimate.high is not None
    assert estimate.confidence == pytest.approx(0.97)
    assert state.half_width == pytest.approx(math.log(estimate.high / estimate.low) / 2)
    at_95 = cell_metrics(table("a.w", iops=WIDE))["iops"].estimate
    assert at_95 is not None
    assert (at_95.low or 0) > estimate.low


def plan(*cells: PlannedCell) -> Plan:
    found = cells or (cell("a.v"), cell("a.w"))
    names = [one.id for one in found]
    empty = Plan("s", "s", "", 7, 0, (Target("a", "/x"),), found, (), 0.0, {"a": 0})
    return with_block(with_block(empty, names), names)


def journal(*lines: tuple[float, str, dict[str, object]]) -> list[Event]:
    return [Event(int(second * 1e9), name, details) for second, name, details in lines]


def test_a_block_of_a_group_takes_as_long_as_all_its_jobs() -> None:
    jobs = [replace(cell(f"a.g/{name}"), group="a.g", order="sequence", seconds=2.0) for name in "xy"]
    grouped = plan(*jobs)
    first, second = (trial.id for trial in grouped.slots()[0])
    events = journal(
        (10.0, "run_started", {}),
        (11.0, "trial_started", {"trial": first}),
        (14.0, "trial_started", {"trial": second}),
        (17.0, "trials_finished", {"trials": {first: "complete", second: "complete"}}),
    )
    assert expected_s(grouped, ["a.g/x"], []) == pytest.approx(4.0 + TRIAL_OVERHEAD_S)
    assert expected_s(grouped, ["a.g/x"], events) == pytest.approx(7.0)


def test_a_block_of_a_search_takes_as_long_as_all_its_probes() -> None:
    searched = plan(replace(cell("a.w"), search=Search.model_validate({"bound": "20ms", "trials": 4})))
    assert expected_s(searched, ["a.w"], []) == pytest.approx(4 * (2.0 + TRIAL_OVERHEAD_S))
    events = journal(
        (0.0, "run_started", {}),
        (1.0, "trial_started", {"trial": "t0001"}),
        (3.0, "trial_finished", {"trial": "t0001", "cell": "a.w"}),
        (60.0, "layout_finished", {}),
        (61.0, "trial_started", {"trial": "t0002"}),
        (65.0, "trial_finished", {"trial": "t0002", "cell": "a.w"}),
    )
    assert expected_s(searched, ["a.w"], events) == pytest.approx(4 * 5.0)


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
