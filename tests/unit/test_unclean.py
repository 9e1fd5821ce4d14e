"""Studies that are to be measured while their cluster is not clean."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from builders import trial_row

from leadline.store.tables import TrialRow
from leadline.verdict.degraded import asked_degraded, moods_of, rebuilt

CLEAN = {"pgs": {"active+clean": 25}, "recovering": False, "osds": 4, "osds_up": 4, "degraded_objects": 0}
DOWN = {**CLEAN, "osds_up": 3}
DEGRADED = {**DOWN, "pgs": {"active+undersized+degraded": 5, "active+clean": 20}, "degraded_objects": 70}
BUILDING = {**CLEAN, "pgs": {"active+remapped+backfilling": 3}, "recovering": True, "degraded_objects": 30}
S = 1_000_000_000


def _trials(states: Sequence[tuple[Any, Any]]) -> list[TrialRow]:
    return [
        trial_row(
            trial=f"t{place:04}",
            started_unix_ns=place * 10 * S,
            ramp_ns=S,
            measured_ns=4 * S,
            start_state=json.dumps(start),
            end_state=json.dumps(end),
        )
        for place, (start, end) in enumerate(states)
    ]


@pytest.mark.parametrize(
    ("states", "moods"),
    [
        ((CLEAN, CLEAN), ("clean",)),
        ((DOWN, DOWN), ("degraded",)),
        ((DEGRADED, BUILDING), ("degraded", "rebuilding")),
        ((BUILDING, CLEAN), ("rebuilding", "clean")),
        ((None, None), ()),
    ],
)
def test_a_trial_has_the_states_that_it_saw(states: tuple[Any, Any], moods: tuple[str, ...]) -> None:
    assert moods_of(_trials([states])[0]) == moods


def test_the_time_of_rebuilding_lies_between_the_last_look_that_was_not_clean_and_the_next() -> None:
    found = rebuilt(_trials([(CLEAN, CLEAN), (DEGRADED, BUILDING), (BUILDING, BUILDING), (CLEAN, CLEAN)]))
    assert found is not None
    assert (found.least_s, found.most_s, found.degraded_objects) == (15.0, 20.0, 70)


@pytest.mark.parametrize(
    "states", [[(CLEAN, CLEAN)], [(CLEAN, CLEAN), (DEGRADED, DEGRADED)], [(None, None)], []]
)
def test_what_was_not_seen_to_end_has_no_time(states: list[tuple[Any, Any]]) -> None:
    assert rebuilt(_trials(states)) is None


@pytest.mark.parametrize(
    ("manifest", "asked"), [({}, False), ({"options": {}}, False), ({"options": {"degraded": True}}, True)]
)
def test_a_result_says_whether_it_was_asked_for(manifest: dict[str, Any], asked: bool) -> None:
    assert asked_degraded(manifest) is asked
