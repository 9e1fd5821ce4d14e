"""A command in a study: what may be said of it, what is refused, and what a plan makes of it."""

from __future__ import annotations

import json

import pytest
from builders import MIB, facts

from leadline.errors import SpecError
from leadline.plan.make import Host, make_plan
from leadline.plan.model import Plan
from leadline.study.kind.lookups import ApplicationFacts, Input, Look
from leadline.study.kinds import stored_job
from leadline.study.library import load_study
from leadline.study.study import Study, parse_study
from leadline.study.target import Target, TargetFacts
from leadline.study.yaml_source import read_study
from leadline.workloads.application.job import ApplicationJob

STAGED = Input("/data/events", 3, 30 * MIB, ("a.root",))


def study(work: str, more: str = "") -> Study:
    text = f"format: leadline.study/1\nworks:\n  run: {work}\n{more}"
    return parse_study(read_study(text, "s.yaml", {}))


def plan(asked: Study, found: ApplicationFacts | None = None, fact: TargetFacts | None = None) -> Plan:
    known = found or ApplicationFacts("/bin/prog", input=STAGED)
    return make_plan(
        asked,
        {"a": Target("a", "/x")},
        {"a": fact or facts()},
        Host(8 << 30, lookups=(Look(lambda *_: known),)),
        1,
    )


def job(asked: Study, found: ApplicationFacts | None = None) -> ApplicationJob:
    own = plan(asked, found).cells[0].job
    assert isinstance(own, ApplicationJob)
    return own


def test_every_default_of_a_command_is_explicit_in_the_plan() -> None:
    own = job(study("{command: [prog, -x, 3], input: /data/events}"))
    assert own.command == ("prog", "-x", "3")
    assert (own.copies, own.cache, own.trace, own.runtime_ns) == (1, "cold", "preload", 3600 * 10**9)
    assert (own.input, own.input_files, own.input_bytes) == ("/data/events", 3, 30 * MIB)
    assert stored_job({"job": json.loads(json.dumps(own.as_json()))}) == own


def test_a_plan_with_commands_is_read_back_as_it_was_stored() -> None:
    made = plan(study("{command: [prog, '{input}'], input: /data}", "factors: {copies: [1, 2, 4]}\n"))
    assert Plan.from_json(json.loads(json.dumps(made.as_json()))) == made
    assert [cell.work for cell in made.cells] == ["run_copies1", "run_copies2", "run_copies4"]


def test_the_input_is_staged_once_for_all_numbers_of_copies() -> None:
    made = plan(study("{command: [prog], input: /data}", "factors: {copies: [1, 8]}\n"))
    assert [layout.total_bytes for layout in made.layouts("a")] == [30 * MIB]
    assert made.bytes_needed["a"] == 30 * MIB


@pytest.mark.parametrize(
    ("work", "key", "words"),
    [
        ("{command: prog}", "workloads.run.command", "list of words"),
        ("{command: [true]}", "workloads.run.command", "no word"),
        ("{command: [prog], rw: read}", "workloads.run.rw", "means nothing with command"),
        ("{command: [prog], numjobs: 2}", "workloads.run.numjobs", "means nothing with command"),
        ("{command: [prog], operations: [create]}", "workloads.run.operations", "means nothing with command"),
        ("{copies: 2, rw: read}", "workloads.run.copies", "means nothing without command"),
        ("{command: [prog], copies: 0}", "workloads.run.copies", "out of range"),
        ("{command: [prog, '{input}']}", "workloads.run.command", "no input is named"),
        ("{command: [prog], runtime: 0}", "workloads.run.runtime", "cannot be 0"),
        ("{command: [prog], trace: magic}", "workloads.run.trace", "is not one of them"),
        ("{command: [prog], search: {bound: 1ms}}", "workloads.run.search", "not of a command"),
        ("{jobs: {a: {command: [prog]}, b: {rw: read}}}", "command", "one of several jobs"),
    ],
)
def test_contradictions_name_their_key(work: str, key: str, words: str) -> None:
    with pytest.raises(SpecError) as error:
        study(work)
    assert key in error.value.message
    assert words in error.value.message
    assert error.value.remedy


@pytest.mark.parametrize(
    ("found", "fact", "more", "words"),
    [
        (ApplicationFacts(None, "there is no program prog on PATH"), None, "", "no program prog"),
        (None, facts(access="null"), "", "null:// has no files"),
        (None, None, "limits: {max_rate: 1M}\n", "max_rate cannot hold"),
    ],
)
def test_a_command_that_cannot_run_is_refused_before_anything_starts(
    found: ApplicationFacts | None, fact: TargetFacts | None, more: str, words: str
) -> None:
    with pytest.raises(SpecError, match=words):
        plan(study("{command: [prog]}", more), found, fact)


def test_a_study_without_its_command_says_how_to_give_it() -> None:
    with pytest.raises(SpecError) as error:
        plan(load_study("analysis", {}))
    assert "-- PROGRAM" in error.value.remedy


