"""A proof that is killed in its middle goes on: to a verdict, with the settings as they were before it."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from leadline.store.reader import open_result
from leadline.verdict.findings import proof_of
from tune_alone import BACKLOG as KEY
from tune_alone import DEADLINE_S, Alone, alone_in
from tune_alone import SLOW_START as OTHER

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="NOT RUN: a network of its own needs root")
STUDY = """
format: leadline.study/1
limits: {reserve: 100M}
defaults: {size: 1M, runtime: 500ms, time_based: true}
works:
  write: {rw: randwrite, bs: 4k}
"""


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[Alone]:
    """A network of its own."""
    with alone_in(tmp_path) as found:
        yield found


def events(result: Path) -> list[dict[str, Any]]:
    """What its journal has until now."""
    try:
        lines = (result / "events.jsonl").read_text().splitlines()
    except OSError:
        return []
    return [json.loads(line) for line in lines if line.endswith("}")]


def finished(result: Path) -> list[str]:
    """The trials that count, each as often as it was stored."""
    return [one["trial"] for one in events(result) if one["event"] == "trial_finished"]


def kill_amid(alone: Alone, base: Path) -> None:
    """Kill the proof once some trials count and a state with both settings is in force."""
    line = alone.proof_of_both(base, STUDY, "--blocks", "4")
    with subprocess.Popen(line, stdout=subprocess.DEVNULL) as running:
        try:
            end = time.monotonic() + DEADLINE_S
            while running.poll() is None:
                assert time.monotonic() < end, "waited in vain"
                if alone.both_in_force and len(finished(base / "r")) >= 5:
                    break
                time.sleep(0.05)
            assert running.poll() is None
        finally:
            running.kill()


def resume(alone: Alone, result: Path) -> subprocess.CompletedProcess[str]:
    """Go on with it, to the end or to what is in the way."""
    return subprocess.run(
        alone.plain("tune", "prove", "--resume", str(result), "--quiet"),
        capture_output=True,
        text=True,
        timeout=2 * DEADLINE_S,
        check=False,
    )


@pytest.mark.parametrize("back", ["revert", "undo", ""])
def test_a_proof_that_was_killed_goes_on_to_its_verdict(alone: Alone, tmp_path: Path, back: str) -> None:
    before = alone.value(KEY), alone.value(OTHER)
    result = tmp_path / "r"
    kill_amid(alone, tmp_path)
    counted = finished(result)
    assert len(counted) >= 5
    if back == "revert":
        alone.tune("revert")
    elif back == "undo":
        undone = subprocess.run(
            alone.plain("undo", str(result)), capture_output=True, text=True, timeout=DEADLINE_S, check=True
        )
        assert undone.stdout.count("removed: ") == 1, "all states have one directory"
    if back:
        assert (alone.value(KEY), alone.value(OTHER)) == before
        assert not alone.journal.state().outstanding()

    resumed = resume(alone, result)
    assert resumed.returncode in (0, 3), resumed.stderr  # 3: this disk's cache may have what is written
    assert (alone.value(KEY), alone.value(OTHER)) == before
    assert not alone.journal.state().outstanding()
    stored = finished(result)
    assert stored[: len(counted)] == counted
    assert len(stored) == len(set(stored)) == 16
    assert not list((tmp_path / "data").iterdir())

    proof = proof_of(open_result(result))
    assert proof is not None
    assert [one.settings[0]["setting"] for one in proof.each] == [KEY, OTHER]
    assert "unusable" not in [one.outcome for one in proof.each]
    assert "is complete: nothing is left to run" in resume(alone, result).stderr


def test_a_proof_whose_setting_somebody_has_set_meanwhile_says_why_it_does_not_go_on(
    alone: Alone, tmp_path: Path
) -> None:
    before, result = alone.value(OTHER), tmp_path / "r"
    kill_amid(alone, tmp_path)
    counted = finished(result)
    alone.set(KEY, "99")
    refused = resume(alone, result)
    assert refused.returncode == 2
    told = " ".join(refused.stderr.split())
    assert f"could not be put back: {KEY} on this host is 99 now, set by somebody else: left as it is" in told
    assert (alone.value(KEY), alone.value(OTHER)) == ("99", before)
    assert finished(result) == counted
    assert [one.change.setting for one in alone.journal.state().outstanding()] == [KEY]
