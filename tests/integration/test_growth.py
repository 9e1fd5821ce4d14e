"""Runs that add blocks: until intervals are narrow, for as long as a budget lasts, over an interruption."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path

import pytest

from leadline.plan.model import Plan
from leadline.store.reader import open_result
from leadline.verdict.comparisons.stopping import enough_blocks
from leadline.verdict.inputs import tables_of
from measured import BRIEF, CACHED, assert_measured
from support import Command, Start

_SMALL = ("--set", "runtime=100ms", "--no-ceph")
_EVEN = ("--set", "rate_iops=500")  # the rates of blocks agree, however busy the host


def added(out: Path) -> list[list[str]]:
    return [event.details["cells"] for event in open_result(out).events if event.event == "block_added"]


def test_until_looks_after_six_blocks_and_ends_when_intervals_are_narrow(
    leadline: Command, study: Path, tmp_path: Path
) -> None:
    out = tmp_path / "r"
    targets = ("--target", "a=null://", "--target", "b=null://", "--set", "engine=auto")
    done = leadline("run", str(study), *targets, *_SMALL, *_EVEN, "--until", "100%", "--out", str(out))
    assert_measured(done, out, BRIEF)
    result = open_result(out)
    blocks = {trial.block for trial in result.trials()}
    assert len(blocks) >= 6
    assert added(out)[:4] == [["a.randread_4k", "a.seqwrite_64k", "b.randread_4k", "b.seqwrite_64k"]] * 4
    assert len({trial.trial for trial in result.trials()}) == len(result.trials())
    assert "block 3 added" in done.stderr


def test_a_budget_ends_the_run_and_adds_the_widest_work_only(
    leadline: Command, study: Path, target: Path, tmp_path: Path
) -> None:
    out = tmp_path / "r"
    begun = time.monotonic()
    done = leadline(
        *("run", str(study), "--target", f"a={target}", *_SMALL, "--budget", "12s", "--out", str(out))
    )
    assert_measured(done, out, CACHED, BRIEF)
    assert time.monotonic() - begun < 60
    assert added(out)
    assert all(len(cells) == 1 for cells in added(out))
    assert open_result(out).complete


def test_a_budget_below_the_planned_blocks_is_refused(
    leadline: Command, study: Path, target: Path, tmp_path: Path
) -> None:
    done = leadline(
        *("run", str(study), "--target", f"a={target}", "--budget", "1s", "--out", str(tmp_path / "r"))
    )
    assert done.returncode == 2
    assert "planned blocks alone take" in done.stderr
    assert not (tmp_path / "r").exists()


@pytest.mark.parametrize(
    ("option", "value"), [("--until", "0%"), ("--until", "fast"), ("--budget", "0s"), ("--budget", "soon")]
)
def test_a_bad_goal_is_one_clear_error(
    leadline: Command, study: Path, target: Path, option: str, value: str
) -> None:
    done = leadline("run", str(study), "--target", f"a={target}", option, value)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_resume_goes_on_with_added_blocks_and_their_goal(
    leadline: Command, start: Start, study: Path, target: Path, tmp_path: Path
) -> None:
    out = tmp_path / "r"
    process = start(
        *("run", str(study), "--target", f"a={target}", *_SMALL, *_EVEN, "--until", "100%"),
        *("--out", str(out), "--quiet"),
    )
    deadline = time.monotonic() + 60
    journal = out / "events.jsonl"
    while time.monotonic() < deadline:
        if journal.exists() and journal.read_text().count("block_added") >= 2:
            break
        time.sleep(0.02)
    process.kill()
    process.wait()
    done = leadline("run", "--resume", str(out))
    assert_measured(done, out, CACHED, BRIEF)
    trials = open_result(out).trials()
    assert [trial.order for trial in trials] == list(range(1, len(trials) + 1))
    assert len({trial.block for trial in trials}) >= 6
    assert list(target.iterdir()) == []
    again = leadline("run", "--resume", str(out))
    assert again.returncode == 2


def test_plan_takes_the_variation_of_an_earlier_result(
    leadline: Command, study: Path, target: Path, tmp_path: Path
) -> None:
    out = tmp_path / "r"
    leadline("run", str(study), "--target", f"a={target}", *_SMALL, "--out", str(out))
    planned = leadline("plan", str(study), "--target", f"a={target}", "--like", str(out))
    assert planned.returncode == 0, planned.stderr
    assert f"with the variation of {out}" in planned.stdout
    assert "randread_4k: " in planned.stdout
    other = leadline("plan", "quick", "--target", f"a={target}", "--set", "size=1M", "--like", str(target))
    assert other.returncode != 0
    assert "Traceback" not in other.stderr
    assert json.loads((out / "manifest.json").read_text())["kind"] == "study"


def test_until_looks_at_the_rates_of_metadata_and_of_a_search(
    leadline: Command, start: Start, target: Path, tmp_path: Path
) -> None:
    """How soon they are narrow is for the host to say: it is ended when both have their six blocks."""
    study, out = tmp_path / "s.yaml", tmp_path / "r"
    study.write_text(
        "format: leadline.study/1\nblocks: 2\nlimits: {reserve: 1M}\n"
        "works:\n"
        "  files: {operations: [create, stat], files: 40}\n"
        "  paced: {rw: randread, bs: 4k, size: 1M, time_based: true, runtime: 100ms, engine: psync,"
        " direct: false, search: {bound: 10s, low: 50, high: 100, trials: 2}}\n"
    )
    words = ("run", str(study), "--target", f"a={target}", "--no-ceph", "--until", "0.1%", "--out", str(out))
    process = start(*words, "--quiet")
    end = time.monotonic() + 120
    while not _blocks_of_each(out) >= 6 and process.poll() is None and time.monotonic() < end:
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 130
    assert _blocks_of_each(out) >= 6
    planned = leadline("plan", str(study), "--target", f"a={target}", "--like", str(out))
    assert planned.returncode == 0, planned.stderr
    assert "files: " in planned.stdout.split("with the variation of")[1]


def _blocks_of_each(out: Path) -> int:
    """How many blocks the work with the fewest has; none before there is a result."""
    if not (out / "manifest.json").exists():
        return 0
    trials = open_result(out).trials()
    return min(len({trial.block for trial in trials if trial.work == work}) for work in ("files", "paced"))


_SCATTERS = """
format: leadline.study/1
blocks: 3
enough: {tells: 80%, within: 5m}
works:
  random: {rw: randread, bs: 4k, size: 1M, time_based: true, runtime: 100ms, rate_iops: 100, arrival: poisson}
"""


def test_blocks_are_added_where_the_first_ones_scatter_as_many_as_tell_what_the_study_asks(
    leadline: Command, tmp_path: Path
) -> None:
    """About ten arrivals in a trial, whatever the host does: their number scatters by a third."""
    path, out = tmp_path / "scatters.yaml", tmp_path / "r"
    path.write_text(_SCATTERS)
    words = ("run", str(path), "--target", "a=null://", "--target", "b=null://", "--no-ceph")
    done = leadline(*words, "--out", str(out))
    assert_measured(done, out, BRIEF)
    result = open_result(out)
    plan = Plan.from_json(result.manifest["plan"])
    blocks = {trial.block for trial in result.trials()}
    assert len(blocks) > plan.blocks == 3
    assert len(blocks) == enough_blocks(plan, tables_of(result, plan), "a", (), 0.8)
    assert added(out) == [["a.random", "b.random"]] * (len(blocks) - 3)
    short = leadline(*words, "--set", "enough.within=1s", "--out", str(tmp_path / "short"))
    assert_measured(short, tmp_path / "short", BRIEF)
    assert added(tmp_path / "short") == [], "more blocks than fit its time are not begun"
