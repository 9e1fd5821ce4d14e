"""Slots that are measured in states: entered once, read back around each slot, put back whatever happens."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from builders import clock, facts, manifest, trial_row

from leadline.cli.console import make_console
from leadline.cli.measure.progress import Quiet
from leadline.errors import ResultError, StudyError
from leadline.plan.make import Host, make_plan
from leadline.plan.model import Plan, PlannedCell, Trial
from leadline.run.model import RunOptions, RunRequest, Steering
from leadline.run.session import manifest_of, new_run, resume_run
from leadline.run.site import SlotEnd, StatedSite
from leadline.store.acting import SeenManifest
from leadline.store.journal import read_journal
from leadline.store.reader import check_manifest
from leadline.store.writer import ResultWriter, create_result
from leadline.study.library import load_study
from leadline.study.target import Target


class Inner:
    """A site that measures nothing and says what it was asked."""

    def __init__(self, log: list[str]) -> None:
        self.log = log

    def run_slot(self, slot: Sequence[Trial], cells: Sequence[PlannedCell]) -> SlotEnd:
        del cells
        self.log.append(f"slot {slot[0].target}")
        return SlotEnd(tuple((replace(trial_row(), trial=one.id), (), ()) for one in slot))

    def clean_up(self, lost: Collection[str]) -> tuple[str, ...]:
        del lost
        self.log.append("clean up")
        return ("a file",)


class Fake:
    """A setting that has the name of its state as its value; `stuck` is a state that never comes."""

    def __init__(self, log: list[str], stuck: str = "") -> None:
        self.log, self.stuck, self.value = log, stuck, "without"

    def enter(self, state: str) -> None:
        self.log.append(f"enter {state}")
        if state == self.stuck:
            raise StudyError("it went back by itself", "look who changes it")
        self.value = state

    def look(self, state: str) -> Mapping[str, Any]:
        return {"dial": {"wanted": state, "found": self.value}}

    def leave(self) -> tuple[str, ...]:
        self.log.append("leave")
        return ("dial",)


@pytest.fixture
def log() -> list[str]:
    return []


def plan_of(directory: Path) -> Plan:
    study = load_study("quick", {}, ["blocks=1", "size=1M"])
    targets = {name: Target(name, str(directory), state=name) for name in ("without", "with")}
    return make_plan(study, targets, dict.fromkeys(targets, facts()), Host(1 << 30), 1)


def site_of(tmp_path: Path, log: list[str], stuck: str = "") -> tuple[StatedSite, Plan, ResultWriter]:
    plan = plan_of(tmp_path)
    request = RunRequest("0badcafe", plan, dict.fromkeys(("without", "with"), facts()), RunOptions())
    writer = create_result(tmp_path / "r", manifest(plan=plan.as_json()), clock())
    return StatedSite(Inner(log), Fake(log, stuck), request, writer), plan, writer


def first_of(plan: Plan, target: str) -> tuple[list[Trial], list[PlannedCell]]:
    trial = next(one for one in plan.trials if one.target == target)
    return [trial], [plan.cell(trial.cell)]


def test_a_state_is_entered_once_and_what_was_in_force_stands_in_each_row(
    tmp_path: Path, log: list[str]
) -> None:
    site, plan, writer = site_of(tmp_path, log)
    with closing(writer):
        ends = [site.run_slot(*first_of(plan, name)) for name in ("without", "with", "with")]
    assert log == ["enter without", "slot without", "enter with", "slot with", "slot with"]
    seen = json.loads(str(ends[1].stored[0][0].states))
    there = {"dial": {"wanted": "with", "found": "with"}}
    assert seen == {"state": "with", "before": there, "after": there}


def test_a_state_that_does_not_come_ends_the_study_and_nothing_of_the_slot_counts(
    tmp_path: Path, log: list[str]
) -> None:
    site, plan, writer = site_of(tmp_path, log, stuck="with")
    with closing(writer):
        end = site.run_slot(*first_of(plan, "with"))
        site.run_slot(*first_of(plan, "without"))
    assert not end.stored
    assert end.interrupted
    assert "it went back by itself" in str(end.trouble)
    events = [(one.event, one.details.get("state")) for one in read_journal(tmp_path / "r" / "events.jsonl")]
    assert events[:1] == [("state_intended", "with")]
    assert ("state_entered", "with") not in events


def test_settings_are_put_back_before_files_are_removed_and_what_is_left_is_named(
    tmp_path: Path, log: list[str]
) -> None:
    site, _, writer = site_of(tmp_path, log)
    with closing(writer):
        assert site.clean_up(()) == ("dial", "a file")
    assert log == ["leave", "clean up"]


def nothing(*_asked: object) -> None:
    """A pilot that is never asked."""


def test_a_plan_with_states_is_refused_where_nobody_changes_settings(tmp_path: Path) -> None:
    request = RunRequest(
        "0badcafe", plan_of(tmp_path), dict.fromkeys(("without", "with"), facts()), RunOptions()
    )
    with pytest.raises(ResultError, match="proves settings") as refused:
        new_run(
            request, tmp_path / "r", {}, Quiet(make_console(stderr=True)), lambda: False, Steering(nothing)
        )
    assert "leadline tune prove --resume" in refused.value.remedy
    assert not (tmp_path / "r").exists()


def test_a_run_that_goes_on_puts_back_what_a_crash_left_before_anything_else(
    tmp_path: Path, log: list[str]
) -> None:
    plan = plan_of(tmp_path)
    request = RunRequest("0badcafe", plan, dict.fromkeys(("without", "with"), facts()), RunOptions())
    with closing(create_result(tmp_path / "r", manifest_of(request, {}), clock())):
        pass
    seen = SeenManifest(check_manifest(tmp_path / "r"), ())
    with pytest.raises(ResultError, match="could not be put back: dial"):
        resume_run(
            tmp_path / "r",
            seen,
            Quiet(make_console(stderr=True)),
            lambda: False,
            Steering(nothing, states=Fake(log)),
        )
    assert log == ["leave"]