def test_words_after_the_dashes_become_the_command_of_the_study() -> None:
    asked = load_study("analysis", {}, command=("prog", "a b"), input_path="/data")
    assert {work.command for work in asked.workloads.values()} == {("prog", "a b")}
    assert {work.input for work in asked.workloads.values()} == {"/data"}
    with pytest.raises(SpecError, match="no workload of this study runs a command"):
        load_study("quick", {}, command=("prog",))
    with pytest.raises(SpecError, match="--input"):
        load_study("quick", {}, input_path="/data")


def test_a_relative_program_is_made_absolute_and_a_name_stays_a_name() -> None:
    found = ApplicationFacts("/here/prog")
    assert job(study("{command: [./prog]}"), found).command == ("/here/prog",)
    assert job(study("{command: [prog]}"), found).command == ("prog",)


def test_auto_takes_the_first_tracer_that_can_follow_and_says_why() -> None:
    asked = study("{command: [prog]}")
    only_bpf = ApplicationFacts("/bin/prog", untraceable=(("preload", "it is static"),))
    none = ApplicationFacts("/bin/prog", untraceable=(("preload", "it is static"), ("bpf", "not root")))
    assert job(asked, only_bpf).trace == "bpf"
    notes = " ".join(plan(asked, none).cells[0].notes)
    assert job(asked, none).trace == "off"
    assert "it is static" in notes
    assert "not root" in notes
    with pytest.raises(SpecError, match="it is static"):
        plan(study("{command: [prog], trace: preload}"), only_bpf)


@pytest.mark.parametrize("command", ["[prog, analyse.py]", "[prog, '{input}', analyse.py]"])
def test_a_word_that_is_a_file_here_is_pointed_at(command: str) -> None:
    found = ApplicationFacts("/bin/prog", input=STAGED, here=("analyse.py",))
    notes = " ".join(plan(study(f"{{command: {command}, input: /data}}"), found).cells[0].notes)
    assert "analyse.py is a file here" in notes
    assert "absolute path" in notes


@pytest.mark.parametrize(
    "command",
    ["[python3, my.py]", "[/usr/bin/python3.11, -u, ./my.py]", "[sh, my.py]", "[python3, my.py, '{input}']"],
)
def test_a_script_that_its_interpreter_would_not_find_is_refused_before_anything_runs(command: str) -> None:
    """Each copy runs in a directory of its own: every trial of it would fail alike."""
    found = ApplicationFacts("/usr/bin/python3", input=STAGED, here=("my.py", "./my.py"))
    with pytest.raises(SpecError, match=r"my\.py.*directory of its own") as error:
        plan(study(f"{{command: {command}, input: /data}}"), found)
    assert "absolute path" in error.value.remedy


@pytest.mark.parametrize("command", ["[python3, a.root]", "[python3, -c, my.py]", "[python3, -m, my.py]"])
def test_a_script_of_the_input_and_code_that_is_no_script_are_not_refused(command: str) -> None:
    found = ApplicationFacts("/usr/bin/python3", input=STAGED, here=("my.py", "a.root"))
    assert plan(study(f"{{command: {command}, input: /data}}"), found).cells


def test_a_program_and_a_script_of_a_stage_that_stand_here_are_treated_as_a_commands_own() -> None:
    text = "{pipeline: [{stage: one, command: [%s], output: x}]}"
    found = ApplicationFacts("/here/tool", here=("my.py",))
    own = plan(study(text % "./tool, -x"), found).cells[0].job
    assert own.as_json()["pipeline"][0]["actions"][0]["command"] == ["/here/tool", "-x"]
    with pytest.raises(SpecError, match=r"my\.py.*directory of its own"):
        plan(study(text % "python3, my.py"), found)


@pytest.mark.parametrize(
    ("cpus", "copies"),
    [
        (1, [1, 2]),
        (2, [1, 2, 3]),
        (4, [1, 2, 4, 5]),
        (6, [1, 2, 4, 6, 7]),
        (64, [1, 2, 4, 8, 16, 32, 64, 65]),
    ],
)
def test_copies_go_to_the_cpus_of_the_host_and_one_beyond(cpus: int, copies: list[int]) -> None:
    """More of them wait for CPUs, and say nothing of the storage."""
    asked = load_study("analysis", {}, command=("prog",), cpus=cpus)
    assert asked.factors["copies"] == copies
    assert Study.from_json(asked.as_json()) == asked  # the stored study names them: a resume counts no CPUs


def test_copies_that_are_named_stay_as_they_are() -> None:
    given = {"cpus": 4, "command": ("prog",)}
    assert load_study("analysis", {}, ["factors.copies=[1,3]"], **given).factors["copies"] == [1, 3]
    words = ["factors.copies=[2,..,cpus+1]"]
    assert load_study("analysis", {}, words, **given).factors["copies"] == [2, 4, 5]


@pytest.mark.parametrize("levels", ["[..,cpus]", "[1,..]", "[cpus,..,1]", "[1,..,two]", "[1,cores]"])
def test_levels_that_are_no_numbers_are_refused_by_their_key(levels: str) -> None:
    with pytest.raises(SpecError) as error:
        load_study("analysis", {}, [f"factors.copies={levels}"], command=("prog",), cpus=4)
    assert "copies" in error.value.message + (error.value.key or "")
