"""The plan: deterministic, complete, and every default has its reason."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace

import pytest

from leadline import units
from leadline.errors import ResultError, SpecError, TargetError
from leadline.plan.check import check_space
from leadline.plan.make import Host, auto_data_set_bytes, make_plan
from leadline.plan.model import Plan, PlannedCell
from leadline.study.library import load_study
from leadline.study.study import Limits, Study, parse_study
from leadline.study.target import Target, TargetFacts
from leadline.study.yaml_source import read_study

MEMORY = 16 * units.GIB
EXT4 = TargetFacts(
    access="local",
    file_system="ext4",
    words="ext4 on vda",
    mount_point="/",
    source="/dev/vda1",
    direct_io=True,
    total_bytes=100 * units.GIB,
    free_bytes=50 * units.GIB,
)
TMPFS = replace(EXT4, file_system="tmpfs", words="tmpfs", mount_point="/t", in_memory=True, source="tmpfs")
FUSE = replace(EXT4, access="ceph-fuse", file_system="fuse.ceph-fuse", words="CephFS", mount_point="/c")
BUFFERED = replace(EXT4, words="odd", direct_io=False)
NULL = TargetFacts(access="null", file_system="null", words="no storage")


def plan_of(
    sets: list[str], study: str = "quick", seed: int = 1, memory_bytes: int = MEMORY, **facts: TargetFacts
) -> Plan:
    chosen = facts or {"a": EXT4}
    targets = {
        name: Target(name, "null://" if fact.access == "null" else f"/{name}")
        for name, fact in chosen.items()
    }
    return make_plan(load_study(study, {}, sets), targets, chosen, Host(memory_bytes), seed)


def cell_of(options: str, facts: TargetFacts = EXT4) -> PlannedCell:
    """The only cell of a study of one work with these options (YAML flow)."""
    from leadline.study.study import parse_study
    from leadline.study.yaml_source import read_study

    text = f"format: leadline.study/1\nworks:\n  one: {{{options}}}\n"
    study = parse_study(read_study(text, "t", {}))
    return make_plan(study, {"a": Target("a", "/a")}, {"a": facts}, Host(MEMORY), 1).cells[0]


def test_every_cell_is_run_once_in_each_block() -> None:
    plan = plan_of(["blocks=5"], a=EXT4, b=FUSE)
    for block in range(1, 6):
        cells = [trial.cell for trial in plan.trials if trial.block == block]
        assert Counter(cells) == Counter(cell.id for cell in plan.cells)
    assert [trial.order for trial in plan.trials] == list(range(1, len(plan.trials) + 1))
    assert plan.trials[0].id == "t0001"


def test_blocks_have_different_orders_that_depend_on_the_seed_alone() -> None:
    plan, again, other = (plan_of(["blocks=2"], seed=seed) for seed in (7, 7, 8))
    assert plan == again
    assert [t.cell for t in plan.trials] != [t.cell for t in other.trials]
    half = len(plan.trials) // 2
    assert [t.cell for t in plan.trials[:half]] != [t.cell for t in plan.trials[half:]]
    assert len({trial.seed for trial in plan.trials}) == len(plan.trials)


def test_more_blocks_leave_the_first_ones_as_they_were() -> None:
    few, many = plan_of(["blocks=2"]), plan_of(["blocks=4"])
    assert many.trials[: len(few.trials)] == few.trials


@pytest.mark.parametrize("study", ["quick", "render"])
def test_a_plan_is_stored_and_read_back(study: str) -> None:
    plan = plan_of([], study, a=EXT4, n=NULL, t=TMPFS)
    assert Plan.from_json(json.loads(json.dumps(plan.as_json()))) == plan


@pytest.mark.parametrize(
    "damage", [{"format": "leadline.plan/2"}, {"cells": 3}, {"cells": [{}]}, {"trials": None}]
)
def test_a_damaged_plan_is_a_result_error(damage: dict[str, object]) -> None:
    with pytest.raises(ResultError):
        Plan.from_json({**plan_of([]).as_json(), **damage})


def test_cells_of_one_geometry_share_a_layout_and_fresh_writes_need_none() -> None:
    plan = plan_of(["size=64M"])
    assert [layout.key for layout in plan.layouts("a")] == ["1x1x64m"]
    assert plan.cell("a.seqwrite_1m").layout is None
    assert plan.bytes_needed == {"a": 2 * 64 * units.MIB}


def test_compressible_data_is_never_shared_with_incompressible() -> None:
    plan = plan_of(["size=64M", "workloads.randread_4k.incompressible=false"])
    assert len(plan.layouts("a")) == 2


@pytest.mark.parametrize(
    ("options", "facts", "engine", "direct"),
    [
        ("rw: randread", EXT4, "io_uring", True),
        ("rw: randread, iodepth: 8", EXT4, "io_uring", True),
        ("rw: randread, direct: false", EXT4, "psync", False),
        ("rw: randread, direct: false, iodepth: 8", EXT4, "io_uring", False),
        ("rw: randread", TMPFS, "psync", False),
        ("rw: randread, iodepth: 8", TMPFS, "io_uring", False),
        ("rw: randread", FUSE, "psync", True),
        ("rw: randread, iodepth: 8", FUSE, "io_uring", True),
        ("rw: randread", BUFFERED, "psync", False),
        ("rw: randread, engine: mmap", EXT4, "mmap", False),
        ("rw: randread, bs: 512", EXT4, "psync", False),
        ("rw: randread", NULL, "null", False),
    ],
)
def test_engine_and_direct_follow_the_target(
    options: str, facts: TargetFacts, engine: str, direct: bool
) -> None:
    job = cell_of(options, facts).job
    assert (job.engine, job.direct) == (engine, direct)


def test_each_choice_has_its_reason() -> None:
    notes = " | ".join(cell_of("rw: randwrite, iodepth: 4", TMPFS).notes)
    for words in ("size", "auto", "direct false", "engine io_uring", "worker thread", "measures memory"):
        assert words in notes


def test_what_measures_caches_is_called_so() -> None:
    cell = cell_of("rw: randread, direct: false, size: 1G")
    assert cell.measures_caches
    assert any("measures caches" in note for note in cell.notes)
    assert not cell_of("rw: randread, direct: false, size: 16G").measures_caches
    assert not cell_of("rw: randread, size: 1G").measures_caches
    assert any(
        "measures caches: a.one" in note for note in _plan_notes("rw: randread, direct: false, size: 1G")
    )


def _plan_notes(options: str) -> tuple[str, ...]:
    from leadline.study.study import parse_study
    from leadline.study.yaml_source import read_study

    study = parse_study(read_study(f"format: leadline.study/1\nworks: {{one: {{{options}}}}}\n", "t", {}))
    return make_plan(study, {"a": Target("a", "/a")}, {"a": EXT4}, Host(MEMORY), 1).notes


def test_targets_that_differ_in_direct_are_said_to_be_unlike() -> None:
    plan = plan_of(["size=64M"], a=EXT4, t=TMPFS)
    assert any("direct on a but buffered on t" in note for note in plan.notes)


@pytest.mark.parametrize(
    ("memory_bytes", "free_bytes", "expected"),
    [
        (units.GIB, [], 256 * units.MIB),
        (16 * units.GIB, [], units.GIB),
        (512 * units.GIB, [], 2 * units.GIB),
        (16 * units.GIB, [5 * units.GIB, 100 * units.GIB], 512 * units.MIB),
        (16 * units.GIB, [105 * units.MIB], 10 * units.MIB),
    ],
)
def test_auto_sizes_follow_memory_and_free_space(
    memory_bytes: int, free_bytes: list[int], expected: int
) -> None:
    assert auto_data_set_bytes(memory_bytes, free_bytes) == expected


def test_auto_is_the_same_data_set_on_every_target() -> None:
    small = replace(FUSE, free_bytes=5 * units.GIB)
    assert {cell.job.size for cell in plan_of([], a=EXT4, b=small).cells} == {512 * units.MIB}


def test_auto_is_shared_by_the_numjobs_in_whole_blocks() -> None:
    job = cell_of("rw: randread, numjobs: 3, bs: 1M").job
    assert job.size == 341 * units.MIB


@pytest.mark.parametrize(
    ("options", "facts", "key", "message"),
    [
        ("rw: read, direct: true", BUFFERED, "direct", "no direct I/O"),
        ("rw: read, direct: true, bs: 512", EXT4, "bs", "multiples of 4k"),
        ("rw: read, engine: psync", NULL, "engine", "null://"),
        ("rw: read, engine: null", EXT4, "engine", "does no I/O on a path"),
        ("rw: read, verify: true", NULL, "verify", "verified"),
        ("rw: read, bs: 16M, size: 1G, iodepth: 512, numjobs: 2", EXT4, "iodepth", "half of memory"),
        ("rw: read, bs: 64M", replace(EXT4, free_bytes=units.MIB), "size", "does not hold"),
    ],
)
def test_what_a_target_cannot_do_is_named(options: str, facts: TargetFacts, key: str, message: str) -> None:
    with pytest.raises(SpecError) as caught:
        cell_of(options, facts)
    assert caught.value.key == key
    assert "workload one on target a" in caught.value.source
    assert message in caught.value.message
    assert caught.value.remedy


def test_an_engine_that_does_not_work_here_is_replaced_only_where_nothing_is_lost() -> None:
    targets, facts = {"a": Target("a", "/a")}, {"a": EXT4}
    shallow = load_study("quick", {}, ["iodepth=1"])
    plan = make_plan(shallow, targets, facts, Host(MEMORY, {"io_uring": "not permitted"}), 1)
    assert {cell.job.engine for cell in plan.cells} == {"psync"}
    assert "not permitted" in " ".join(plan.cells[0].notes)


def test_threads_stand_for_a_queue_depth_where_no_engine_here_keeps_one() -> None:
    targets, facts = {"a": Target("a", "/a")}, {"a": EXT4}
    host = Host(MEMORY, {"io_uring": "not permitted"})
    wanted = make_plan(load_study("quick", {}), targets, facts, Host(MEMORY, {}), 1)
    plan = make_plan(load_study("quick", {}), targets, facts, host, 1)
    assert {cell.job.engine for cell in plan.cells} == {"psync"}
    assert [cell.job.numjobs * cell.job.iodepth for cell in plan.cells] == [
        cell.job.numjobs * cell.job.iodepth for cell in wanted.cells
    ]
    for cell, like in zip(plan.cells, wanted.cells, strict=True):
        assert cell.job.iodepth == 1
        assert cell.job.size * cell.job.numjobs == like.job.size * like.job.numjobs
    deep = next(cell for cell in plan.cells if cell.work == "randread_4k")
    assert any("16 threads with one request each stand for iodepth 16" in note for note in deep.notes)


@pytest.mark.parametrize("option", ["engine=io_uring", "rate_iops=100", "offset=1M", "sqthread_poll=true"])
def test_what_threads_cannot_stand_for_is_refused(option: str) -> None:
    targets, facts = {"a": Target("a", "/a")}, {"a": EXT4}
    host = Host(MEMORY, {"io_uring": "not permitted"})
    with pytest.raises(SpecError, match="not permitted"):
        make_plan(load_study("quick", {}, [option]), targets, facts, host, 1)


def test_a_submission_thread_needs_io_uring_and_is_said_to_cost_a_processor() -> None:
    cell = cell_of("rw: randread, sqthread_poll: true, direct: false")
    assert (cell.job.engine, cell.job.sqthread_poll) == ("io_uring", True)
    assert any("busy" in note for note in cell.notes)
    assert not cell_of("rw: randread").job.sqthread_poll
    with pytest.raises(SpecError, match="no submission thread"):
        cell_of("rw: randread, sqthread_poll: true, engine: psync")


@pytest.mark.parametrize(
    ("asked", "batch"),
    [
        ("iodepth: 32", 8),
        ("iodepth: 3", 1),
        ("iodepth: 32, iodepth_batch: 1", 1),
        ("iodepth: 4, iodepth_batch: 16", 4),
    ],
)
def test_a_quarter_of_the_depth_is_handed_over_together_unless_said(asked: str, batch: int) -> None:
    assert cell_of(f"rw: randread, {asked}").job.iodepth_batch == batch


def test_max_rate_caps_every_trial_and_contradicts_a_higher_rate() -> None:
    plan = plan_of(["limits.max_rate=10M"])
    assert {cell.job.rate_bytes_per_s for cell in plan.cells} == {10 * units.MIB}
    kept = plan_of(["limits.max_rate=10M", "rate=5M"])
    assert {cell.job.rate_bytes_per_s for cell in kept.cells} == {5 * units.MIB}
    with pytest.raises(SpecError, match="above limits"):
        plan_of(["limits.max_rate=10M", "rate_iops=100"])


@pytest.mark.parametrize(
    ("options", "facts", "end_fsync"),
    [
        ("rw: write", EXT4, False),
        ("rw: write, direct: false", EXT4, True),
        ("rw: randrw, rwmixread: 100, direct: false", EXT4, False),
        ("rw: write", TMPFS, False),
        ("rw: write, direct: false, end_fsync: false", EXT4, False),
    ],
)
def test_buffered_writes_end_on_storage(options: str, facts: TargetFacts, end_fsync: bool) -> None:
    assert cell_of(options, facts).job.end_fsync is end_fsync


def test_a_quick_look_at_one_target_takes_less_than_a_minute() -> None:
    assert 20 < plan_of([]).seconds < 60


def test_time_of_a_job_that_ends_with_its_size_is_nominal() -> None:
    assert cell_of("rw: write, bs: 1M, size: 400M").seconds == pytest.approx(2.0)
    assert cell_of("rw: write, bs: 1M, size: 400M, runtime: 1s").seconds == pytest.approx(1.0)
    assert cell_of("rw: write, bs: 1M, size: 400M, rate: 100M").seconds == pytest.approx(4.0)


def _space(sets: list[str], **facts: TargetFacts) -> None:
    study: Study = load_study("quick", {}, sets)
    targets = {name: Target(name, f"/{name}") for name in facts}
    check_space(make_plan(study, targets, facts, Host(MEMORY), 1), study, facts)


def test_a_target_without_room_is_refused_with_figures() -> None:
    _space(["size=20G"], a=EXT4)
    with pytest.raises(TargetError, match=r"50 GiB free.*48 GiB.*5 GiB"):
        _space(["size=24G"], a=EXT4)
    _space(["size=24G", "limits.reserve=1G"], a=EXT4)


def test_targets_on_one_file_system_share_its_room() -> None:
    with pytest.raises(TargetError):
        _space(["size=20G"], a=EXT4, b=EXT4)
    _space(["size=20G"], a=EXT4, b=FUSE)


def test_an_unknown_base_is_refused() -> None:
    with pytest.raises(SpecError, match="no target of this run"):
        plan_of(["compare.base=b"])


def test_no_target_is_refused() -> None:
    with pytest.raises(SpecError, match="no target"):
        make_plan(load_study("quick", {}), {}, {}, Host(MEMORY), 1)


def both(order: str) -> Study:
    text = (
        "format: leadline.study/1\nblocks: 4\n"
        "defaults: {size: 64M, time_based: true, runtime: 2s}\n"
        "workloads:\n"
        "  alone: {rw: randread}\n"
        f"  both: {{order: {order}, jobs: {{x: {{rw: randread}}, y: {{rw: randwrite}}, z: {{rw: write}}}}}}\n"
        "  found: {rw: randread, search: {bound: 20ms, trials: 5}}\n"
    )
    return parse_study(read_study(text, "s.yaml", {}), "s")


def planned(study: Study) -> Plan:
    return make_plan(study, {"a": Target("a", "/a")}, {"a": EXT4}, Host(MEMORY), 1)


def test_a_groups_jobs_are_one_slot_and_work_on_files_of_their_own() -> None:
    plan = planned(both("together"))
    assert Plan.from_json(json.loads(json.dumps(plan.as_json()))) == plan
    groups = [slot for slot in plan.slots() if len(slot) > 1]
    assert len(groups) == 4
    for slot in groups:
        assert {trial.cell for trial in slot} == {"a.both.x", "a.both.y", "a.both.z"}
        assert [trial.order for trial in slot] == list(range(slot[0].order, slot[0].order + 3))
    keys = [cell.layout.key for cell in plan.cells if cell.group and cell.layout]
    assert len(set(keys)) == 2
    assert plan.bytes_needed == {"a": 3 * 64 * units.MIB}


def test_a_slot_is_planned_as_long_as_its_jobs_take_together_or_one_after_the_other() -> None:
    together, sequence = (planned(both(order)).seconds for order in ("together", "sequence"))
    assert sequence - together == pytest.approx(4 * 2 * 2.0)


def test_a_searchs_probes_stand_together_and_are_slots_of_their_own() -> None:
    plan = planned(both("together"))
    for block in range(1, 5):
        own = [t for t in plan.trials if t.block == block and t.cell == "a.found"]
        assert [t.probe for t in own] == [1, 2, 3, 4, 5]
        assert [t.order for t in own] == list(range(own[0].order, own[0].order + 5))
        assert len({t.seed for t in own}) == 5
    assert len(plan.slots(without=["t0001", "t0002"])) < len(plan.slots())


def test_a_search_above_the_limit_of_the_study_is_refused() -> None:
    study = both("together").model_copy(update={"limits": Limits(max_rate=4096 * 50)})
    with pytest.raises(SpecError, match=r"above limits\.max_rate"):
        planned(study)


def states_plan(blocks: int) -> Plan:
    """Two works in two states of one directory."""
    study = load_study("quick", {}, (f"blocks={blocks}",))
    targets = {
        name: Target(name, "/t", state=name, files="without" if name == "with" else None)
        for name in ("without", "with")
    }
    return make_plan(study, targets, dict.fromkeys(targets, EXT4), Host(MEMORY), seed=3)


def test_the_states_of_a_block_stand_together_and_the_next_block_has_them_reversed() -> None:
    plan = states_plan(6)
    orders = []
    for block in range(1, 7):
        met = [trial.target for trial in plan.trials if trial.block == block]
        runs = [name for at, name in enumerate(met) if at == 0 or met[at - 1] != name]
        assert sorted(runs) == ["with", "without"]
        orders.append(runs)
    assert all(orders[at + 1] == orders[at][::-1] for at in (0, 2, 4))


def test_a_plan_with_states_is_stored_and_read_back() -> None:
    plan = states_plan(2)
    assert Plan.from_json(json.loads(json.dumps(plan.as_json()))) == plan
    assert {target.owner for target in plan.targets} == {"without"}
