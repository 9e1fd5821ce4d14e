"""Sweeps: how they are written, refused, planned, and what a plan says of them."""

from __future__ import annotations

import pytest

from leadline.errors import SpecError
from leadline.plan.make import Host, make_plan, most_seconds, sweeps_of, with_block, without_sweeps
from leadline.plan.model import Plan
from leadline.study.overrides import apply_overrides
from leadline.study.study import Study, expand, parse_study
from leadline.study.target import Target, TargetFacts
from leadline.study.yaml_source import read_study

HEAD = "format: leadline.study/1\ndefaults: {rw: read, size: 64M, time_based: true, runtime: 1s}\n"
GRID = "grid: {sweep: {over: {bs: [4k, 16k, 64k, 256k, 1M], iodepth: [1, 2, 4, 8]}, trials: 20}}"
PLAIN = "plain: {bs: 4k}"


def study_of(works: str, *sets: str) -> Study:
    document = read_study(f"{HEAD}workloads: {{{works}}}\n", "my.yaml", {})
    return parse_study(apply_overrides(document, sets, {}), "my")


def plan_of(study: Study, direct: bool = True) -> Plan:
    facts = TargetFacts("local", "ext4", "ext4", "/x", free_bytes=1 << 40, direct_io=direct)
    return make_plan(study, {"a": Target("a", "/a")}, {"a": facts}, Host(16 << 30), 1)


def test_a_sweep_is_a_work_at_every_combination_of_its_levels() -> None:
    works = expand(study_of(GRID))
    assert len(works) == 20
    assert works[0].name == "grid_4k_iodepth1"
    assert works[-1].factors == {"bs": "1m", "iodepth": 8}
    swept = works[-1].swept
    assert swept is not None
    assert (swept.name, swept.place) == ("grid", (4, 3))
    assert swept.sweep.levels == ((4096, 16384, 65536, 262144, 1048576), (1, 2, 4, 8))


def test_a_sweep_stands_beside_factors_and_labels() -> None:
    text = HEAD + f"workloads: {{{GRID}}}\nfactors: {{numjobs: [1, 2]}}\nlabel: '{{work}}-{{numjobs}}'\n"
    works = expand(parse_study(read_study(text, "my.yaml", {}), "my"))
    assert len(works) == 40
    assert {work.swept.name for work in works if work.swept} == {"grid-1", "grid-2"}


def test_only_the_start_of_a_sweep_has_trials_and_only_once() -> None:
    plan = plan_of(study_of(f"{GRID}, {PLAIN}"))
    swept = {cell.id for cell in plan.cells if cell.swept}
    counts = [sum(t.block == block and t.cell in swept for t in plan.trials) for block in (1, 2, 3)]
    assert counts == [9, 0, 0]
    assert sum(trial.cell == "a.plain" for trial in plan.trials) == 3
    assert {name: len(own) for (_, name), own in sweeps_of(plan.cells).items()} == {"grid": 20}
    assert {cell.id for cell in without_sweeps(plan).cells} == {"a.plain"}


def test_the_plan_says_the_grid_the_start_and_the_most_trials() -> None:
    note = next(note for note in plan_of(study_of(GRID)).notes if note.startswith("sweep"))
    assert note.startswith("sweep a.grid: a grid of 20 cells of bs x iodepth. It starts with 9;")
    assert "at most 20 trials" in note


def test_the_longest_that_a_plan_may_take_has_all_the_trials_of_its_sweeps() -> None:
    plan = plan_of(study_of(f"{GRID}, {PLAIN}"))
    of_each = 1.0 + 0.5  # its runtime, and what is around it
    assert most_seconds(plan) - plan.seconds == pytest.approx((20 - 9) * of_each)
    plain = plan_of(study_of(PLAIN))
    assert most_seconds(plain) == plain.seconds


def test_a_plan_with_a_sweep_reads_back_from_the_manifest() -> None:
    study = study_of(GRID)
    plan = plan_of(study)
    assert Study.from_json(study.as_json()) == study
    assert Plan.from_json(plan.as_json()) == plan
    grown = with_block(plan, ["a.grid_16k_iodepth2"])
    assert grown.trials[-1].block == 4 or grown.trials[-1].block == 2
    assert grown.trials[-1].cell == "a.grid_16k_iodepth2"


def test_cells_that_a_target_cannot_do_are_left_out_of_the_grid_and_told() -> None:
    plan = plan_of(study_of("grid: {size: 1G, sweep: {over: {bs: [4k, 16k, 512M], iodepth: [1, 2, 4]}}}"))
    assert len(plan.cells) == 6
    assert [(one.work, one.reason.partition(":")[0]) for one in plan.left_out] == [
        ("grid", "3 of 9 cells of its grid")
    ]


def test_a_grid_of_which_nothing_can_be_done_is_refused() -> None:
    with pytest.raises(SpecError, match="must be from 1"):
        plan_of(study_of("grid: {size: 2G, sweep: {over: {bs: [512M, 1G]}}}"))


def test_a_sweep_is_changed_from_the_command_line() -> None:
    sets = ("workloads.grid.sweep.trials=30", "workloads.grid.sweep.over.iodepth=[1, 16]")
    sweep = study_of(GRID, *sets).workloads["grid"].sweep
    assert sweep is not None
    assert (sweep.trials, sweep.over["iodepth"]) == (30, [1, 16])


@pytest.mark.parametrize(
    ("work", "words"),
    [
        ("sweep: {}", "missing"),
        ("sweep: {over: {}}", "one option or 2"),
        ("sweep: {over: {bs: [4k, 8k], iodepth: [1, 2], numjobs: [1, 2]}}", "one option or 2"),
        ("sweep: {over: [bs, iodepth]}", "one option or 2"),
        ("sweep: {over: {bz: [4k, 8k]}}", "no option that a sweep"),
        ("sweep: {over: {bs: [4k]}}", "needs 2 to"),
        ("sweep: {over: {bs: 4k}}", "needs 2 to"),
        ("sweep: {over: {bs: [8k, 4k]}}", "do not rise"),
        ("sweep: {over: {bs: [4k, 4096]}}", "do not rise"),
        ("sweep: {over: {direct: [false, true]}}", "no number"),
        ("sweep: {over: {bs: [4k, soon]}}", "soon"),
        ("sweep: {over: {bs: [4k, 8k]}, share: 95}", "percentage"),
        ("sweep: {over: {bs: [4k, 8k]}, trials: 1}", "out of range"),
        ("sweep: {over: {bs: [4k, 8k]}, metric: latency}", "latency"),
        ("sweep: {over: {bs: [4k, 8k]}}, bs: 4k", "the sweep says it"),
        ("sweep: {over: {bs: [4k, 8k]}}, search: {bound: 1s}", "plain trials"),
        ("sweep: {over: {bs: [4k, 8k]}}, steady_state: {}", "plain trials"),
    ],
)
def test_a_bad_sweep_is_one_clear_error(work: str, words: str) -> None:
    with pytest.raises(SpecError) as caught:
        expand(study_of(f"grid: {{{work}}}"))
    assert words in str(caught.value)


def test_work_that_has_no_such_rate_cannot_be_swept() -> None:
    text = (
        "format: leadline.study/1\n"
        "workloads: {names: {operations: [create], sweep: {over: {files: [10, 100]}}}}\n"
    )
    with pytest.raises(SpecError, match="has no bandwidth"):
        parse_study(read_study(text, "my.yaml", {}), "my")
