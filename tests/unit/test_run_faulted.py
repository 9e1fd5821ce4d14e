"""Which trials ran under which faults, and what of them the journal has: whatever clocks and files do."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from builders import manifest, trial_row

from leadline import faults
from leadline.errors import TargetError
from leadline.run import faulted
from leadline.run.faulted import FaultWatch
from leadline.store.tables import TrialRow
from leadline.store.writer import ResultWriter, create_result
from leadline.verdict.degraded import faults_of

S = 1_000_000_000


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[ResultWriter]:
    found = create_result(tmp_path / "r", manifest(), time.time_ns)
    found.journal("run_started")
    yield found
    found.close()


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    place = tmp_path / "lab"
    place.mkdir()
    return place


def marks(row: TrialRow) -> list[tuple[str, bool]]:
    return [(one["id"], one["whole"]) for one in json.loads(row.faults or "null")]


def journalled(writer: ResultWriter) -> list[str]:
    return [event.event for event in writer.events()][1:]


def test_without_a_lab_nothing_is_looked_at_nor_said(writer: ResultWriter) -> None:
    watch = FaultWatch((), writer, under_fault=False)
    [row] = watch.marked([trial_row()], watch.look())
    assert (row.faults, row.under_fault) == (None, None)


@pytest.mark.parametrize("off_s", [-86_400, 86_400])
def test_a_fault_that_was_there_before_and_after_was_so_meanwhile_whatever_the_clocks_say(
    writer: ResultWriter, lab: Path, off_s: int
) -> None:
    faults.begin(lab, "1", "clock-off", "client1", "clock off by a day")
    watch = FaultWatch((str(lab),), writer, under_fault=True)
    before = watch.look()
    [row] = watch.marked([trial_row(started_unix_ns=time.time_ns() + off_s * S)], before)
    assert marks(row) == [("1", True)]


def test_only_what_a_trial_and_its_ramp_met_is_its_own(writer: ResultWriter, lab: Path) -> None:
    watch = FaultWatch((str(lab),), writer, under_fault=False)
    before = watch.look()
    faults.begin(lab, "1", "k", "on", "words")
    faults.end(lab, "1")
    (fault,) = faults.read(lab)
    begun_ns = round(fault.began_unix_s * S)
    times = {"ramp_ns": 10 * S, "measured_ns": 2 * S}
    rows = [trial_row(started_unix_ns=begun_ns + shift_s * S, **times) for shift_s in (-13, -5, 5)]
    assert [marks(row) for row in watch.marked(rows, before)] == [[], [("1", False)], []]


def test_a_trial_whose_worker_was_lost_is_marked_by_the_time_between_the_looks(
    writer: ResultWriter, lab: Path
) -> None:
    watch = FaultWatch((str(lab),), writer, under_fault=False)
    before = watch.look()
    faults.begin(lab, "1", "k", "on", "words")
    [row] = watch.marked([trial_row(started_unix_ns=0, measured_ns=0)], before)
    assert marks(row) == [("1", False)]


def test_a_fault_of_each_of_two_labs_is_said_once_by_all_that_look(
    writer: ResultWriter, lab: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    for place in (lab, other):
        faults.begin(place, "1", "k", "on", f"words of {place.name}")
    for _ in range(2):  # the second is a run that goes on
        watch = FaultWatch((str(lab), str(other)), writer, under_fault=False)
        watch.look()
        watch.look()
    faults.end(lab, "1")
    watch.look()
    assert journalled(writer) == [faults.BEGAN, faults.BEGAN, faults.ENDED]


def test_a_row_of_an_older_result_has_no_fault() -> None:
    assert faults_of(trial_row()) == ()


@pytest.mark.parametrize("text", ["[1]", '[{"id": "1"}]', '[{"id": 1, "kind": "", "on": "", "words": ""}]'])
def test_a_forged_row_is_an_error_that_readers_name(text: str) -> None:
    with pytest.raises((KeyError, TypeError, ValueError)):
        faults_of(trial_row(faults=text))


def test_the_first_fault_of_a_lab_that_is_made_anew_is_another(writer: ResultWriter, lab: Path) -> None:
    watch = FaultWatch((str(lab),), writer, under_fault=False)
    for _ in range(2):
        faults.begin(lab, "1", "k", "on", "words")
        watch.look()
        (lab / faults.FILE).unlink()
    assert journalled(writer) == [faults.BEGAN, faults.BEGAN]


def test_a_lab_that_does_not_answer_is_asked_once_and_nothing_is_claimed_of_its_faults(
    writer: ResultWriter, lab: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def hang(labs: object) -> None:
        asked.append(labs)
        raise TargetError("no answer within 5 s", "")

    monkeypatch.setattr(faulted, "read_faults", hang)
    watch = FaultWatch((str(lab),), writer, under_fault=False)
    rows = [watch.marked([trial_row()], watch.look())[0] for _ in range(3)]
    assert len(asked) == 1
    assert {row.faults for row in rows} == {None}
    assert {json.loads(row.reasons)["faults"] for row in rows} == {"no answer within 5 s"}
    assert journalled(writer) == [faults.UNKNOWN]


def test_a_file_that_can_be_read_again_is(writer: ResultWriter, lab: Path) -> None:
    (lab / faults.FILE).mkdir()
    watch = FaultWatch((str(lab),), writer, under_fault=False)
    [unknown] = watch.marked([trial_row()], watch.look())
    (lab / faults.FILE).rmdir()
    faults.begin(lab, "1", "k", "on", "words")
    [known] = watch.marked([trial_row(started_unix_ns=time.time_ns())], watch.look())
    assert (unknown.faults, marks(known)) == (None, [("1", True)])
