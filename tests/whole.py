"""What must hold of a result after any number of kills: nothing twice, missing or left."""

from __future__ import annotations

import subprocess
import time
from collections import Counter
from pathlib import Path

from leadline.store.journal import read_journal
from leadline.store.reader import open_result
from measured import Expected, assert_went_on


def assert_complete(last: subprocess.CompletedProcess[str], out: Path, *expected: Expected) -> None:
    """What the last run said, and what its result holds; `expected` is what may make its cells unusable."""
    assert_went_on(last, out, *expected)
    result = open_result(out)
    assert result.complete
    planned = [trial["id"] for trial in result.manifest["plan"]["trials"]]
    assert [trial.trial for trial in result.trials()] == planned
    finished = Counter(e.details["trial"] for e in result.events if e.event == "trial_finished")
    assert dict(finished) == dict.fromkeys(planned, 1)
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
    """Whether a process of that number is a worker of leadline, which has the words of what forked it."""
    try:
        return b"leadline.run.fork_helper" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
