"""A fault is on disk before it is done, and undone by whoever comes next; nothing but a lab is touched."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import FrameType, MethodType
from typing import Any

import pytest
from click.testing import CliRunner

from leadline import faults
from leadline.cli import signals
from leadline.cli.machine import lab_inject
from leadline.cli.machine.lab import command
from leadline.errors import LabError, SpecError, UsageError
from leadline.lab import record
from leadline.lab.cluster import process, stop
from leadline.lab.cluster.process import poll
from leadline.lab.inject import actions, engine, kinds
from leadline.lab.inject.fault import FaultKind, FaultOption, FaultScene, nothing, processes
from leadline.lab.inject.injection import FaultPlan, FaultStep, LabAction
from leadline.lab.record import LabRecord
from leadline.lab.spec import LabSpec
from leadline.units import parse_percent

SLEEPER = [sys.executable, "-c", "import time; time.sleep(60)"]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[LabRecord]:
    """A lab of two sleeping processes, one of which carries its mark."""
    directory = tmp_path / "lab"
    directory.mkdir(mode=0o700)
    fsid = f"test-{os.getpid()}-{tmp_path.name}"
    made = LabRecord(
        name="toy", fsid=fsid, spec=LabSpec(directory=directory, mount=False), directory=directory,
        run_directory=directory / "run", made_directory=True, owner_uid=os.geteuid(), created_unix_s=1.0,
        state="up",
    )  # fmt: skip
    variables = process.environment(fsid, directory, os.environ)
    own = process.start("osd.0", SLEEPER, variables, tmp_path / "osd.0.log")
    foreign = process.start("osd.1", SLEEPER, dict(os.environ), tmp_path / "osd.1.log")
    (directory / record.LOCK).touch()
    made = replace(made, processes=(own, replace(foreign, mark=fsid)))
    record.write_record(made)
    assert poll(lambda: [item.pid for item in process.find_marked(fsid)] == [own.pid], 10.0)
    yield made
    for item in made.processes:  # by their own identity: one of them carries no mark
        if process.is_running(item):
            os.kill(item.pid, signal.SIGKILL)


@pytest.fixture
def notes(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What made actions did, and what the lab's file held as they did it. `fail` in a word makes one fail."""
    done: list[str] = []

    def note(place: actions.ActionContext, word: str) -> None:
        on_disk = record.read_record(place.journal.record.directory)
        assert on_disk.injections[-1].undo, "undone by nothing on disk"
        if word in done and word.startswith("fail once"):
            done.append(word)
            return
        done.append(word)
        if word.startswith("fail"):
            raise LabError(f"{word}: no", "")

    monkeypatch.setitem(actions.ACTIONS, "note", note)
    return done


def made_kind(*steps: tuple[str, str], name: str = "toy", **changes: object) -> FaultKind:
    plan = FaultPlan(
        "a toy",
        tuple(FaultStep(LabAction("note", (do,)), LabAction("note", (undo,))) for do, undo in steps),
        ("toy",),
    )
    return replace(FaultKind(name, "a toy", "", nothing, lambda _: plan), **changes)  # type: ignore[arg-type]


def inject(lab: LabRecord, kind: FaultKind | str, on: str = "", **options: str) -> str:
    return engine.inject(lab.directory, os.environ, kind, on, options).id


def clear(lab: LabRecord, *identifiers: str) -> list[LabError]:
    return engine.clear(lab.directory, os.environ, identifiers)[1]


def state_of(lab: LabRecord, number: int) -> str:
    text = Path(f"/proc/{lab.processes[number].pid}/stat").read_text()
    return process.parse_stat(text)[0]


def test_what_undoes_a_fault_is_on_disk_before_it_is_done(lab: LabRecord, notes: list[str]) -> None:
    inject(lab, made_kind(("do 1", "undo 1"), ("do 2", "undo 2")))
    (found,) = engine.in_force(lab.directory)
    assert found.done
    assert [fault.id for fault in faults.in_force(faults.read(lab.directory))] == [found.id]
    assert clear(lab) == []
    assert notes == ["do 1", "do 2", "undo 2", "undo 1"]
    assert engine.in_force(lab.directory) == ()
    assert faults.in_force(faults.read(lab.directory)) == ()


def test_a_step_that_fails_undoes_those_before_it(lab: LabRecord, notes: list[str]) -> None:
    with pytest.raises(LabError, match="fail: no"):
        inject(lab, made_kind(("do 1", "undo 1"), ("fail", "undo 2")))
    assert notes == ["do 1", "fail", "undo 2", "undo 1"]
    assert engine.in_force(lab.directory) == ()


