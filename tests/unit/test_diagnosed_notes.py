"""What limits a diagnosis is said, and only where it is so."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from builders import trial_row

from leadline.verdict.diagnosis.results import notes_of


def said(count: int = 2, sampled: int = 9, **changes: Any) -> str:
    row = replace(trial_row(), **{"samples_due": 10, "samples_missed": 0, **changes})
    return " ".join(notes_of([row] * count, [sampled] * count))


def test_of_a_whole_cell_nothing_is_said() -> None:
    assert said() == ""


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"count": 1}, "one trial only"),
        ({"sampled": 0}, "no samples of"),
        ({"samples_missed": 2}, "20 % or more of the samples are missing"),
        (
            {"reasons": json.dumps({"osd_read_bytes": "the counter went backwards; its daemon restarted"})},
            "daemon restarted",
        ),
        (
            {"reasons": json.dumps({"osd_read_bytes": "not observable: read from A first, from B then"})},
            "other daemons answered",
        ),
    ],
)
def test_each_limit_is_said(changes: dict[str, Any], words: str) -> None:
    assert words in said(**changes)


def test_many_trials_are_not_all_named() -> None:
    assert "more trials" in said(count=9, sampled=0)
