"""A result to be measured while its cluster is not clean, made by chance: degraded, rebuilt, clean."""

from __future__ import annotations

import json
import random
from dataclasses import replace

from made_studies import CEPH, Made, S, planned_of, row_of, study_of

STUDY = """
defaults: {size: 64M, time_based: true, runtime: 2s}
works:
  stream: {rw: write, bs: 1M}
  textures: {rw: randread, bs: 4k}
blocks: 4
"""


def random_unclean(chance: random.Random) -> Made:
    """First degraded, then rebuilding, then clean, for some trials each; some of them could not ask."""
    study = study_of(STUDY)
    facts = {"mount": CEPH}
    made = Made(study, planned_of(study, facts, chance), facts)
    made.details["options"] = {"degraded": True}
    every = len(made.plan.trials)
    rebuilding = chance.randint(0, every)
    clean = chance.choice([chance.randint(rebuilding, every), every + 1])
    for place, trial in enumerate(made.plan.trials):
        row = row_of(made.plan, trial, chance, measured_ns=2 * S)
        states = [_state(at, rebuilding, clean, chance) for at in (place, place + 0.5)]
        unseen = chance.random() < 0.1
        made.rows.append(
            replace(
                row,
                started_unix_ns=1_700_000_000 * S + place * 10 * S,
                start_state="null" if unseen else json.dumps(states[0]),
                end_state="null" if unseen else json.dumps(states[1]),
            )
        )
    return made


def _state(at: float, rebuilding: int, clean: int, chance: random.Random) -> dict[str, object]:
    lost = at < clean
    recovering = lost and at >= rebuilding
    name = "active+undersized+degraded" + ("+recovering" if recovering else "")
    return {
        "health": "HEALTH_WARN" if lost else "HEALTH_OK",
        "checks": {},
        "pgs": {name: 5, "active+clean": 20} if lost else {"active+clean": 25},
        "flags": [],
        "slow_ops": 0,
        "degraded_objects": chance.randint(1, 900) if lost else 0,
        "misplaced_objects": 0,
        "recovering": recovering,
        "scrubbing": 0,
        "osds": 4,
        "osds_up": 3 if lost else 4,
        "osds_in": 4,
        "used_share": 0.1,
        "nearfull_share": 0.85,
        "full_share": 0.95,
    }
