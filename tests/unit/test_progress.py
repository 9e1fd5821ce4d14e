"""What a run says while it runs: the time left, and of a trial that failed one line."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from builders import cell, trial_row
from rich.console import Console

from leadline.cli.measure.progress import Live, Plain, Quiet, TimeLeft, row_words
from leadline.plan.model import Plan, Trial
from leadline.study.target import Target


def _plan(trials: int = 4) -> Plan:
    names = ("a.randread_4k", "a.randread_1m")
    cells = (cell(names[0]), replace(cell(names[1]), seconds=6.0))
    return Plan(
        study="quick",
        title="",
        about="",
        seed=1,
        blocks=trials // 2,
        targets=(Target("a", "/x"),),
        cells=cells,
        trials=tuple(
            Trial(f"t{place + 1:04}", place + 1, place // 2 + 1, names[place % 2], "a", 7)
            for place in range(trials)
        ),
        seconds=20.0,
        bytes_needed={},
    )


def test_time_left_begins_as_planned_and_follows_what_trials_take() -> None:
    seconds = iter([0.0, 10.0, 40.0])
    left = TimeLeft(_plan(), 4, lambda: next(seconds))
    assert left.words == "about 20 seconds left"
    left.finished("a.randread_4k")  # 2.5 of 20 seconds
    assert left.words == "about 1 minute 10 seconds left"
    left.finished("a.randread_1m")
    assert left.words == "about 40 seconds left"


def test_a_cell_whose_trials_have_ended_takes_as_long_as_they_did() -> None:
    """One target is far slower than planned, the other is not: what is left of each is as its own were."""
    seconds = iter([0.0, 25.0, 32.5, 57.5, 65.0])
    left = TimeLeft(_plan(6), 6, lambda: next(seconds))
    left.finished("a.randread_4k")
    left.finished("a.randread_1m")
    left.finished("a.randread_4k")
    assert left.words == "about 40 seconds left"
    left.finished("a.randread_1m")
    assert left.words == "about 32 seconds left"


def test_what_is_resumed_has_less_left() -> None:
    plan = _plan()
    assert TimeLeft(plan, 1, lambda: 0.0).words == "about 8 seconds left"  # it is the longer of the two
    assert TimeLeft(plan, 2, lambda: 0.0).words == "about 10 seconds left"


@pytest.mark.parametrize("kind", [Plain, Live, Quiet])
def test_a_trial_that_fails_says_so_once(kind: type[Quiet]) -> None:
    stream = io.StringIO()
    display = kind(Console(file=stream, width=200))
    display.begin(_plan(), 4)
    display.finished(trial_row(state="error", error="the target is full"))
    assert stream.getvalue().count("the target is full") == 1


def test_a_log_says_how_much_is_left_with_each_trial() -> None:
    stream = io.StringIO()
    display = Plain(Console(file=stream, width=200))
    display.begin(_plan(2), 2)
    display.finished(trial_row())
    display.finished(trial_row(trial="t0002"))
    first, second, last = stream.getvalue().splitlines()
    assert first == "quick: 2 trials, about 20 seconds left"
    assert second.startswith("[1/2] block 1 a.randread_4k: ")
    assert second.endswith(" left)")
    assert not last.endswith("left)")


def test_a_trial_in_which_no_operation_ended_says_so() -> None:
    done = trial_row(state="complete", measured_ns=6_530_000_000, read_bytes=0, read_operations=0)
    assert row_words(done, "io") == "no operation finished in 6.53 s"
