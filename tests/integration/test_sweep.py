"""A sweep on a file system that answers late, with a bound of the rate: so its knee is known."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path

import pytest

import slow_fuse
from leadline.store.reader import open_result
from measured import BRIEF, CACHED, assert_measured
from support import Command, Start, show

pytestmark = pytest.mark.skipif(slow_fuse.missing() is not None, reason=str(slow_fuse.missing()))

STUDY = """format: leadline.study/1
blocks: 1
limits: {reserve: 1M, max_rate: 2M}
defaults: {rw: randread, size: 1M, runtime: 400ms, time_based: true, engine: psync, direct: false}
works:
  grid: {sweep: {over: {bs: [4k, 8k, 16k, 32k, 64k], numjobs: [1, 2, 4]}, trials: 24}}
"""
NULL = """format: leadline.study/1
blocks: 2
defaults: {rw: read, size: 64M, runtime: 100ms, time_based: true}
works:
  grid: {sweep: {over: {bs: [4k, 16k, 64k, 256k], iodepth: [1, 2, 4]}, trials: 20}}
  plain: {bs: 4k}
"""


def test_the_knee_of_a_bounded_file_system_is_found_and_shown(leadline: Command, tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(STUDY)
    out = tmp_path / "r"
    with slow_fuse.mounted(slow_fuse.build(), tmp_path) as mount:
        mount.rules(
            read_ms=8
        )  # 4 KiB of one job: at most 512 KiB/s; the bound of 2 MiB/s is reached at 16 KiB
        done = leadline(
            *("run", str(tmp_path / "s.yaml"), "--target", f"a={mount.path}", "--no-ceph", "--out", str(out))
        )
    assert_measured(done, out, CACHED, BRIEF)
    found = show(leadline, out)
    assert 0 < len(found["cells"]) <= 15
    assert all(cell["validity"]["state"] != "NOT_RUN" for cell in found["cells"])
    said = [one["text"] for one in found["statements"]]
    knee = next(text for text in said if "is the smallest level that gives 95 %" in text)
    amount = next(word for word in ("16 KiB", "32 KiB", "64 KiB") if f"({word})" in knee)
    assert amount in ("16 KiB", "32 KiB", "64 KiB")
    page = leadline("report", str(out), "--format", "html", "--output", "-").stdout
    assert "knee-0" in page
    assert "not needed" in page
    text = leadline("show", str(out), "--all").stdout
    assert "Sweep grid on a" in text


def test_a_sweep_resumes_with_the_blocks_that_it_chose(
    leadline: Command, start: Start, tmp_path: Path
) -> None:
    (tmp_path / "s.yaml").write_text(NULL)
    out = tmp_path / "r"
    process = start("run", str(tmp_path / "s.yaml"), "--target", "a=null://", "--out", str(out), "--quiet")
    end = time.monotonic() + 60
    while "block_added" not in _journal(out) and process.poll() is None and time.monotonic() < end:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait(60)
    before = _added(out)
    done = leadline("run", "--resume", str(out))
    assert done.returncode in (0, 3), done.stderr  # of doubtful figures, on a busy host
    result = open_result(out)
    assert result.complete
    assert _added(out)[: len(before)] == before
    trials = result.trials()
    assert len({trial.trial for trial in trials}) == len(trials)
    assert sum(trial.work.startswith("grid") for trial in trials) <= 20
    assert sum(trial.work == "plain" for trial in trials) == 2


def test_a_baseline_without_a_cell_that_was_not_needed_lacks_nothing(
    leadline: Command, tmp_path: Path
) -> None:
    (tmp_path / "s.yaml").write_text(NULL)
    for name in ("a", "b"):
        done = leadline(
            *("run", str(tmp_path / "s.yaml"), "--target", "a=null://", "--out", str(tmp_path / name)),
            *("--set", "works.grid.sweep.trials=10" if name == "b" else "works.grid.sweep.trials=20"),
        )
        assert done.returncode in (0, 3), done.stderr  # of doubtful figures, on a busy host
    checked = leadline("gate", str(tmp_path / "b"), "--baseline", str(tmp_path / "a"), "--allow", "99%")
    assert "the new result lacks" not in checked.stdout


def test_until_is_refused_where_every_work_is_a_sweep(leadline: Command, tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(NULL.replace("  plain: {bs: 4k}\n", ""))
    done = leadline("run", str(tmp_path / "s.yaml"), "--target", "a=null://", "--until", "5%")
    assert done.returncode == 2
    assert "sweep" in done.stderr


def _journal(out: Path) -> str:
    try:
        return (out / "events.jsonl").read_text()
    except OSError:
        return ""


def _added(out: Path) -> list[list[str]]:
    events = (json.loads(line) for line in _journal(out).splitlines())
    return [event["cells"] for event in events if event.get("event") == "block_added"]
