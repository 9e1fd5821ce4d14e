"""`kill -9` at random moments, over and over: nothing twice, nothing missing, nothing left."""

from __future__ import annotations

import random
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest

from leadline.store.journal import read_journal
from leadline.store.reader import open_result
from support import Command, command_line

KILLS_EACH = 6
LONGEST_S = 1.6  # about as long as the study takes with its start


@pytest.mark.parametrize("seed", range(9))
def test_a_result_is_whole_after_any_number_of_kills(
    leadline: Command, study: Path, target: Path, tmp_path: Path, seed: int
) -> None:
    """Nine times six random moments; each resumed run is killed again, until the last may end."""
    moment = random.Random(seed)  # noqa: S311 - moments, not secrets
    out = tmp_path / "r"
    new = ("run", str(study), "--target", f"a={target}", "--out", str(out), "--quiet", "--blocks", "3")
    for _ in range(KILLS_EACH):
        words = ("run", "--resume", str(out), "--quiet") if out.exists() else new
        process = subprocess.Popen(command_line(*words), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(moment.uniform(0, LONGEST_S))  # the random moment itself
        process.kill()
        process.wait()
        if out.exists():
            wait_until_workers_are_gone(out)
    last = leadline(*(("run", "--resume", str(out)) if out.exists() else new))
    assert last.returncode in (0, 3) or "is complete" in last.stderr, last.stderr
    result = open_result(out)
    assert result.complete
    assert [trial.trial for trial in result.trials()] == [f"t{number:04d}" for number in range(1, 7)]
    finished = Counter(e.details["trial"] for e in result.events if e.event == "trial_finished")
    assert set(finished.values()) == {1}
    assert list(target.iterdir()) == []
    assert {path.name for path in tmp_path.iterdir()} <= {"r", "target", "small.yaml"}
    assert not (out / "records").exists()


def wait_until_workers_are_gone(out: Path, seconds: float = 10) -> None:
    """A worker must not outlive its parent: it would write into a directory that nobody watches."""
    pids = {e.details["worker"] for e in read_journal(out / "events.jsonl") if e.event == "trial_started"}
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if not any(is_worker(pid) for pid in pids):
            return
        time.sleep(0.02)
    raise AssertionError(f"workers outlived the run: {pids}")


def is_worker(pid: int) -> bool:
    try:
        return b"leadline.run.worker" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
