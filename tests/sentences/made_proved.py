"""A proof of a setting, made by chance: what it does to two works, and to the figure that it must move."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

from made_studies import CEPH, Made, row_of, study_of

from leadline.plan.make import Host, make_plan
from leadline.study.target import Target

STUDY = """
defaults: {size: 64M, time_based: true, runtime: 2s}
works:
  stream: {rw: write, bs: 1M}
  textures: {rw: randread, bs: 64k}
blocks: BLOCKS
"""
_STATES = ("without", "with")


def random_proved(chance: random.Random) -> Made:
    """The setting gains, loses or does nothing, in one work or both; its figure moves, moves the other way,
    stands, or is not seen."""
    study = study_of(STUDY.replace("BLOCKS", str(chance.choice([2, 4, 6]))))
    facts = dict.fromkeys(_STATES, CEPH)
    targets = {
        name: Target(name, "/mount", state=name, files="without" if name == "with" else None)
        for name in _STATES
    }
    made = Made(study, make_plan(study, targets, facts, Host(16 << 30), chance.randint(1, 99)), facts)
    noise = chance.choice([0.005, 0.01, 0.1])
    does = {work: chance.choice([1.0, 1.0, 1.5, 2.0, 0.6]) for work in ("stream", "textures")}
    gone = [0.0] if made.plan.blocks >= 4 else []  # what goes to nothing has no ratio of blocks
    moves = chance.choice([0.5, 0.5, 1.0, 2.0, None, *gone])
    for trial in made.plan.trials:
        own = made.plan.cell(trial.cell)
        proved = own.target == "with"
        rate = 5e7 * (does[own.work] if proved else 1.0) * chance.lognormvariate(0, noise)
        moved = _moved(own.job, rate)
        if moves is not None:
            per_byte = (moves if proved else 1.0) * chance.lognormvariate(0, noise)
            moved["osd_read_bytes"] = round(2 * rate * per_byte)
        row = row_of(made.plan, trial, chance, measured_ns=2_000_000_000, **moved)
        made.rows.append(replace(row, states=_in_force(own.target)))
    made.details["proof"] = {"settings": [_setting(chance)]}
    return made


def _in_force(state: str) -> str:
    value = "2" if state == "with" else "1"
    read = f'{{"dial at osd.0": {{"wanted": "{value}", "found": "{value}"}}}}'
    return f'{{"state": "{state}", "before": {read}, "after": {read}}}'


def _setting(chance: random.Random) -> dict[str, Any]:
    moves = chance.choice([["osd_read_bytes"], ["osd_read_bytes"], ["osd_read_bytes"], ["cut_into"], []])
    return {
        "setting": "dial",
        "value": "2",
        "before": None,
        "without": {"osd.0": "1"},
        "moves": [{"figure": figure, "direction": "down"} for figure in moves],
        "prices": [{"kind": "memory", "words": "some"}],
    }


def _moved(job: Any, rate: float) -> dict[str, int]:
    count = round(2 * rate)
    kinds = ("read", "write") if job.rw == "randread" else ("write", "read")
    found = {
        f"{kinds[0]}_bytes": count,
        f"{kinds[0]}_operations": max(1, count // job.bs),
        f"total_{kinds[0]}_bytes": count,
    }
    return found | {f"{kinds[1]}_bytes": 0, f"{kinds[1]}_operations": 0, f"total_{kinds[1]}_bytes": 0}
