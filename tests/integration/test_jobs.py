"""Several jobs in one trial, on a real directory: whole or not at all, whatever happens to one of them."""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import subprocess
import time
from collections import Counter
from functools import partial
from pathlib import Path

import pytest

from leadline.store.journal import read_journal
from leadline.store.reader import open_result
from measured import BRIEF, CACHED, assert_killed_or_went_on, assert_measured, assert_went_on
from provoking import wait_until
from support import Command, Start, show

KILLS_EACH = 4
LONGEST_S = 2.0


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """Each job alone, both together, and two jobs in sequence; one of them writes fresh files."""
    path = tmp_path / "both.yaml"
    path.write_text(
        "format: leadline.study/1\n"
        "blocks: 2\n"
        "limits: {reserve: 1M}\n"
        "defaults: {size: 4M, runtime: 300ms, time_based: true, engine: psync, direct: false}\n"
        "works:\n"
        "  small: &small {rw: randread, bs: 4k}\n"
        "  both:\n"
        "    jobs:\n"
        "      stream: {rw: write, bs: 64k}\n"
        "      small: *small\n"
        "  after:\n"
        "    order: sequence\n"
        "    jobs:\n"
        "      fill: {rw: write, bs: 64k, time_based: false}\n"
        "      small: *small\n"
    )
    return path


def test_each_job_is_a_cell_and_the_neighbour_is_compared(
    leadline: Command, study: Path, target: Path, tmp_path: Path
) -> None:
    done = leadline("run", str(study), "--target", f"a={target}", "--out", str(tmp_path / "r"))
    assert_measured(done, tmp_path / "r", CACHED, BRIEF)
    assert list(target.iterdir()) == []
    trials = {(t.cell, t.block): t for t in open_result(tmp_path / "r").trials()}
    cells = ("a.small", "a.both.stream", "a.both.small", "a.after.fill", "a.after.small")
    assert set(trials) == {(cell, block) for cell in cells for block in (1, 2)}
    for block in (1, 2):
        pair = [trials["a.both.stream", block], trials["a.both.small", block]]
        moved = sum(t.total_write_bytes for t in pair), sum(t.total_read_bytes for t in pair)
        begun = [t.started_unix_ns for t in pair]
        for trial in pair:
            assert (trial.group_written_bytes, trial.group_read_bytes) == moved
            assert trial.start_skew_ns == max(begun) - min(begun)
        overlap_ns = min(b + t.last_done_ns for b, t in zip(begun, pair, strict=True)) - max(begun)
        assert overlap_ns > 0
        first, second = trials["a.after.fill", block], trials["a.after.small", block]
        assert second.started_unix_ns >= first.started_unix_ns + first.last_done_ns
        assert (first.group_read_bytes, first.start_skew_ns) == (None, None)
    shown = show(leadline, tmp_path / "r")
    assert {(c["base"], c["other"]) for c in shown["comparisons"]} == {("a.small", "a.both.small")}
    for form in ("html", "md", "csv", "json", "fio"):
        made = leadline("report", str(tmp_path / "r"), "--format", form)
        assert made.returncode == 0, made.stderr
        assert "both.small" in made.stdout


def test_when_one_job_fails_the_others_are_ended_and_none_counts(
    leadline: Command, study: Path, target: Path, tmp_path: Path
) -> None:
    def small_files_only() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (8 << 20, 8 << 20))

    done = leadline(
        *("run", str(study), "--target", f"a={target}", "--out", str(tmp_path / "r"), "--blocks", "1"),
        *("--set", "runtime=20s", "--set", "works.both.jobs.stream.size=64M"),
        *("--set", "works.small.runtime=300ms", "--set", "works.after.runtime=300ms"),
        *("--set", "works.after.jobs.small.runtime=300ms"),
        preexec_fn=small_files_only,
        timeout=60,
    )
    assert done.returncode == 3, done.stderr
    trials = {t.cell: t for t in open_result(tmp_path / "r").trials()}
    assert {c: t.state for c, t in trials.items() if c.startswith("a.both")} == {
        "a.both.stream": "error",
        "a.both.small": "error",
    }
    assert "a.both.stream, which ran with it, did not end" in str(trials["a.both.small"].error)
    assert trials["a.both.small"].last_done_ns < 20 * 10**9
    assert trials["a.small"].state == trials["a.after.small"].state == "complete"
    assert list(target.iterdir()) == []


@pytest.mark.parametrize("begun", [True, False], ids=["while it runs", "before it is open"])
def test_a_hung_job_makes_its_group_invalid_and_the_target_is_left_alone(
    leadline: Command, start: Start, study: Path, target: Path, tmp_path: Path, begun: bool
) -> None:
    out = tmp_path / "r"
    process = start(
        *("run", str(study), "--target", f"a={target}", "--out", str(out), "--grace", "1s"),
        *("--blocks", "1", "--set", "works.both.runtime=3s"),
    )
    _, worker = wait_for_worker(out, "a.both.stream")
    if begun:
        wait_until(partial(is_written_to, target))
    os.kill(worker, signal.SIGSTOP)
    _, errors = process.communicate(timeout=90)
    assert process.returncode == 3, errors
    states = {t.cell: t.state for t in open_result(out).trials() if t.cell.startswith("a.both")}
    assert states == {"a.both.stream": "hung", "a.both.small": "error"}
    assert str(worker) in errors
    shown = show(leadline, out)
    verdicts = {c["id"]: c["validity"]["state"] for c in shown["cells"]}
    assert verdicts["a.both.stream"] == verdicts["a.both.small"] == "INVALID"
    assert leadline("undo", str(out)).returncode == 0
    assert list(target.iterdir()) == []


