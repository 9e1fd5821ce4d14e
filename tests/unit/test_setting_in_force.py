"""A trial whose settings were not those that it was to be measured with proves nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest
from builders import cell, facts, trial_row

from leadline.verdict.cells import judge
from leadline.verdict.codes.case import Case
from leadline.verdict.model import Code


def fired(**after: Any) -> Code | None:
    """The code on three trials, of which the last one read `after` back at its end."""
    good = {"dial": {"wanted": "4", "found": "4"}}
    said = [json.dumps({"state": "with", "before": good, "after": good})] * 2
    said.append(json.dumps({"state": "with", "before": good, "after": {"dial": {"wanted": "4", **after}}}))
    rows = tuple(trial_row(trial=f"t000{at}", states=text) for at, text in enumerate(said))
    found = judge(Case(cell(), facts(), rows, 3, 1 << 34, None))
    return next((one for one in found.codes if one.code == "setting_not_in_force"), None)


def test_a_setting_that_was_in_force_before_and_after_every_trial_casts_no_doubt() -> None:
    assert fired(found="4") is None


@pytest.mark.parametrize(
    ("after", "evidence"),
    [
        ({"found": "1"}, "after t0002 dial was 1, not 4"),
        ({"found": None, "reason": "osd.1 is down"}, "after t0002 dial could not be read: osd.1 is down"),
    ],
)
def test_one_trial_in_which_it_was_not_in_force_makes_the_cell_invalid(
    after: dict[str, Any], evidence: str
) -> None:
    code = fired(**after)
    assert code is not None
    assert (code.state, code.evidence) == ("INVALID", evidence)


def test_a_trial_of_no_state_is_not_looked_at() -> None:
    found = judge(Case(cell(), facts(), (trial_row(),), 1, 1 << 34, None))
    assert "setting_not_in_force" not in {one.code for one in found.codes}
