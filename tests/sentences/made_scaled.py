"""A result of works at several numbers of threads and block sizes, made by chance, by a law or by none."""

from __future__ import annotations

import random
from typing import Any

from made_studies import Made, planned_of, row_of, study_of, targets_of

STUDY = """
defaults: {size: 64M, time_based: true, runtime: 2s}
works:
  stream: {rw: write}
  textures: {rw: randread}
factors:
  bs: [64k, 1M]
  numjobs: [1, 2, 4, 8]
blocks: BLOCKS
"""


def random_scaled(chance: random.Random) -> Made:
    """Each work and target with a law of its own: one that has its most early, late or never, or none."""
    facts = targets_of(chance)
    study = study_of(STUDY.replace("BLOCKS", str(chance.choice([1, 3, 4]))))
    made = Made(study, planned_of(study, facts, chance), facts)
    noise = chance.choice([0.005, 0.02, 0.1])
    laws: dict[str, tuple[float, float, float]] = {}
    for trial in made.plan.trials:
        own = made.plan.cell(trial.cell)
        name = f"{own.target} {own.job.rw} {own.job.bs}"
        one, waits, talks = laws.setdefault(
            name,
            (10 ** chance.uniform(6.5, 8), chance.choice([0.0, 0.05, 0.4]), chance.choice([0.0, 0.01, 0.06])),
        )
        at = own.job.numjobs
        rate = one * at / (1 + waits * (at - 1) + talks * at * (at - 1)) * chance.lognormvariate(0, noise)
        if waits > 0.3 and talks == 0.0 and at == 4:
            rate /= 3  # as where something else is in the way: no law is that
        made.rows.append(row_of(made.plan, trial, chance, measured_ns=2_000_000_000, **_moved(own.job, rate)))
    return made


def _moved(job: Any, rate: float) -> dict[str, int]:
    count = round(2 * rate)
    kinds = ("read", "write") if job.rw == "randread" else ("write", "read")
    found = {
        f"{kinds[0]}_bytes": count,
        f"{kinds[0]}_operations": max(1, count // job.bs),
        f"total_{kinds[0]}_bytes": count,
    }
    return found | {f"{kinds[1]}_bytes": 0, f"{kinds[1]}_operations": 0, f"total_{kinds[1]}_bytes": 0}
