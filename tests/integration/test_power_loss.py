"""The power goes in the middle of a run: what was said to be stored is there, and the run goes on from it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import storing
from damaging import Damaged
from power_loss import LOSSES, Disk, lay_out, read_calls

STRIDE = 1 if os.environ.get("LEADLINE_EVERY_CALL") else 3


def test_nothing_that_was_said_to_be_stored_is_lost_with_the_power(tmp_path: Path) -> None:
    below = tmp_path / "below"
    below.mkdir()
    damaged = Damaged(tmp_path, below)
    damaged.store("run", str(below), logged=True)
    calls = read_calls(damaged.log)
    assert sum(call.what == "said" for call in calls) == 4
    disk, said, seen = Disk(), [], set()
    resumed = 0
    for number, call in enumerate(calls):
        if call.what == "said":
            said.append(call.path)
        else:
            disk.apply(call)
        if number % STRIDE and call.what != "said":
            continue
        for loss in LOSSES:
            state = tuple(disk.after(loss))
            if (state, len(said)) in seen:
                continue
            seen.add((state, len(said)))
            place = tmp_path / "after"
            lay_out(iter(state), str(below), place)
            where = f"call {number} ({call.what} {call.path}), {loss} lost, {said} said"
            assert storing.check(place / "new" / "r", said) == "", where
            if number % (3 * STRIDE) == 0:
                assert storing.resume(place / "new" / "r") == "", where
                resumed += 1
            shutil.rmtree(place, ignore_errors=True)
    assert resumed > 10 / STRIDE
