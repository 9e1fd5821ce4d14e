"""A run leaves bundles of its trials: some while it goes on, the rest at its end; none when it is stopped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from builders import clock, facts, trial_row

from leadline.plan.make import Host, make_plan
from leadline.plan.model import Plan, Trial
from leadline.run import executor
from leadline.run.executor import Executor
from leadline.run.faulted import FaultWatch
from leadline.run.model import RunOptions, RunRequest
from leadline.run.site import SlotEnd
from leadline.store.bundles import FEW, read_bundles
from leadline.store.reader import open_result
from leadline.store.writer import create_result
from leadline.study.library import load_study
from leadline.study.target import Target


class Silent:
    """Shows nothing."""

    def __getattr__(self, _name: str) -> Any:
        return lambda *_: None


class Site:
    """Has measured every slot as soon as it is asked to."""

    def __init__(self) -> None:
        self.run = 0

    def run_slot(self, slot: Sequence[Trial], _cells: object) -> SlotEnd:
        self.run += len(slot)
        rows = [
            trial_row(
                trial=one.id, cell=one.cell, target=one.target, work="w", block=one.block, order=one.order
            )
            for one in slot
        ]
        return SlotEnd(stored=tuple((row, (), ()) for row in rows))

    def clean_up(self, _lost: object) -> tuple[str, ...]:
        return ()


def plan_of(count: int) -> Plan:
    targets = {"a": Target("a", "/a")}
    plan = make_plan(load_study("quick", {}, ()), targets, {"a": facts()}, Host(8 << 30), 1)
    one = plan.trials[0]
    trials = tuple(
        replace(one, id=f"t{order:04d}", order=order, block=order) for order in range(1, count + 1)
    )
    return replace(plan, trials=trials)


def run(path: Path, count: int, stop_after: int | None = None) -> list[int]:
    """How many trials each bundle has, the first first."""
    plan, silent, site = plan_of(count), Silent(), Site()
    request = RunRequest("0badcafe", plan, {}, RunOptions())
    details = {"kind": "study", "id": "0badcafe", "plan": plan.as_json()}
    writer = create_result(path, details, clock())

    def stopping() -> bool:
        return stop_after is not None and site.run >= stop_after

    faults = FaultWatch((), writer, under_fault=False)
    Executor(request, writer, site, faults, silent, stopping, silent).run()
    writer.close()
    assert len(open_result(path).trials()) == site.run
    return [len(one.tables["trials"].trials) for one in reversed(read_bundles(path))]


def test_bundles_are_made_while_a_run_goes_on_and_at_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executor, "TRIALS_MAX", FEW)
    assert run(tmp_path / "few", FEW - 1) == []
    assert run(tmp_path / "whole", FEW + 3) == [FEW, 3]
    assert run(tmp_path / "stopped", FEW + 9, stop_after=FEW + 5) == [FEW]
