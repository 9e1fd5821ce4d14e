"""A stop, or a cluster in trouble, that comes while a worker process starts: an end like any other."""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from builders import clock, facts, manifest

from leadline.errors import EngineError
from leadline.observe.reading import Mark, Sample
from leadline.plan.make import Host, make_plan
from leadline.plan.model import Plan
from leadline.run import child, prepared
from leadline.run.child import Answer, Worker
from leadline.run.executor import Executor
from leadline.run.faulted import FaultWatch
from leadline.run.local import LocalSite
from leadline.run.model import Outcome, RunOptions, RunRequest
from leadline.run.places import Places
from leadline.run.workspace import Workspace, make_workspace
from leadline.store.journal import read_journal
from leadline.store.writer import create_result
from leadline.study.library import load_study
from leadline.study.target import Target

# In place of what forks workers: a process that takes its time to load, as Python does on a busy host, and
# says when it was begun.
SLOW = "import pathlib, sys, time; pathlib.Path(sys.argv[1]).touch(); time.sleep(60)"
SILENT = "import sys; print('no such module', file=sys.stderr); sys.exit(1)"


class Stop:
    """A request to end that comes once the worker's process is there, long before it could answer."""

    def __init__(self, begun: Path) -> None:
        self._begun = begun

    def __call__(self) -> bool:
        return self._begun.exists()


@pytest.fixture
def begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Exists as soon as what forks workers was started, slowly."""
    path = tmp_path / "begun"
    monkeypatch.setattr(prepared, "module_command", lambda _: [sys.executable, "-S", "-c", SLOW, str(path)])
    return path


def test_a_worker_that_is_stopped_while_it_starts_answers_that_it_was_interrupted(begun: Path) -> None:
    with Worker(Stop(begun)) as worker:
        answer = worker.call("trial", 30.0)
    assert answer.outcome == "interrupted"
    assert "KeyboardInterrupt" not in answer.message
    assert not worker.stuck


def test_a_worker_that_cannot_start_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepared, "module_command", lambda _: [sys.executable, "-S", "-c", SILENT])
    with pytest.raises(EngineError, match=r"did not start: .* exit code 1: no such module"), Worker():
        pass


def test_a_worker_that_does_not_start_in_time_is_ended_and_said_to_be_late(
    begun: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child, "_START_DEADLINE_S", 0.3)
    worker = Worker()
    with pytest.raises(EngineError, match=f"process {worker.pid} was not ready within"), worker:
        pass
    assert not Path(f"/proc/{worker.pid}").exists()


LATE = """
import json, sys, time
from leadline.run import worker
from leadline.run import fork_helper as helper

def late(_):
    print(json.dumps({"event": "ready"}), flush=True)
    sys.stdin.readline()
    try:
        time.sleep(60)
    except KeyboardInterrupt:
        print(json.dumps({"event": "failed", "message": "interrupted", "interrupted": True}), flush=True)

worker.main = late
helper.main(sys.argv[1:])
"""


def test_a_worker_that_is_interrupted_at_its_deadline_is_late_and_not_stopped_by_anybody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(prepared, "module_command", lambda _: [sys.executable, "-c", LATE])
    with Worker() as worker:
        answer = worker.call("trial", 0.3)
    assert answer.outcome == "failed"
    assert "did not end by its deadline" in answer.message


class Cluster:
    """Stands for the observers: reports slow operations once a worker was begun, if it is to."""

    def __init__(self, begun: Path, slow_ops: int) -> None:
        self._begun, self._slow_ops = begun, slow_ops

    def drain(self) -> list[Sample]:
        if not self._begun.exists():
            return []
        return [Sample(0, "ceph", "cluster", "slow_ops", float(self._slow_ops), "")]

    def mark(self, *_: object) -> Mark:
        raise AssertionError("a trial began")


class Display:
    """Shows nothing."""

    def __getattr__(self, _: str) -> Any:
        return lambda *_: None


def plan_of(directory: Path) -> Plan:
    study = load_study("quick", {}, ["blocks=1", "size=1M"])
    return make_plan(study, {"a": Target("a", str(directory))}, {"a": facts()}, Host(1 << 30), 1)


def run(tmp_path: Path, begun: Path, *, stop: bool, slow_ops: int = 0) -> tuple[Outcome, list[str]]:
    """How a run of a study ends, and the events of its journal."""
    plan = plan_of(tmp_path)
    request = RunRequest("0badcafe", plan, {"a": facts()}, RunOptions())
    writer = create_result(tmp_path / "r", manifest(plan=plan.as_json()), clock())
    stopping = Stop(begun) if stop else lambda: False
    faults = FaultWatch((), writer, under_fault=False)
    cluster: Any = Cluster(begun, slow_ops)
    site = LocalSite(request, writer, cluster, Display(), stopping, faults)
    executor = Executor(request, writer, site, faults, Display(), stopping, lambda *_: None)
    try:
        outcome = executor.run()
    finally:
        writer.close()
    return outcome, [event.event for event in read_journal(tmp_path / "r" / "events.jsonl")]


def test_a_run_that_is_stopped_while_a_worker_starts_ends_as_interrupted(tmp_path: Path, begun: Path) -> None:
    outcome, events = run(tmp_path, begun, stop=True)
    assert (outcome.interrupted, outcome.stopped, outcome.trials_run) == (True, None, 0)
    assert events[-1] == "interrupted"


def test_a_cluster_in_trouble_while_a_worker_starts_stops_the_study_with_its_own_reason(
    tmp_path: Path, begun: Path
) -> None:
    outcome, events = run(tmp_path, begun, stop=False, slow_ops=3)
    assert outcome.stopped == "the cluster reports slow operations, at trial t0001"
    assert (outcome.interrupted, outcome.trials_run) == (False, 0)
    assert events[-1] == "stopped"


class Ended:
    """A worker that makes a workspace and is ended before it can say so."""

    def __init__(self, how: Answer) -> None:
        self._how = how

    def call(self, _: str, __: float, **arguments: Any) -> Answer:
        place = Workspace(arguments["directory"], arguments["location"])
        make_workspace(place, arguments["id"])
        return self._how


@pytest.mark.parametrize(
    "how",
    [Answer("interrupted"), Answer("failed", late=True), Answer("died"), Answer("hung")],
    ids=["interrupted", "late", "died", "hung"],
)
def test_a_workspace_goes_though_its_maker_was_ended_before_it_could_say_so(
    tmp_path: Path, how: Answer
) -> None:
    request = RunRequest("0badcafe", plan_of(tmp_path), {"a": facts()}, RunOptions())
    with closing(create_result(tmp_path / "r", manifest(plan=request.plan.as_json()), clock())) as writer:
        places = Places(request, writer)
        places.ensure(Ended(how), "a")  # type: ignore[arg-type]
        assert (tmp_path / "leadline-0badcafe").is_dir()
        assert places.clean_up({}) == ()
    assert not (tmp_path / "leadline-0badcafe").exists()


def test_what_a_lost_target_may_hold_is_named(tmp_path: Path) -> None:
    request = RunRequest("0badcafe", plan_of(tmp_path), {"a": facts()}, RunOptions())
    with closing(create_result(tmp_path / "r", manifest(plan=request.plan.as_json()), clock())) as writer:
        places = Places(request, writer)
        places.ensure(Ended(Answer("hung")), "a")  # type: ignore[arg-type]
        assert places.clean_up({"a": "hung"}) == (f"{tmp_path}/leadline-0badcafe, perhaps",)
