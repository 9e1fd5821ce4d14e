"""Coherence: pairs of targets in a plan, lags with medians and intervals, and what may be relied on."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from builders import trial_row

from leadline.errors import SpecError
from leadline.plan.make import Host, make_plan
from leadline.plan.model import Plan, PlannedCell
from leadline.store.tables import TrialRow
from leadline.study.library import load_study
from leadline.study.target import Target, TargetFacts
from leadline.verdict.model import Cell, Validity
from leadline.workloads.coherence.job import QUESTIONS, WORDS, CoherenceJob
from leadline.workloads.coherence.judge import JudgedCoherence, coherence_answer, seen_word
from leadline.workloads.coherence.messages import (
    Lag,
    WriterReader,
    coherence_metrics,
    coherence_statements,
    coherence_tables,
    lag_of,
)
from leadline.workloads.coherence.side import CoherenceSide, NotPossibleError, PathWay, VolumeWay, content

MS_NS = 1_000_000
PROMPT = {"lags_ns": [2 * MS_NS] * 3, "unseen": 0}
STALE = {"lags_ns": [], "unseen": 1}


def _job(**changes: Any) -> CoherenceJob:
    values: dict[str, Any] = {
        "questions": QUESTIONS,
        "reader": "b",
        "repetitions": 3,
        "give_up_ns": 30_000_000_000,
        "poll_ns": MS_NS,
        "file_bytes": 100,
        "shared_block_bytes": 10,
        "shared_blocks": 4,
    }
    return CoherenceJob(**{**values, **changes})


def _trial(answers: dict[str, Any], block: int = 1) -> TrialRow:
    return trial_row(
        block=block, job=json.dumps(_job().as_json()), summary=json.dumps({"coherence": answers})
    )


def _pair(answers: dict[str, Any], writer: str = "a") -> WriterReader:
    cell = Cell(f"{writer}.coherence_to_b", writer, "coherence_to_b", {}, {}, {}, Validity("VALID"))
    asked = tuple(name for name in QUESTIONS if name in answers)
    return WriterReader(writer, _job(questions=asked), cell, (_trial(answers),))


def _said(answers: dict[str, Any]) -> list[str]:
    return [one.text for one in coherence_statements([_pair(answers)], ())]


def test_every_question_has_words() -> None:
    assert set(WORDS) == set(QUESTIONS)


def test_a_plan_has_a_cell_for_every_writer_and_reader() -> None:
    facts = TargetFacts("local", "ext4", "ext4 on vda", free_bytes=1 << 40)
    targets = {name: Target(name, f"/{name}") for name in ("a", "b")}
    plan = make_plan(
        load_study("coherence", {}, ()), targets, dict.fromkeys(targets, facts), Host(1 << 30), 1
    )
    assert [cell.id for cell in plan.cells] == [
        "a.coherence_to_a",
        "a.coherence_to_b",
        "b.coherence_to_a",
        "b.coherence_to_b",
    ]
    readers = [cell.job.reader for cell in plan.cells if isinstance(cell.job, CoherenceJob)]
    assert readers == ["a", "b", "a", "b"]
    assert Plan.from_json(json.loads(json.dumps(plan.as_json()))) == plan


def test_only_targets_that_may_share_a_directory_are_paired() -> None:
    """Of a lab it is known which ways lead to the same files; what nobody else can look at is said once."""
    facts = TargetFacts("local", "ext4", "ext4 on vda", free_bytes=1 << 40)
    shared = {"mount": "cephfs", "library": "cephfs", "disk": "disk", "other": None}
    targets = {name: Target(name, f"/{name}", one) for name, one in shared.items()}
    plan = make_plan(
        load_study("coherence", {}, ()), targets, dict.fromkeys(targets, facts), Host(1 << 30), 1
    )
    pairs = {(cell.target, cell.job.reader) for cell in plan.cells if isinstance(cell.job, CoherenceJob)}
    assert pairs >= {("mount", "library"), ("library", "mount"), ("mount", "mount"), ("mount", "other")}
    assert not {("mount", "disk"), ("disk", "mount"), ("library", "disk")} & pairs
    assert Plan.from_json(json.loads(json.dumps(plan.as_json()))) == plan
    del targets["other"]
    alone = make_plan(
        load_study("coherence", {}, ()), targets, dict.fromkeys(targets, facts), Host(1 << 30), 1
    )
    assert "disk" not in {cell.target for cell in alone.cells}
    (left,) = alone.left_out
    assert (left.target, left.reason) == ("disk", "no other target of this run leads to the same files")


def test_what_a_writer_cannot_do_is_said_before_a_reader_waits_for_it() -> None:
    """A reader would look until it gave up, thirty seconds for each such question."""
    way = object.__new__(VolumeWay)
    for question in ("size_written", "bytes_written", "link"):
        side = CoherenceSide(print)
        side._way = way
        with pytest.raises(NotPossibleError):
            side.commands["coherence_prepare"]({"question": question, "name": "f", "file_bytes": 10})


def test_a_trial_says_in_a_line_what_was_seen_and_what_never_was() -> None:
    answers = {"name": PROMPT, "bytes_held": STALE, "link": {"reason": "the writer: no hard link"}}
    said = JudgedCoherence().progress(_trial(answers))
    assert said == (
        "2 of 12 questions could be asked; the slowest seen after 2.00 ms: a new file's name;"
        " not in 30 s: its bytes, closed, by a reader that had it open"
    )


def test_the_matrix_has_a_word_for_each_pair() -> None:
    prompt = _pair({"name": PROMPT, "rename": PROMPT})
    late = _pair({"name": {"lags_ns": [2_500 * MS_NS], "unseen": 0}, "bytes_held": STALE}, "c")
    matrix = coherence_tables([prompt, late])[0]
    assert matrix.name == "coherence_matrix"
    assert {row.keys[1]: row.values[0].text for row in matrix.rows} == {
        "a": "at once",
        "c": "never: 1, up to 2.50 s",
    }


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("workloads.coherence.rw=read", "means nothing with questions"),
        ("workloads.coherence.questions=[name,name]", "given twice"),
        ("workloads.coherence.questions=[nmae]", "name"),
        ("workloads.coherence.give_up=0s", "no time"),
    ],
)
def test_contradictions_are_refused(change: str, words: str) -> None:
    with pytest.raises(SpecError, match=words):
        load_study("coherence", {}, (change,))


def test_options_of_coherence_mean_nothing_elsewhere() -> None:
    with pytest.raises(SpecError, match="means nothing without questions"):
        load_study("quick", {}, ("workloads.seqread_1m.give_up=1s",))


# -- figures -------------------------------------------------------------------------------------------


def test_median_and_worst_are_over_all_repetitions_of_all_trials() -> None:
    trials = [
        _trial({"name": {"lags_ns": [1, 5], "unseen": 0}}),
        _trial({"name": {"lags_ns": [3], "unseen": 0}}),
    ]
    lag = lag_of(trials, "name")
    assert (lag.median_ns, lag.worst_ns, lag.trials) == (3, 5, 2)


def test_what_was_not_seen_is_longer_than_any_number_and_has_none() -> None:
    assert Lag((1, 2), 1, 1, None).median_ns == 2
    assert Lag((1, 2), 1, 1, None).worst_ns is None
    assert Lag((), 1, 1, None).median_ns is None
    values, reasons = coherence_metrics(_trial({"name": STALE, "rename": PROMPT}))
    assert values == {"seen_rename": 2.0 * MS_NS}
    assert reasons["seen_name"] == "not within 30 s"


def test_the_medians_interval_needs_six_values_and_holds_the_middle_ones() -> None:
    assert Lag((1, 2, 3, 4, 5), 0, 1, None).median_interval_ns() == (None, None)
    assert Lag((1, 2, 3, 4, 5, 6), 0, 1, None).median_interval_ns() == (1, 6)
    # Twenty values: from the sixth to the fifteenth, as tables of the sign test have it.
    assert Lag(tuple(range(1, 21)), 0, 1, None).median_interval_ns() == (6, 15)


def test_tables_are_writer_by_reader_with_words_where_there_is_no_number() -> None:
    answers = {
        "name": PROMPT,
        "bytes_held": STALE,
        "lock_flock": {"honoured": 0, "asked": 3},
        "shared_file": {"bytes_per_s": [1e6, 2e6], "wrong": [0, 0], "blocks": 16},
        "link": {"reason": "the writer: Function not implemented"},
    }
    _, medians, worst = coherence_tables([_pair(answers), _pair({"name": PROMPT}, "c")])
    rows = {row.keys: row.values[0] for row in medians.rows}
    assert medians.columns == ("seen by b",)
    assert rows["a new file's name", "a"].value == 2 * MS_NS
    assert rows["its bytes, closed, by a reader that had it open", "a"].text == "not in 30 s"
    assert rows["a lock by flock", "a"].text == "ignored"
    assert rows["two writers in one file, bytes intact", "a"].text == "intact"
    assert rows["a hard link's stat", "a"].reason == "the writer: Function not implemented"
    assert ("a new file's name", "c") in rows
    assert ("an unlink", "a") not in rows
    assert worst.rows[0].values[0].value == 2 * MS_NS


# -- words ---------------------------------------------------------------------------------------------


def test_everything_at_once_is_said_so() -> None:
    assert _said({"name": PROMPT, "bytes_closed": PROMPT}) == ["a to b: everything is seen at once."]


def test_a_reader_that_must_open_anew_is_told_close_to_open_only() -> None:
    (said,) = _said({"name": PROMPT, "bytes_written": STALE, "bytes_closed": PROMPT, "bytes_held": STALE})
    assert "close-to-open only" in said


def test_what_is_never_or_late_seen_is_named_with_its_time() -> None:
    late = {"lags_ns": [4_000 * MS_NS], "unseen": 0}
    (said,) = _said({"name": PROMPT, "size_closed": STALE, "rename": late})
    assert "never within 30 s: its size, closed" in said
    assert "late, up to 4.00 s: a rename" in said
    assert "at once: a new file's name" in said


def test_locks_that_are_ignored_and_bytes_that_are_lost_are_said() -> None:
    lost = {"bytes_per_s": [1e6], "wrong": [2, 3], "blocks": 8}
    said = _said({"lock_fcntl": {"honoured": 0, "asked": 3}, "shared_file": lost})
    assert "a to b: locks by fcntl are not honoured (ignored)." in said
    assert "a to b: two writers in one file lose bytes of each other (3 of 8 lost)." in said


def test_pairs_of_which_the_same_is_true_share_a_sentence() -> None:
    pairs = [_pair({"name": PROMPT}), _pair({"name": PROMPT}, "c")]
    (said,) = coherence_statements(pairs, ())
    assert said.text.startswith("a to b, c to b: ")


# -- the ways ------------------------------------------------------------------------------------------


def test_generations_of_a_file_differ_in_every_line_and_have_the_size_asked() -> None:
    first, second = content(100, 1), content(100, 2)
    assert len(first) == len(second) == 100
    assert first[:13] != second[:13]


def test_a_path_answers_none_for_what_is_not_there_and_keeps_a_lock_until_it_is_released(
    tmp_path: Any,
) -> None:
    one, other = PathWay(str(tmp_path)), PathWay(str(tmp_path))
    assert one.size("x") is None
    assert one.read("x") is None
    one.create("x", b"abc")
    assert other.read("x") == b"abc"
    assert one.lock("x", "lock_flock")
    assert not other.lock("x", "lock_flock")
    one.release()
    assert other.lock("x", "lock_flock")
    other.release()


def test_a_cell_of_coherence_is_planned_without_a_layout() -> None:
    cell = PlannedCell("a.c_to_b", "a", "c_to_b", {}, _job(), None, 1.0)
    assert cell.job.data_set_bytes > 0


# -- the first screen ----------------------------------------------------------------------------------

SLOW = {"lags_ns": [2 * MS_NS, 3_000 * MS_NS], "unseen": 0}
KEPT = {"asked": 2, "honoured": 2}
IGNORED = {"asked": 2, "honoured": 0}


@pytest.mark.parametrize(
    ("answers", "word"),
    [
        ({"name": PROMPT, "bytes_closed": PROMPT}, "at once"),
        ({"name": PROMPT, "bytes_closed": PROMPT, "bytes_written": STALE}, "after close"),
        ({"name": PROMPT, "bytes_closed": STALE, "bytes_written": STALE}, "never"),
        ({"name": SLOW, "bytes_closed": PROMPT}, "in 3.00 s"),
        ({"lock_flock": KEPT}, None),
    ],
)
def test_what_is_seen_is_the_worst_of_what_was_asked(answers: dict[str, Any], word: str | None) -> None:
    assert seen_word(_pair(answers)) == word


def test_the_answer_counts_pairs_and_has_a_word_for_each() -> None:
    good = _pair({"name": PROMPT, "bytes_closed": PROMPT, "lock_fcntl": KEPT})
    bad = _pair({"name": STALE, "bytes_closed": PROMPT, "lock_fcntl": IGNORED}, "c")
    lost = replace(_pair({"name": PROMPT}, "d"), trials=())
    found = coherence_answer([good, bad, lost])
    assert "Of 2 pairs of ways, 1 see everything at once, 1 some things never" in found.text
    assert "1 of 2 asked honour locks by fcntl" in found.text
    assert "1 of 3 pairs gave no answer" in found.text
    assert found.matrix is not None
    words = {row.keys: row.values[0].text for row in found.matrix.rows}
    assert words["seen", "a"] == "at once"
    assert words["seen", "c"] == "never"
    assert words["lock, fcntl", "a"] == "kept"
    assert words["lock, fcntl", "c"] == "not kept"
    assert ("seen", "d") not in words
