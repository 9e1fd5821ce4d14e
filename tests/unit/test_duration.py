"""Estimates of time beside what a study took: by its journal, over interruptions, without added blocks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from leadline.analysis.duration import TimeTaken, block_seconds, time_taken
from leadline.plan.model import Plan, Trial
from leadline.store.journal import Event
from leadline.verdict.messages import time_off, time_words

TRIALS = tuple(Trial(f"t{n}", n, 1, "a.w", "a", 1) for n in (1, 2))
PLAN = Plan("s", "s", "", 1, 1, (), (), TRIALS, 10.0, {})


def events(*said: tuple[float, str, dict[str, Any]]) -> list[Event]:
    return [Event(int(second * 1e9), name, details) for second, name, details in said]


WHOLE = (
    (100.0, "run_started", {}),
    (104.0, "layout_finished", {"elapsed_ns": 4_000_000_000}),
    (105.0, "trial_started", {"trial": "t1"}),
    (109.0, "trial_finished", {"trial": "t1"}),
    (110.0, "trial_started", {"trial": "t2"}),
    (114.0, "trial_finished", {"trial": "t2"}),
    (116.0, "study_finished", {}),
)


def test_a_study_took_from_its_start_to_its_end() -> None:
    found = time_taken(events(*WHOLE), PLAN)
    assert found == TimeTaken(planned_s=10.0, taken_s=16.0, layout_s=4.0, trials_s=8.0)
    assert found is not None
    assert found.off == pytest.approx(0.6)


def test_the_time_between_an_interruption_and_its_resumption_is_nobodys() -> None:
    resumed = (
        *WHOLE[:5],
        (112.0, "trial_interrupted", {"trial": "t2"}),
        (113.0, "interrupted", {}),
        (900.0, "run_started", {}),
        (901.0, "trial_started", {"trial": "t2"}),
        (905.0, "trial_finished", {"trial": "t2"}),
        (907.0, "study_finished", {}),
    )
    found = time_taken(events(*resumed), PLAN)
    assert found is not None
    assert (found.taken_s, found.trials_s) == (13.0 + 7.0, 8.0)


def test_blocks_added_while_it_ran_were_in_no_estimate() -> None:
    grown = (*WHOLE[:6], (114.0, "block_added", {"cells": []}), (200.0, "study_finished", {}))
    found = time_taken(events(*grown), PLAN)
    assert found is not None
    assert found.taken_s == 14.0


def test_a_study_that_did_not_end_is_held_against_nothing() -> None:
    assert time_taken(events(*WHOLE[:5]), PLAN) is None
    assert time_taken(events(*WHOLE), replace(PLAN, seconds=0.0)) is None


def test_an_estimate_that_is_wrong_by_more_than_half_is_said_with_where_the_time_went() -> None:
    (said,) = time_off(TimeTaken(240.0, 840.0, 120.0, 600.0))
    assert said.tone == "caution"
    assert "took 14 minutes, planned 4 minutes" in said.text
    assert said.evidence[0] == "prefill: 2 minutes"
    (quicker,) = time_off(TimeTaken(600.0, 100.0, 0.0, 90.0))
    assert "planned 10 minutes" in quicker.text


@pytest.mark.parametrize("taken", [None, TimeTaken(600.0, 840.0, 0, 0), TimeTaken(2.0, 9.0, 0, 0)])
def test_an_estimate_that_is_right_or_of_seconds_is_only_printed(taken: TimeTaken | None) -> None:
    assert not list(time_off(taken))
    if taken is not None:
        assert time_words(taken).startswith("took ")


def test_the_time_of_a_block_is_that_of_the_run_without_its_pause() -> None:
    found = events(
        (0, "run_started", {}),
        (10, "trial_finished", {"trial": "t0001"}),
        (12, "block_added", {"cells": ["a.w"]}),
        (20, "trials_finished", {"trials": {"t0002": "complete", "t0003": "complete"}}),
        (9_000, "run_started", {}),
        (9_010, "trial_finished", {"trial": "t0004"}),
    )
    assert block_seconds(found, replace(PLAN, blocks=1, trials=TRIALS[:1] * 8)) == pytest.approx(30 / 4 * 8)
    assert block_seconds(found[:1], PLAN) is None
