"""A search of settings made by chance: some proposals gain; its proof agrees, does not, or is not there."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

from made_studies import CEPH, Made, row_of, store, study_of

from leadline.cli.change.searching.proof import plan_of_states
from leadline.plan.make import Host, make_plan, with_block
from leadline.store.own import StoredProposal, write_proposals
from leadline.study.target import Target

STUDY = """
defaults: {size: 64M, time_based: true, runtime: 2s}
works:
  textures: {rw: randread, bs: 64k}
blocks: 1
"""
_SEARCHED = ("without", "odd", "even")
_PROVED = ("without", "with", "advised", "random")


def random_searched(chance: random.Random, path: Path) -> Path:
    """The result of a search, with that of its proof below it."""
    study = study_of(STUDY)
    base = make_plan(
        study, {"without": Target("without", "/mount", state="without")}, {"without": CEPH}, Host(16 << 30), 1
    )
    made = Made(study, plan_of_states(base, _SEARCHED, 0, 3), dict.fromkeys(_SEARCHED, CEPH))
    noise, sides = chance.choice([0.01, 0.1]), ["tpe", *chance.choice([[], ["random"]])]
    proposals, gains = [], {}
    for number in range(1, chance.randint(2, 5)):
        state = _SEARCHED[1:][(number + 1) % 2]
        one = StoredProposal(f"p{number:02d}", sides[number % len(sides)], state, {"dial": str(number + 1)})
        gains[one.name] = chance.choice([0.3, 0.9, 1.0, 1.0, 1.6, 2.5])
        blocks = []
        for _ in range(chance.choice([1, 2])):
            blocks.append(len(made.added) + 1)
            made.added.append([f"{name}.textures" for name in ("without", state)])
            _measure(made, {state: gains[one.name]}, noise, chance, made.added[-1])
        ended = chance.choice(["", "", "", "", "health is worse than at the start: OSD_DOWN"])
        proposals.append(replace(one, blocks=tuple(blocks), ended=ended))
    made.details["search"] = _asked(sides)
    made.ended = chance.random() < 0.9
    store(made, path)
    write_proposals(path, proposals)
    if (winner := _winner(path)) is not None and chance.random() < 0.85:
        gain = chance.choice([gains[winner.name], 1.0])
        _prove(path, base, winner, gain, sides, noise, chance)
    return path


def _measure(
    made: Made, gains: dict[str, float], noise: float, chance: random.Random, cells: list[str]
) -> None:
    """One block more of these cells: the plan grows as it does while a search runs."""
    plan = made.plan
    for added in made.added[:-1]:
        plan = with_block(plan, added)
    grown = with_block(plan, cells)
    made.rows += [
        _row(made, grown, trial, gains, noise, chance) for trial in grown.trials[len(plan.trials) :]
    ]


def _row(
    made: Made, plan: Any, trial: Any, gains: dict[str, float], noise: float, chance: random.Random
) -> Any:
    rate = 5e7 * gains.get(trial.target, 1.0) * chance.lognormvariate(0, noise)
    operations = round(2 * rate / 65536)
    read = '{"dial at osd.0": {"wanted": "2", "found": "2"}}'
    states = f'{{"state": "{trial.target}", "before": {read}, "after": {read}}}'
    return replace(
        row_of(
            plan, trial, chance, measured_ns=2_000_000_000,
            read_bytes=operations * 65536, read_operations=operations, write_bytes=0, write_operations=0,
            total_read_bytes=operations * 65536, total_write_bytes=0,
        ),
        states=states,
    )  # fmt: skip


def _asked(sides: list[str]) -> dict[str, Any]:
    return {
        "settings": [{"setting": "dial", "unit": "count"}],
        "space": [{"name": "dial", "choices": [], "low": 1, "high": 9, "logarithmic": False}],
        "default": {"dial": "1"},
        "advised": {"dial": ["9", "a test"]},
        "sides": sides,
        "limits": {"blocks": 2, "proposals": None},
        "bounds": {},
        "budget_s": 600.0,
        "seed": 3,
    }


def _winner(path: Path) -> StoredProposal | None:
    """What the search itself would prove."""
    from leadline.store.reader import open_result
    from leadline.verdict.findings import _judged_proof
    from leadline.verdict.searches import find_search

    best = find_search(open_result(path), _judged_proof).best()
    return None if best is None else best[0]


def _prove(
    path: Path,
    base: Any,
    winner: StoredProposal,
    gain: float,
    sides: list[str],
    noise: float,
    chance: random.Random,
) -> None:
    names = _PROVED if "random" in sides else _PROVED[:-1]
    plan = plan_of_states(base, names, chance.choice([4, 6]), 4)
    made = Made(study_of(STUDY), plan, dict.fromkeys(names, CEPH))
    gains = {"with": gain, "advised": chance.choice([1.0, 2.0]), "random": chance.choice([0.9, 1.5])}
    made.rows = [_row(made, plan, trial, gains, noise, chance) for trial in plan.trials]
    made.ended = chance.random() < 0.9
    setting = {
        "setting": "dial", "value": winner.values["dial"], "before": None, "without": {"osd.0": "1"},
        "moves": [], "prices": [],
    }  # fmt: skip
    made.details |= {"proof": {"settings": [setting]}, "id": "0badf00d"}
    made.details["states"] = {
        name: dict(winner.values) if name == "with" else {"dial": "9"} for name in names if name != "without"
    }
    store(made, path / "proof")
