"""Answers are true: every clause is held against the comparisons that it is made of."""

from __future__ import annotations

import math
import random
import re
from dataclasses import replace
from types import SimpleNamespace

import pytest
from application_examples import planned
from builders import cell
from test_screen import WORKS, figures

from findings_examples import CODES, typical
from leadline.analysis.cells import CellTable
from leadline.analysis.metrics import Measured
from leadline.plan.model import Plan
from leadline.report.first_screen import screen_of
from leadline.study.library import load_study
from leadline.verdict.answers.compose import JudgedStudy, _steps, answer_of, question_of, wider
from leadline.verdict.answers.messages import against_base, figures_alone, find_leaders, leaders_of
from leadline.verdict.certainty import factor_words
from leadline.verdict.model import UNUSABLE, Comparison, MoreBlocks, Outcome, Quantity, State, Validity
from leadline.verdict.sections import numbers
from leadline.verdict.sections.section import AskedFigure
from leadline.workloads.application.judge import JudgedApplication
from leadline.workloads.io.judge import JudgedIo

_CLAUSE = re.compile(r"(faster|slower) than base0 in (\d+) of (\d+) workloads: (.*?)(?=; (?!\d)|\.$)")
_TIMES = re.compile(r"([>\d.,]+)x in ([\w ]+?) \(CI ([^)]*)\)")


@pytest.mark.parametrize("seed", range(40))
def test_what_is_said_of_a_target_is_what_its_comparisons_are(seed: int) -> None:
    own = tuple(one for one in figures(random.Random(seed), WORKS["quick"], 2))  # noqa: S311 - data of a test
    base, other = own[0].target, own[1].target
    found = {one.work: one.comparison for one in own if one.comparison}
    usable = {work: one for work, one in found.items() if one.validity not in UNUSABLE}
    text = against_base(own, base).replace(base, "base0")
    for verdict, count, every, factors in _CLAUSE.findall(text):
        assert int(every) == len(found)
        assert int(count) == sum(one.verdict == verdict for one in usable.values())
        said = _TIMES.findall(factors)
        assert len(said) == min(int(count), 2)
        for number, work, interval in said:
            one = usable[work]
            assert one.verdict == verdict
            assert float(number.replace(",", "")) == pytest.approx(numbers.factor_of(one), rel=0.06)
            assert interval == numbers.bounds(one)
    undecided = re.search(r"inconclusive in (\d+) of", text)
    if undecided:
        assert int(undecided[1]) == sum(one.verdict == "undecided" for one in usable.values())
    assert other in text


def test_one_workload_has_one_plain_sentence() -> None:
    found = Comparison("ingest", "run_time", "local", "fuse", 1 / 5.06, 1 / 6.0, 1 / 4.2, 6, "slower")
    own = [
        AskedFigure("ingest", "local", "local.ingest", "run_time", Quantity(1.0, "s"), "VALID"),
        AskedFigure("ingest", "fuse", "fuse.ingest", "run_time", Quantity(5.06, "s"), "VALID", found),
    ]
    assert against_base(own, "local") == "fuse is 5.1x slower than local in ingest (CI 4.2 to 6.0)."


@pytest.mark.parametrize("factor", [1.0, 1.004, 1.0999, 1.1, 1.19, 2.0, 9.99, 57.9, 99.9, 100.4, 12_345.0])
def test_a_factor_is_never_rounded_up(factor: float) -> None:
    number, unit = re.fullmatch(r"([\d.,]+)(x| %)", factor_words(factor)).groups()  # type: ignore[union-attr]
    said = float(number.replace(",", ""))
    assert (said if unit == "x" else 1 + said / 100) <= factor * (1 + 1e-9)


def _measured(name: str, rates: list[float], state: State = "VALID") -> tuple[AskedFigure, CellTable]:
    blocks = {block: Measured({"iops": rate}, {}) for block, rate in enumerate(rates, 1)}
    item = Quantity(math.exp(sum(map(math.log, rates)) / len(rates)), "1/s", blocks=len(rates))
    return AskedFigure("small", name, f"{name}.small", "iops", item, state), CellTable(
        f"{name}.small", (), blocks
    )


def _lead(**rates: list[float]) -> str:
    pairs = [_measured(name, values) for name, values in rates.items()]
    tables = {table.cell: table for _, table in pairs}
    local = frozenset({"local"})
    return leaders_of(find_leaders([one for one, _ in pairs], local, tables, 0.05, 0.05))


def test_the_first_is_named_where_it_is_told_apart_from_every_other() -> None:
    fast = [300.0, 303.0, 299.0, 301.0, 302.0, 300.0]
    slow = [100.0, 101.0, 99.0, 100.0, 101.0, 100.0]
    near = [299.0, 305.0, 300.0, 297.0, 304.0, 299.0]
    said = _lead(fuse=slow, lib=fast)
    assert said.startswith("Best: lib in small (at least 2.")
    assert said.endswith("x ahead).")
    near_too = _lead(fuse=slow, lib=fast, nfs=near)
    assert near_too == (
        "Best, or not significantly different from it, in small: lib in 1, nfs in 1. Never best: fuse."
    )
    assert _lead(lib=fast, nfs=near) == "Which is best is inconclusive in small."


def test_what_this_host_has_itself_is_no_way_to_choose() -> None:
    fast, slow = [300.0, 303.0, 299.0, 301.0], [100.0, 101.0, 99.0, 100.0]
    said = _lead(local=[value * 100 for value in fast], fuse=slow, lib=fast)
    assert "local" not in said


