"""A target that hangs is left alone from then on, and only that one: what is lost with it is said."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from builders import facts

from leadline.plan.make import Host, make_plan
from leadline.plan.model import Plan
from leadline.run import local, places
from leadline.run.child import Answer
from leadline.run.executor import Executor
from leadline.run.faulted import FaultWatch
from leadline.run.model import RunOptions, RunRequest
from leadline.store.writer import create_result
from leadline.study.library import load_study
from leadline.study.target import Target
from leadline.workloads.coherence import conversation
from leadline.workloads.coherence.conversation import converse
from leadline.workloads.coherence.job import CoherenceJob


class FakeWorker:
    """Does what it is told at once; what touches the second target hangs."""

    pid = 1
    stuck = False

    def __init__(self, *_: object) -> None:
        self.hung = False

    def __enter__(self) -> FakeWorker:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing to end."""

    def call(self, _command: str, _deadline_s: float, *_: object, **arguments: Any) -> Answer:
        if self.hung:
            return Answer("died", message="the worker process 1 ended by signal SIGKILL")
        if str(arguments.get("directory", "")).startswith("/second"):
            self.hung = True
            return Answer("hung", message="I/O did not end by its deadline")
        return Answer("done", value={"more": False})


class Silent:
    """Shows nothing, observes nothing."""

    def __getattr__(self, _name: str) -> Any:
        return lambda *_: None


def _plan() -> Plan:
    targets = {"writer": Target("writer", "/first"), "reader": Target("reader", "/second")}
    study = load_study("coherence", {}, ())
    plan = make_plan(study, targets, dict.fromkeys(targets, facts()), Host(8 << 30), 1)
    chosen = [trial for trial in plan.trials if trial.cell == "writer.coherence_to_reader"]
    return replace(plan, trials=tuple(chosen[:1]))


def test_a_reader_that_hangs_before_a_trial_loses_its_own_target_and_not_the_writers(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(local, "Worker", FakeWorker)
    monkeypatch.setattr(places, "Worker", FakeWorker)
    plan, silent = _plan(), Silent()
    request = RunRequest("0badcafe", plan, {}, RunOptions())
    writer = create_result(tmp_path / "result", {"plan": plan.as_json()}, lambda: 1)
    faults = FaultWatch((), writer, under_fault=False)
    site = local.LocalSite(request, writer, silent, silent, lambda: False, faults)
    outcome = Executor(request, writer, site, faults, silent, lambda: False, silent).run()
    lost = [event.details["target"] for event in writer.events() if event.event == "target_lost"]
    writer.close()
    assert lost == ["reader"]
    assert outcome.not_run == {"writer.coherence_to_reader": "I/O did not end by its deadline"}
    assert outcome.left_behind == ("/second/leadline-0badcafe, perhaps",)  # nobody knows whether it was made


def test_a_reader_that_hangs_in_a_trial_is_said_to_hang_and_the_writer_is_well(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(conversation, "Worker", FakeWorker)
    (job,) = {cell.job for cell in _plan().cells if cell.id == "writer.coherence_to_reader"}
    assert isinstance(job, CoherenceJob)
    ways = (places.Place("/first"), places.Place("/second"))
    answer, reader_gone = converse(FakeWorker(), job, "x", ways, lambda: False)  # type: ignore[arg-type]
    assert reader_gone
    assert (answer.outcome, answer.message) == ("failed", "I/O did not end by its deadline")
