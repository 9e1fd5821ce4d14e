"""The time of day is set forwards and back in the middle of a run: nothing stored is negative or lost."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from damaging import Damaged
from leadline.store.reader import open_result
from measured import CACHED, assert_measured
from support import Command, command_line, show, wait_for_event

HOUR_S, DAY_S = 3600, 86400


@pytest.mark.parametrize("clock_s", [HOUR_S, -DAY_S])
def test_a_clock_that_is_set_during_a_trial_moves_nothing_that_is_stored(
    leadline: Command, study: Path, target: Path, tmp_path: Path, clock_s: int
) -> None:
    out = tmp_path / "r"
    damaged = Damaged(tmp_path, tmp_path / "nothing")
    more = ("--set", "runtime=600ms", "--set", "blocks=1", "--set", "observe.interval=100ms")
    words = command_line("run", str(study), "--target", f"a={target}", "--out", str(out), *more)
    with subprocess.Popen(
        words, env=damaged.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        wait_for_event(out, "trial_started")
        damaged.tell(clock_s=clock_s)
        process.communicate(timeout=60)
    assert_measured(process, out, CACHED)
    result = open_result(out)
    assert result.complete
    steps = [event.details["by_ns"] for event in result.events if event.event == "clock_stepped"]
    assert [round(step / 1e9) for step in steps] == [clock_s]
    trials = result.trials()
    assert [trial.state for trial in trials] == ["complete", "complete"]
    assert all(0 < trial.measured_ns < 30e9 for trial in trials)
    samples = result.series()
    assert {sample.source for sample in samples} > {"engine"}
    assert all(-10e9 < sample.t_ns < 30e9 for sample in samples)
    assert all(sample.value is None or sample.value >= 0 for sample in samples)
    show(leadline, out)
