"""A small count of what `make result-swaps` does: another account exchanges what root writes by."""

from __future__ import annotations

import os

import pytest

from result_swaps import run

SWAPS = 60
SEED = 1


@pytest.mark.skipif(os.geteuid() != 0, reason="another account needs root")
def test_another_account_that_swaps_parts_of_a_path_leads_no_write_of_root_elsewhere() -> None:
    tally = run(SWAPS, SEED)
    assert tally.failures == []
    assert tally.swaps >= SWAPS
    assert tally.tries["made"]
    assert tally.tries["refused"]
