"""A proof of a setting, made by chance: what it does to two works, and to the figure that it must move."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from made_studies import CEPH, Made, row_of, study_of

from leadline.plan.make import Host, make_plan
from leadline.study.target import Target
from leadline.tuning.proving.proof import ProofDesign
from leadline.tuning.proving.request import design_of

STUDY = """
defaults: {size: 64M, time_based: true, runtime: 2s}
works:
  stream: {rw: write, bs: 1M}
  textures: {rw: randread, bs: 64k}
blocks: BLOCKS
"""


def random_proved(chance: random.Random) -> Made:
    """The setting gains, loses or does nothing, in one work or both; its figure moves, moves the other way,
    stands, or is not seen."""
    return _made(chance, ["dial"], None, [2, 4, 6])


def random_several(chance: random.Random) -> Made:
    """Several settings, in a fraction of their states or one by one; two of them may act on each other."""
    names = ["dial", "knob", "lever", "valve"][: chance.choice([2, 2, 2, 4])]
    design = design_of(chance.choice(["factorial", "factorial", "factorial", "one_by_one"]), names)
    return _made(chance, names, design, [4])


def _made(chance: random.Random, names: list[str], design: ProofDesign | None, blocks: list[int]) -> Made:
    study = study_of(STUDY.replace("BLOCKS", str(chance.choice(blocks))))
    states = design.states if design else {"without": (), "with": tuple(names)}
    facts = dict.fromkeys(states, CEPH)
    targets = {
        name: Target(name, "/mount", state=name, files="without" if name != "without" else None)
        for name in states
    }
    made = Made(study, make_plan(study, targets, facts, Host(16 << 30), chance.randint(1, 99)), facts)
    noise = chance.choice([0.005, 0.01, 0.1])
    does = {
        (name, work): chance.choice([1.0, 1.0, 1.5, 2.0, 0.6])
        for name in names
        for work in ("stream", "textures")
    }
    together = chance.choice([1.0, 2.0, 0.4]) if len(names) > 1 else 1.0
    moves = {name: chance.choice([0.5, 0.5, 1.0, 2.0, None]) for name in names}
    for trial in made.plan.trials:
        own = made.plan.cell(trial.cell)
        on = states[own.target]
        effect = math.prod(does[name, own.work] for name in on) * (together if {*names[:2]} <= {*on} else 1.0)
        rate = 5e7 * effect * chance.lognormvariate(0, noise)
        moved = _moved(own.job, rate)
        if None not in moves.values():
            per_byte = math.prod(moves[name] or 1.0 for name in on) * chance.lognormvariate(0, noise)
            moved["osd_read_bytes"] = round(2 * rate * per_byte)
        row = row_of(made.plan, trial, chance, measured_ns=2_000_000_000, **moved)
        made.rows.append(replace(row, states=_in_force(own.target, {name: name in on for name in names})))
    made.details["proof"] = {"settings": [_setting(chance, name) for name in names]}
    if design:
        made.details["proof"]["design"] = design.as_json()
    return made


def _in_force(state: str, changed: Mapping[str, bool]) -> str:
    values = {name: "2" if on else "1" for name, on in changed.items()}
    read = {f"{name} at osd.0": {"wanted": value, "found": value} for name, value in values.items()}
    return json.dumps({"state": state, "before": read, "after": read})


def _setting(chance: random.Random, name: str) -> dict[str, Any]:
    moves = chance.choice([["osd_read_bytes"], ["osd_read_bytes"], ["osd_read_bytes"], ["cut_into"], []])
    return {
        "setting": name,
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