def is_written_to(target: Path) -> bool:
    """Whether the file that the stream makes has bytes: its engine is past the common start."""
    return any(path.stat().st_size for path in target.rglob("*-fresh-*"))


def wait_for_worker(out: Path, cell: str, seconds: float = 30) -> tuple[str, int]:
    """The trial and the worker of a cell, once it has begun."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        events = read_journal(out / "events.jsonl") if (out / "events.jsonl").exists() else ()
        for event in events:
            if event.event == "trial_started" and event.details["cell"] == cell:
                return event.details["trial"], int(event.details["worker"])
        time.sleep(0.02)
    raise AssertionError(f"{cell} did not start within {seconds} s")


def test_ctrl_c_ends_all_jobs_and_resume_runs_the_slot_again(
    leadline: Command, start: Start, study: Path, target: Path, tmp_path: Path
) -> None:
    out = tmp_path / "r"
    process = start(
        *("run", str(study), "--target", f"a={target}", "--out", str(out), "--quiet"),
        *("--set", "runtime=2s", "--blocks", "1"),
    )
    wait_for_worker(out, "a.both.small")
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 130, errors
    assert list(target.iterdir()) == []
    assert not [t for t in open_result(out).trials() if t.cell.startswith("a.both")]
    assert_measured(leadline("run", "--resume", str(out)), out, CACHED, BRIEF)
    trials = open_result(out).trials()
    assert [t.trial for t in trials] == [f"t{n:04d}" for n in range(1, 6)]
    assert {t.state for t in trials} == {"complete"}
    assert list(target.iterdir()) == []


# Of one block in the order of seed 1: what comes before the two slots of several jobs, and what each writes.
BEFORE_GROUPS = ("self_measured", "run_started", "workspace_intended", "layout_finished")
ALONE = ("trial_started", "trial_finished")
GROUP = ("trial_started", "trial_started", "trials_finished")
FIRST = len(BEFORE_GROUPS + ALONE) + 1


@pytest.mark.parametrize("number", range(FIRST, FIRST + 2 * len(GROUP)))
def test_a_group_is_stored_whole_or_not_at_all_at_whichever_event_the_run_is_killed(
    leadline: Command, study: Path, target: Path, tmp_path: Path, number: int
) -> None:
    out = tmp_path / "r"
    new = ("run", str(study), "--target", f"a={target}", "--out", str(out), "--blocks", "1", "--seed", "1")
    assert leadline(*new, dies=("after", number)).returncode == -signal.SIGKILL
    events = tuple(event.event for event in read_journal(out / "events.jsonl"))
    assert events == (BEFORE_GROUPS + ALONE + GROUP + GROUP)[:number]
    assert_groups_are_whole(out)
    resumed = leadline("run", "--resume", str(out), dies=("before", number))
    assert_killed_or_went_on(resumed, out, CACHED, BRIEF)
    assert_groups_are_whole(out)
    assert_all_is_stored(leadline("run", "--resume", str(out)), out, target, trials=5)


@pytest.mark.parametrize("seed", [3])
def test_a_group_is_stored_whole_or_not_at_all_whenever_the_run_is_killed(
    leadline: Command, start: Start, study: Path, target: Path, tmp_path: Path, seed: int
) -> None:
    moment = random.Random(seed)  # noqa: S311 - moments, not secrets
    out = tmp_path / "r"
    new = ("run", str(study), "--target", f"a={target}", "--out", str(out), "--quiet")
    for _ in range(KILLS_EACH):
        words = ("run", "--resume", str(out), "--quiet") if out.exists() else new
        process = start(*words)
        time.sleep(moment.uniform(0, LONGEST_S))  # the random moment itself
        process.kill()
        process.wait()
        if out.exists():
            assert_groups_are_whole(out)
    last = leadline(*(("run", "--resume", str(out)) if out.exists() else new))
    assert_all_is_stored(last, out, target, trials=10)


def assert_groups_are_whole(out: Path) -> None:
    counted = Counter((t.group, t.block) for t in open_result(out).trials() if t.group)
    assert set(counted.values()) <= {2}


def assert_all_is_stored(
    last: subprocess.CompletedProcess[str], out: Path, target: Path, trials: int
) -> None:
    assert_went_on(last, out, CACHED, BRIEF)
    result = open_result(out)
    assert [t.trial for t in result.trials()] == [f"t{n:04d}" for n in range(1, trials + 1)]
    finished = Counter(t for e in result.events if e.event == "trials_finished" for t in e.details["trials"])
    finished.update(e.details["trial"] for e in result.events if e.event == "trial_finished")
    assert set(finished.values()) == {1}
    assert list(target.iterdir()) == []
    assert not (out / "records").exists()


def test_the_built_in_study_of_interference_says_who_slows_whom(
    leadline: Command, target: Path, tmp_path: Path
) -> None:
    done = leadline(
        *("run", "interference", "--target", f"a={target}", "--out", str(tmp_path / "r")),
        *("--set", "size=8M", "--set", "runtime=300ms", "--set", "ramp_time=0", "--blocks", "2"),
    )
    assert_measured(done, tmp_path / "r")
    shown = show(leadline, tmp_path / "r")
    pairs = {(c["work"], c["base"], c["other"]) for c in shown["comparisons"]}
    assert pairs == {
        ("randread_4k", "a.randread_4k", "a.stream_beside_small.small"),
        ("stream_1m", "a.stream_1m", "a.stream_beside_small.stream"),
    }
    assert json.loads(leadline("plan", "interference", "--target", "n=null://", "--json").stdout)["cells"]
