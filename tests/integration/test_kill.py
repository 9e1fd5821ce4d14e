"""`kill -9` at every event of the journal and at random moments: nothing twice, missing or left."""

from __future__ import annotations

import random
import signal
import subprocess
import time
from pathlib import Path

import pytest

from leadline.store.journal import read_journal
from leadline.store.making import leftovers
from leadline.store.reader import open_result
from measured import CACHED, assert_killed_or_went_on, assert_measured
from support import Command, Start
from whole import assert_complete, wait_until_workers_are_gone

KILLS_EACH = 6
LONGEST_S = 1.6  # about as long as the study takes with its start
# What an undisturbed run of one block of the study writes, in this order.
EVENTS = (
    "self_measured",
    "run_started",
    "workspace_intended",
    "layout_finished",
    *("trial_started", "trial_finished") * 2,
    "workspace_removed",
    "study_finished",
)


def new_run(study: Path, target: Path, out: Path, blocks: int) -> tuple[str, ...]:
    words = ("run", str(study), "--target", f"a={target}", "--out", str(out), "--quiet")
    return (*words, "--blocks", str(blocks), "--seed", "1")


def test_the_events_of_a_run_are_those_at_which_it_is_killed(
    leadline: Command, study: Path, target: Path, tmp_path: Path
) -> None:
    done = leadline(*new_run(study, target, tmp_path / "r", 1))
    assert_measured(done, tmp_path / "r", CACHED)
    events = [event.event for event in read_journal(tmp_path / "r" / "events.jsonl")]
    assert events == list(EVENTS)


@pytest.mark.parametrize("number", range(1, len(EVENTS) + 1))
def test_a_result_is_whole_after_a_kill_at_this_event_and_one_of_the_resumed_run(
    leadline: Command, study: Path, target: Path, tmp_path: Path, number: int
) -> None:
    """The event is on disk and nothing follows; then what it announces is done and no event follows."""
    out = tmp_path / "r"
    new, resume = new_run(study, target, out, 1), ("run", "--resume", str(out), "--quiet")
    assert leadline(*new, dies=("after", number)).returncode == -signal.SIGKILL
    wait_until_workers_are_gone(out)
    assert len(read_journal(out / "events.jsonl")) == number
    # Where there is little left to run, the resumed process ends before it has written as many.
    assert_killed_or_went_on(leadline(*resume, dies=("before", number)), out, CACHED)
    wait_until_workers_are_gone(out)
    assert_whole(leadline(*resume), out, target, trials=2)


@pytest.mark.parametrize("seed", [7])
def test_a_result_is_whole_after_any_number_of_kills(
    leadline: Command, start: Start, study: Path, target: Path, tmp_path: Path, seed: int
) -> None:
    """Six random moments; each resumed run is killed again, until the last may end."""
    moment = random.Random(seed)  # noqa: S311 - moments, not secrets
    out = tmp_path / "r"
    new = new_run(study, target, out, 3)
    for _ in range(KILLS_EACH):
        words = ("run", "--resume", str(out), "--quiet") if out.exists() else new
        process = start(*words)
        time.sleep(moment.uniform(0, LONGEST_S))  # the random moment itself
        process.kill()
        process.wait()
        if out.exists():
            wait_until_workers_are_gone(out)
    last = leadline(*(("run", "--resume", str(out)) if out.exists() else new))
    assert_whole(last, out, target, trials=6, stale=True)


def assert_whole(
    last: subprocess.CompletedProcess[str], out: Path, target: Path, trials: int, *, stale: bool = False
) -> None:
    """The result, the target and what lies beside them."""
    assert_complete(last, out, CACHED)
    assert [trial.trial for trial in open_result(out).trials()] == [
        f"t{number:04d}" for number in range(1, trials + 1)
    ]
    assert list(target.iterdir()) == []
    beside = {path.name for path in out.parent.iterdir()} - {"r", "target", "small.yaml"}
    # Killed in the one line between a directory and its mark: it stays, and is named.
    assert beside == (
        {left.path.name for left in leftovers(out.parent) if not left.certain} if stale else set()
    )