def test_a_file_of_faults_that_cannot_be_is_no_defect_of_ours(lab: LabRecord, notes: list[str]) -> None:
    (lab.directory / faults.FILE).mkdir()
    with pytest.raises(LabError, match=faults.FILE):
        inject(lab, made_kind(("one", "two")))
    assert (notes, record.read_record(lab.directory).injections) == ([], ())


def test_an_undo_that_fails_keeps_the_fault_and_the_others_go_on(lab: LabRecord, notes: list[str]) -> None:
    first = inject(lab, made_kind(("do 1", "undo 1")))
    stuck = made_kind(("do 2", "fail once"), ("do 3", "undo 3"), name="stuck")
    plan = replace(stuck.plan(FaultScene(lab, "", {}, {})), holds=("other",))
    second = inject(lab, replace(stuck, plan=lambda _: plan))
    (failure,) = clear(lab)
    assert f"stuck ({second}) could not be undone: fail once: no" in failure.message
    assert notes[-3:] == ["undo 3", "fail once", "undo 1"], "the last first, and all of them"
    assert [item.id for item in engine.in_force(lab.directory)] == [second] != [first]
    assert clear(lab) == []
    assert faults.in_force(faults.read(lab.directory)) == ()


@pytest.mark.parametrize("moment", ["do 1", "do 2", "undo 2", "undo 1"])
def test_whoever_is_killed_at_any_step_leaves_what_undoes_it(
    lab: LabRecord, notes: list[str], monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    kind = made_kind(("do 1", "undo 1"), ("do 2", "undo 2"))

    def die(_: actions.ActionContext, word: str) -> None:
        if word == moment:
            os.kill(os.getpid(), signal.SIGKILL)

    pid = os.fork()
    if pid == 0:
        monkeypatch.setitem(actions.ACTIONS, "note", die)
        inject(lab, kind)
        clear(lab)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL
    (found,) = engine.in_force(lab.directory)
    assert found.done == moment.startswith("undo")
    assert clear(lab) == []
    assert notes == ["undo 2", "undo 1"]
    assert faults.in_force(faults.read(lab.directory)) == ()


def test_one_thing_is_held_by_one_fault(lab: LabRecord, notes: list[str]) -> None:
    inject(lab, made_kind(("do", "undo")))
    with pytest.raises(UsageError, match=r"toy is held by a fault in force: toy \(1\)"):
        inject(lab, made_kind(("do", "undo")))
    assert notes == ["do"]


def test_a_process_is_stopped_only_where_it_carries_the_labs_mark(lab: LabRecord) -> None:
    inject(lab, "osd-paused", "osd.0")
    assert poll(lambda: state_of(lab, 0) == "T", 5.0)
    with pytest.raises(LabError, match=r"osd\.1 does not run"):
        inject(lab, "osd-paused", "osd.1")
    assert state_of(lab, 1) != "T"
    assert clear(lab) == []
    assert poll(lambda: state_of(lab, 0) == "S", 5.0)


def test_a_cluster_that_is_not_the_labs_is_not_touched(
    lab: LabRecord, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    said = tmp_path / "said"
    (tmp_path / "ceph").write_text(f'#!/bin/sh\necho "$@" >> {said}\necho another-fsid\n')
    (tmp_path / "ceph").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    plan = FaultPlan("", (FaultStep(LabAction("ceph", ("osd", "out", "0"))),), ())
    with pytest.raises(LabError, match="another-fsid, not lab toy"):
        inject(lab, FaultKind("toy", "", "", nothing, lambda _: plan))
    assert [line.split()[-1] for line in said.read_text().splitlines()] == ["fsid"]


def test_taking_the_lab_down_wakes_what_was_stopped(lab: LabRecord) -> None:
    inject(lab, "osd-paused", "osd.0")
    assert stop.remove(lab.directory, os.environ, lambda _: None)
    assert not process.is_running(lab.processes[0])
    assert process.is_running(lab.processes[1]), "it carries no mark"
    assert not lab.directory.exists()


def test_an_unknown_kind_gets_near_misses() -> None:
    with pytest.raises(UsageError, match="no fault 'osd-pausd'") as caught:
        kinds.find("osd-pausd")
    assert "osd-paused" in caught.value.remedy


@pytest.mark.parametrize(
    ("changes", "words", "match"),
    [
        ({}, {"on": "osd.9"}, "'osd.9' is nothing in lab toy that toy can be done on"),
        ({"things": processes("osd.")}, {}, "what in lab toy toy shall be done on"),
        ({}, {"size": "1"}, "no option 'size'"),
        ({"options": (FaultOption("cpu", "5%", parse_percent, ""),)}, {"cpu": "x"}, "not a percentage"),
        ({"lacking": lambda _: "no such kernel"}, {}, "cannot be done here: no such kernel"),
        ({"limit_s": 60.0}, {}, "may last 60 s at most"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_recorded(
    lab: LabRecord, notes: list[str], changes: dict[str, object], words: dict[str, str], match: str
) -> None:
    with pytest.raises((UsageError, SpecError), match=match):
        inject(lab, made_kind(("do", "undo"), **changes), **words)
    assert notes == []
    assert engine.in_force(lab.directory) == ()


def test_an_answer_of_the_cluster_that_lacks_what_is_needed_is_an_error(lab: LabRecord) -> None:
    def plan(_: FaultScene) -> FaultPlan:
        raise KeyError("pg_stats")

    with pytest.raises(LabError, match="does not report what toy needs to know"):
        inject(lab, FaultKind("toy", "", "", nothing, plan))
    assert engine.in_force(lab.directory) == ()


def test_a_lab_that_is_not_up_is_left_alone(lab: LabRecord, notes: list[str]) -> None:
    record.write_record(replace(lab, state="starting"))
    with pytest.raises(UsageError, match="not up"):
        inject(lab, made_kind(("do", "undo")))
    assert notes == []


def run(lab: LabRecord, *words: str) -> tuple[int, str]:
    done = CliRunner().invoke(command, ["inject", "--dir", str(lab.directory), *words])
    return done.exit_code, done.output


def test_a_fault_for_a_time_is_undone_at_its_end(lab: LabRecord) -> None:
    code, output = run(lab, "osd-paused", "osd.0", "for", "100ms")
    assert (code, output.splitlines()[-1]) == (0, "undone: osd-paused on osd.0")
    assert poll(lambda: state_of(lab, 0) == "S", 5.0)


@contextmanager
def interrupted_at(line: int) -> Iterator[list[int]]:
    """SIGINT arrives at the n-th of the lines that the command runs while it unwinds it; counts them."""
    files = {engine.__file__, lab_inject.__file__, signals.__file__}
    count = [0]
    seen = set()

    def trace(frame: FrameType, event: str, _: object) -> Callable[..., Any] | None:
        if frame.f_code.co_filename not in files:
            return None
        place = (frame.f_code, frame.f_lineno)
        if event == "line" and place not in seen and isinstance(signal.getsignal(signal.SIGINT), MethodType):
            seen.add(place)
            count[0] += 1
            if count[0] == line:
                signal.raise_signal(signal.SIGINT)
        return trace

    sys.settrace(trace)
    try:
        yield count
    finally:
        sys.settrace(None)


def test_a_fault_for_a_time_is_undone_wherever_an_interrupt_arrives(lab: LabRecord) -> None:
    line = 0
    while True:
        line += 1
        with interrupted_at(line) as count:
            done = run(lab, "osd-paused", "osd.0", "for", "10ms")
        assert engine.in_force(lab.directory) == (), f"line {line} of what runs: {done}"
        assert poll(lambda: state_of(lab, 0) == "S", 5.0), f"line {line} of what runs: {done}"
        if count[0] < line:
            break
        assert done[0] != 0, f"line {line} of what runs: {done}"
    assert line > 50


def test_what_is_in_force_is_listed_and_cleared(lab: LabRecord) -> None:
    assert run(lab, "osd-paused", "osd.0")[0] == 0
    assert "1  osd-paused on osd.0: osd.0 stands still (SIGSTOP); since " in run(lab, "--list")[1]
    (found,) = json.loads(run(lab, "--list", "--json")[1])["injections"]
    assert (found["id"], found["kind"], found["on"]) == ("1", "osd-paused", "osd.0")
    assert run(lab, "--clear", "1") == (0, "undone: osd-paused on osd.0\n")
    assert run(lab, "--clear") == (0, "no fault was in force\n")


@pytest.mark.parametrize(
    "words",
    [
        ["osd-paused", "osd.0", "for"],
        ["osd-paused", "osd.0", "for", "1s", "more"],
        ["osd-paused", "osd.0", "for", "0s"],
        ["osd-paused", "osd.0", "osd.1"],
        ["osd-paused", "osd.0", "a=1", "a=2"],
        ["--list", "--clear"],
        ["--list", "osd-paused"],
        [],
    ],
)
def test_words_that_are_no_fault_are_refused(lab: LabRecord, words: list[str]) -> None:
    done = CliRunner().invoke(command, ["inject", "--dir", str(lab.directory), *words])
    assert isinstance(done.exception, UsageError | SpecError)
    assert engine.in_force(lab.directory) == ()
