"""A result's disk that is full, or fails: at each call of the store, and under a whole run."""

from __future__ import annotations

import errno
import json
import os
import subprocess
from pathlib import Path

import pytest

from damaging import Damaged
from leadline.store.reader import open_result
from measured import CACHED, assert_measured
from support import Command, command_line

SHORT = ("--set", "blocks=1", "--set", "runtime=100ms")
# All calls take a minute; a stride that does not divide what a table takes meets every kind of call.
STRIDE = 1 if os.environ.get("LEADLINE_EVERY_CALL") else 11


@pytest.mark.parametrize(
    ("error", "forever", "remedy"),
    [(errno.ENOSPC, 1, "free space there"), (errno.EIO, 0, "see what is wrong with its file system")],
    ids=["full", "failing"],
)
def test_a_store_that_fails_at_any_call_loses_nothing_that_was_said_to_be_stored(
    tmp_path: Path, error: int, forever: int, remedy: str
) -> None:
    below = tmp_path / "below"
    below.mkdir()
    lines = Damaged(tmp_path, below).store("fail", str(below), str(error), str(forever), str(STRIDE))
    found = [json.loads(line) for line in lines]
    assert len(found) > 60 / STRIDE
    for one in found:
        assert one["typed"], one["error"]
        assert "complete" in one["said"] or os.strerror(error) in one["error"], one
        assert "begun" not in one["said"] or "complete" in one["said"] or remedy in one["error"]
        assert (one["wrong"], one["resumed"], one["left"]) == ("", "", []), one


def test_a_run_whose_disk_fills_up_says_so_cleans_its_targets_and_goes_on_later(
    leadline: Command, study: Path, target: Path, tmp_path: Path
) -> None:
    out = tmp_path / "results" / "r"
    damaged = Damaged(tmp_path, tmp_path / "results")
    damaged.tell(30, errno.ENOSPC, forever=True)
    places = [target / "one", target / "two"]
    for place in places:
        place.mkdir()
    targets = [
        word for name, place in zip("ab", places, strict=True) for word in ("--target", f"{name}={place}")
    ]
    words = command_line("run", str(study), *targets, "--out", str(out), *SHORT)
    done = subprocess.run(
        words, env=damaged.environment(), capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 1, done.stderr
    assert "internal error" not in done.stderr
    assert f"the result in {out} cannot be written: No space left on device" in done.stderr
    assert f"--resume {out}" in done.stderr
    assert [list(place.iterdir()) for place in places] == [[], []]
    stored = set(open_result(out).finished)
    done = leadline("run", "--resume", str(out))
    assert_measured(done, out, CACHED)
    result = open_result(out)
    assert result.complete
    assert stored <= result.finished
    assert len(result.trials()) == 4


def test_a_record_that_finds_no_room_is_no_failure_of_its_trial(
    leadline: Command, study: Path, target: Path, tmp_path: Path
) -> None:
    out = tmp_path / "r"
    damaged = Damaged(tmp_path, out / "records")
    damaged.tell(1, errno.ENOSPC, forever=True)
    words = command_line("run", str(study), "--target", f"a={target}", "--out", str(out), *SHORT)
    done = subprocess.run(
        words, env=damaged.environment(), capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 1, done.stderr
    assert f"the result in {out} cannot be written: No space left on device" in done.stderr
    assert list(target.iterdir()) == []
    assert open_result(out).finished == frozenset()
    assert_measured(leadline("run", "--resume", str(out)), out, CACHED)
    assert [trial.state for trial in open_result(out).trials()] == ["complete", "complete"]