def _undecided(blocks: int, more: MoreBlocks | None = None) -> Comparison:
    return Comparison("small", "iops", "a", "b", 1.1, 0.5, 2.0, blocks, "undecided", more=more)


def test_more_blocks_are_asked_for_where_they_would_tell_something() -> None:
    found = [_undecided(3, MoreBlocks(6, 0.15)), _undecided(3, MoreBlocks(12, 0.9)), _undecided(3)]
    step = wider(found, 60.0)
    assert step is not None
    assert (
        step.text
        == "to detect a difference of 90 % in most inconclusive comparisons: run it with --blocks 15"
    )
    assert step.seconds == pytest.approx(15 * 60)
    hopeless = wider([_undecided(3), _undecided(3), found[0]], 60.0)
    assert hopeless is not None
    assert hopeless.text.startswith("even 24 more blocks would not detect a factor of 3 in most")
    assert hopeless.seconds is None
    assert wider([], 60.0) is None


def test_one_block_is_said_to_have_no_interval() -> None:
    step = wider([_undecided(1)], 10.0)
    assert step is not None
    assert "one block has no confidence interval" in step.text
    assert step.seconds == pytest.approx(60)


def test_of_one_target_only_figures_to_use_are_named() -> None:
    good, _ = _measured("a", [100.0, 102.0])
    bad = replace(good, work="large", state="INVALID", quantity=Quantity(7e9, "1/s"))
    said = figures_alone([good, bad])
    assert said == "a gives 101 IOPS in small. 1 of 2 workloads have no value to use."


def test_a_shared_file_is_held_against_the_same_job_with_a_file_each() -> None:
    alone, shared = cell("a.each", rw="write"), cell("a.one", rw="write", shared="strided")
    reads, elsewhere = (
        cell("a.reads", rw="read", shared="strided"),
        cell("b.one", rw="write", shared="strided"),
    )
    found = JudgedIo().within([alone, shared, reads, elsewhere])
    assert [(base.id, other.id) for base, other in found.pairs] == [("a.each", "a.one")]


def test_copies_are_held_against_the_fewest_of_the_same_program_and_target() -> None:
    cells = [planned("a", 4), planned("a", 1), planned("a", 2), planned("b", 2), planned("a", 8, trace="off")]
    found = JudgedApplication().within(cells)
    assert {(base.id, other.id) for base, other in found.pairs} == {
        ("a.run_1", "a.run_4"),
        ("a.run_1", "a.run_2"),
    }


def test_a_question_is_the_studys_own_or_the_first_that_it_asks_or_its_title() -> None:
    study = load_study("quick", {})
    assert question_of(study) == study.question
    assert question_of(study.model_copy(update={"question": ""})) == "What does this path deliver?"
    silent = study.model_copy(update={"question": "", "about": "Nothing is asked."})
    assert question_of(silent) == "Quick look"


def _against(target: str, verdict: Outcome, state: State) -> AskedFigure:
    found = Comparison("files", "bandwidth", "base", target, 1.0, 0.8, 1.2, 3, verdict, validity=state)
    return AskedFigure("files", target, f"{target}.files", "bandwidth", Quantity(1.0, "B/s"), state, found)


def test_targets_of_which_nothing_is_known_share_a_sentence() -> None:
    own = [_against(name, "undecided", "INVALID") for name in "abcd"]
    own += [_against(name, "undecided", "VALID") for name in "ef"]
    assert against_base(own, "base") == (
        "a, b, c and d are not comparable in files: INVALID or not run."
        " e and f compared with base: inconclusive in files."
    )


def test_where_nothing_can_be_used_the_answer_says_why() -> None:
    """And the next step is what would make it valid."""
    why = Validity("INVALID", (CODES["cached_reads"],))
    bad = replace(typical().cells[0], id="fuse.media", target="fuse", work="media", validity=why)
    plan = Plan("media", "", "", 1, 1, (), (cell("fuse.media"),), (), 1.0, {})
    rest = ((), [bad], {}, (), (), (), "", "local", 0.05, (), ())
    found = JudgedStudy(load_study("media", {}), plan, 1.0, 1, *rest, complete=True)  # type: ignore[arg-type]
    answer = answer_of(found)
    assert answer.text == (
        "No answer: the 1 cell has no value to use. fuse.media is INVALID, Reads came from a cache:"
        " 11.9 GiB delivered, 0.2 GiB came from the device and the wire."
    )
    screen = screen_of(replace(typical(), cells=(bad,), answer=answer))
    assert screen is not None
    assert screen.steps[0].startswith("Reads came from a cache: Read a data set larger than the memory")


@pytest.mark.parametrize(("kind", "blocks"), [("io", True), ("imported", False)])
def test_what_was_imported_is_not_told_to_run_again_with_more_blocks(kind: str, blocks: bool) -> None:
    open_ = [_undecided(1)]
    jobs = SimpleNamespace(kind=kind, swept=None, id="a.x")
    asked = Plan("x", "", "", 1, 1, (), (jobs,), (), 1.0, {})  # type: ignore[arg-type]
    rest = (1.0, 1, (), [], {}, (), (), (), "", "a", 0.05, (), ())
    study = JudgedStudy(load_study("quick", {}), asked, *rest, complete=True)  # type: ignore[arg-type]
    (step,) = _steps(study, open_)
    assert ("--blocks" in step.text) is blocks
