"""The first screen of many sweeps on several targets: a few sentences, and a table of all that fits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from findings_examples import typical
from leadline.analysis.knee import find_knee, measured_sweeps
from leadline.plan.make import Host, make_plan
from leadline.report.first_screen import PrintedScreen, lines_of, screen_of
from leadline.study.study import parse_study
from leadline.study.target import Target, TargetFacts
from leadline.study.yaml_source import read_study
from leadline.verdict.model import Cell, State, Validity
from leadline.verdict.sections.section import StudyAnswer
from leadline.verdict.sweep.detection import PlateauPart, PlateauParts, SweepFound
from leadline.verdict.sweep.messages import sweeps_answer

MIB = 1 << 20
STUDY = """format: leadline.study/1
defaults: {rw: write, size: 64M, time_based: true, runtime: 1s}
works:
  sizes: {sweep: {over: {bs: [64k, 256k, 1M, 4M]}}}
  grid: {sweep: {over: {bs: [256k, 1M, 4M], iodepth: [1, 2, 4, 8]}}}
  depth: {bs: 1M, sweep: {over: {iodepth: [1, 2, 4, 8, 16]}}}
"""
RATES = {"fuse": 50 * MIB, "library": 900 * MIB, "striper": 200 * MIB, "kernel": 400 * MIB}
NOTHING_SEEN = PlateauParts()
FULL_AT = MIB  # bytes in flight


def found_of(
    rates: Mapping[str, float],
    invalid: Sequence[tuple[str, str]] = (),
    parts: PlateauParts = NOTHING_SEEN,
) -> list[SweepFound]:
    """All cells of all sweeps measured in three blocks: a rate that is full at a mebibyte in flight."""
    facts = {name: TargetFacts("local", "ext4", "ext4", "/x", free_bytes=1 << 40) for name in rates}
    targets = {name: Target(name, f"/{name}") for name in rates}
    plan = make_plan(parse_study(read_study(STUDY, "my.yaml", {}), "my"), targets, facts, Host(16 << 30), 1)
    found = []
    for one in measured_sweeps(plan, {}):
        state: State = "INVALID" if (one.name, one.target) in invalid else "VALID"
        tried = {
            place: Cell(cell.id, one.target, cell.work, {}, {}, {}, Validity(state, ()))
            for place, cell in one.cells.items()
        }
        known = {
            place: {block: rates[one.target] * _full(cell.job) * (1 + 0.001 * block) for block in (1, 2, 3)}
            for place, cell in one.cells.items()
        }
        measured = replace(one, rates=known)
        unusable = frozenset(tried) if state == "INVALID" else frozenset()
        knee = None if unusable else find_knee(one.grid, known)
        found.append(SweepFound(measured, knee, 3 * len(tried), tried, unusable, parts))
    return found


def _full(job: object) -> float:
    amount: int = job.bs * job.iodepth  # type: ignore[attr-defined]
    return min(1.0, amount / FULL_AT)


def screen(found: Sequence[SweepFound], width: int) -> tuple[PrintedScreen, list[str]]:
    answer = sweeps_answer(found)
    shown = replace(typical(), answer=StudyAnswer("How much is enough?", answer.text, matrix=answer.matrix))
    printed = screen_of(shown, width)
    assert printed is not None
    return printed, [text for text, _ in lines_of(printed, width)]


@pytest.fixture(scope="module")
def four() -> list[SweepFound]:
    return found_of(RATES)


def test_the_answer_of_many_sweeps_is_a_few_sentences_and_leads(four: list[SweepFound]) -> None:
    answer = sweeps_answer(four)
    assert answer.leads
    assert answer.text.count(". ") <= 3
    first = answer.text.partition(". ")[0]
    places = [first.index(name) for name in ("library", "kernel", "striper", "fuse")]
    assert places == sorted(places), "the highest first"
    assert "Bottleneck of library there: unknown" in answer.text
    assert "Enough for 95 % in grid (bs x iodepth): fuse " in answer.text
    assert answer.text.count("not sure") <= 2


@pytest.mark.parametrize("width", [80, 100])
def test_the_table_has_all_sweeps_and_targets(four: list[SweepFound], width: int) -> None:
    printed, lines = screen(four, width)
    assert max(map(len, lines)) <= width
    assert printed.table is not None
    assert not printed.table.cut
    # Three sweeps on four targets: the fewer stand across.
    assert printed.table.headings == ("target", "sizes", "grid", "depth")
    assert [row[0] for row in printed.table.rows] == list(RATES)
    assert "in MiB/s" in printed.table.notes[0]
    sizes = {row[0]: row[1] for row in printed.table.rows}
    for name, rate in RATES.items():
        level, _, plateau = sizes[name].removesuffix("?").partition(": ")
        assert level == "1 MiB"
        assert float(plateau) == pytest.approx(rate / MIB, rel=0.05)


def test_fewer_targets_than_sweeps_are_the_columns() -> None:
    printed, _ = screen(found_of({"fuse": 50 * MIB, "library": 90 * MIB}), 100)
    assert printed.table is not None
    assert printed.table.headings == ("sweep", "fuse", "library")
    assert [row[0] for row in printed.table.rows] == ["sizes", "grid", "depth"]


def test_a_sweep_whose_cells_are_invalid_says_so_and_no_figure() -> None:
    found = found_of(RATES, invalid=[("grid", "fuse"), ("depth", "kernel")])
    printed, _ = screen(found, 100)
    assert printed.table is not None
    rows = {row[0]: row[1:] for row in printed.table.rows}
    assert rows["fuse"][1] == rows["kernel"][2] == "INVALID"
    assert "INVALID" not in rows["fuse"][0]
    assert "No usable value: grid on fuse, depth on kernel." in sweeps_answer(found).text


def test_what_bounds_the_highest_is_named() -> None:
    port = PlateauPart("port up", 0.98, "port up 98 % of 1 GiB/s")
    text = sweeps_answer(found_of(RATES, parts=PlateauParts((port,)))).text
    assert "Bottleneck of library there: port up 98 % of 1 GiB/s." in text


def test_a_rate_that_still_rises_is_no_knee(four: list[SweepFound]) -> None:
    rising = [replace(one, knee=replace(one.knee, rising=True)) for one in four if one.knee]
    printed, _ = screen(rising, 100)
    text = sweeps_answer(rising).text
    assert printed.table is not None
    assert all(entry.startswith("> ") for row in printed.table.rows for entry in row[1:])
    assert "still rising at" in text
    assert "fuse more than 4 MiB x 8" in text
    assert "not sure" not in text


def test_few_sweeps_keep_a_sentence_and_a_row_each() -> None:
    answer = sweeps_answer(found_of({"fuse": 50 * MIB}))
    assert not answer.leads
    assert answer.text.count(" on fuse: ") == 3
    assert answer.matrix is not None
    assert len(answer.matrix.rows) == 3
