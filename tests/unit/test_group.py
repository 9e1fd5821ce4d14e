"""Jobs that run together: the first failure ends the others, and rows say what belongs to all of them."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest
from builders import trial_row

from leadline.run.child import Answer
from leadline.run.group import Halt, join_rows, run_together
from leadline.store.files import JOURNAL
from leadline.store.journal import Journal, read_journal
from leadline.store.reader import finished_trials

DONE = Answer("done", value={"state": "complete"})


def waits_for(halt: Halt) -> Answer:
    """A job that goes on until it is told to end, as an engine does on SIGINT."""
    for _ in range(2000):
        if halt():
            return Answer("done", value={"state": "interrupted"})
        threading.Event().wait(0.005)
    raise AssertionError("nobody ended it")


def test_the_first_job_to_fail_ends_the_others() -> None:
    halt = Halt(lambda: False)
    found = run_together([lambda: Answer("failed", message="no space"), lambda: waits_for(halt)], halt)
    assert [answer.outcome for answer in found] == ["failed", "done"]
    assert found[1].value["state"] == "interrupted"
    halt.clear()
    assert not halt()


def test_a_stop_request_ends_all_of_them() -> None:
    halt = Halt(lambda: True)
    found = run_together([lambda: waits_for(halt)] * 3, halt)
    assert {answer.value["state"] for answer in found} == {"interrupted"}


def test_an_exception_in_one_job_ends_the_others_too() -> None:
    halt = Halt(lambda: False)

    def breaks() -> Answer:
        raise RuntimeError("defect")

    with pytest.raises(RuntimeError, match="defect"):
        run_together([breaks, lambda: waits_for(halt)], halt)


def rows(**second: Any) -> list[Any]:
    first = trial_row(
        trial="t0001", cell="a.both.x", group="a.both", started_unix_ns=1000, total_read_bytes=7
    )
    other = {"trial": "t0002", "cell": "a.both.y", "group": "a.both", "started_unix_ns": 4000, **second}
    return [first, trial_row(**other)]


def test_rows_carry_the_skew_and_what_all_jobs_moved() -> None:
    for row in join_rows(rows(total_read_bytes=5, total_write_bytes=2)):
        assert (row.start_skew_ns, row.group_read_bytes, row.group_written_bytes) == (3000, 12, 2)
        assert "all 2 jobs of a.both" in json.loads(row.reasons)["group"]


def test_a_job_whose_neighbour_failed_is_no_measurement() -> None:
    good, bad = join_rows(rows(state="hung", error="stuck", started_unix_ns=0))
    assert (good.state, bad.state) == ("error", "hung")
    assert "a.both.y, which ran with it, did not end: stuck" in str(good.error)
    assert good.start_skew_ns is None


def test_a_single_row_is_left_alone() -> None:
    assert join_rows(rows()[:1]) == rows()[:1]


def test_the_trials_of_a_group_count_all_together(tmp_path: Any) -> None:
    for table in ("trials", "latency", "series"):
        (tmp_path / table).mkdir()
        for trial in ("t0001", "t0002", "t0003"):
            (tmp_path / table / f"{trial}.parquet").touch()
    journal = Journal(tmp_path / JOURNAL, lambda: 1)
    journal.append("trial_finished", trial="t0003")
    line = json.dumps({"t_ns": 1, "event": "trials_finished", "trials": {"t0001": "complete"}})
    with (tmp_path / JOURNAL).open("a") as file:
        file.write(line[:-3])  # torn by a crash: neither counts
    assert finished_trials(tmp_path, read_journal(tmp_path / JOURNAL)) == {"t0003"}
    journal.append("trials_finished", trials={"t0001": "complete", "t0002": "error"})
    assert finished_trials(tmp_path, read_journal(tmp_path / JOURNAL)) == {"t0001", "t0002", "t0003"}
