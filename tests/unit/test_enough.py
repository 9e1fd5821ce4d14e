"""Blocks are added by how much the first ones scatter, never by how far apart targets are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from builders import cell

from leadline.analysis.cells import CellTable
from leadline.analysis.metrics import Measured
from leadline.analysis.statistics.moderated import blocks_for
from leadline.cli.measure.plan import enough_lines
from leadline.plan.make import Host, make_plan
from leadline.plan.model import TRIAL_OVERHEAD_S, Plan, PlannedCell, slot_seconds
from leadline.study.library import load_study
from leadline.study.target import Target, TargetFacts
from leadline.verdict.comparisons.stopping import enough_blocks, planned_level

WORKS = ("w1", "w2", "w3", "w4", "w5")
PLAN = Plan(
    "s",
    "s",
    "",
    1,
    6,
    (Target("a", "/x"), Target("b", "/y")),
    tuple(cell(f"{target}.{work}") for target in ("a", "b") for work in WORKS),
    (),
    10.0,
    {},
)


def tables(spread: float, factor: float = 1.0, blocks: int = 6, seed: int = 1) -> dict[str, CellTable]:
    """Rates whose ratios scatter by `spread` in their first six blocks; b is `factor` times a."""
    random = np.random.default_rng(seed)
    found = {}
    for planned in PLAN.cells:
        noise = random.standard_normal(blocks) * spread / math.sqrt(2)
        rates = 1000 * np.exp(noise) * (factor if planned.target == "b" else 1)
        found[planned.id] = table(planned, rates.tolist())
    return found


def table(planned: PlannedCell, rates: Sequence[float]) -> CellTable:
    return CellTable(planned.id, (), {at: Measured({"iops": rate}, {}) for at, rate in enumerate(rates, 1)})


def wanted(found: dict[str, CellTable], tells: float = 0.2) -> int | None:
    return enough_blocks(PLAN, found, "a", ("iops",), tells)


def test_what_hardly_scatters_needs_no_more_blocks_than_were_run() -> None:
    assert (wanted(tables(0.02)) or 99) <= 6


def test_what_scatters_needs_as_many_as_its_scatter_asks_for() -> None:
    needed = wanted(tables(0.2, seed=3))
    assert needed is not None
    assert 6 < needed < 40
    level = planned_level(PLAN, ("iops",)).level
    bounds = [blocks_for(0.2, spread, level) for spread in (0.1, 0.3)]
    assert None not in bounds
    assert bounds[0] <= needed <= bounds[1]  # type: ignore[operator] - asserted above


@pytest.mark.parametrize("factor", [0.1, 1.0, 1.3, 50.0])
def test_how_far_apart_targets_are_changes_nothing(factor: float) -> None:
    assert wanted(tables(0.15, factor)) == wanted(tables(0.15))


def test_blocks_that_were_added_change_nothing() -> None:
    many = tables(0.15, blocks=20)
    first = {name: replace(one, by_block=dict(list(one.by_block.items())[:6])) for name, one in many.items()}
    assert wanted(many) == wanted(first)


def test_without_a_comparison_nothing_is_added() -> None:
    alone = replace(PLAN, targets=PLAN.targets[:1], cells=PLAN.cells[: len(WORKS)])
    assert enough_blocks(alone, tables(0.2), "a", ("iops",), 0.2) is None
    assert wanted(tables(30.0)) is None, "more than any study has"


def test_who_asks_for_a_number_of_blocks_gets_it() -> None:
    assert load_study("quick", {}, ()).enough is not None
    assert load_study("quick", {}, ("blocks=3",)).enough is None
    kept = load_study("quick", {}, ("blocks=3", "enough.within=5m")).enough
    assert kept is not None
    assert kept.within == 300 * 10**9


@pytest.mark.parametrize(
    ("targets", "sets", "blocks"),
    [(("a",), (), 3), (("a", "b"), (), 6), (("a",), ("blocks=6",), 6), (("a",), ("enough.alone=4",), 4)],
)
def test_a_quick_look_at_a_single_target_has_fewer_blocks(
    targets: tuple[str, ...], sets: tuple[str, ...], blocks: int
) -> None:
    """Six are for comparisons, and there is none: the first screen comes after half a minute."""
    places = {name: Target(name, f"/{name}") for name in targets}
    facts = TargetFacts("local", "ext4", "ext4 on vda", free_bytes=1 << 40)
    study = load_study("quick", {}, sets)
    plan = make_plan(study, places, dict.fromkeys(places, facts), Host(1 << 30), 1)
    assert plan.blocks == blocks
    assert len(plan.trials) == blocks * len(plan.cells)
    words = " ".join(enough_lines(study, plan))
    assert ("a single target leaves nothing to compare" in words) == (plan.blocks < study.blocks)


def test_a_quick_look_at_a_directory_is_planned_to_take_less_than_forty_seconds() -> None:
    """Without the files, whose prefill the target's own rate decides."""
    facts = TargetFacts("local", "ext4", "ext4 on vda", free_bytes=1 << 40)
    place = {"a": Target("a", "/a")}
    plan = make_plan(load_study("quick", {}, ()), place, {"a": facts}, Host(1 << 30), 1)
    assert sum(slot_seconds([plan.cell(one.cell)]) + TRIAL_OVERHEAD_S for one in plan.trials) < 40
