"""A result of a sweep, made by chance: its start and three blocks, of a rate with or without a plateau."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from made_studies import LOCAL, Made, planned_of, row_of, study_of, targets_of

from leadline.plan.make import with_block
from leadline.plan.model import Plan, Trial
from leadline.study.target import TargetFacts

STUDY = """
defaults: {rw: write, size: 64M, time_based: true, runtime: 2s}
works:
  grid: {sweep: {over: {bs: [4k, 16k, 64k, 256k, 1M, 4M], iodepth: [1, 2, 4, 8]}}}
  plain: {bs: 4k}
"""
MANY = """
defaults: {rw: write, size: 64M, time_based: true, runtime: 2s}
works:
  small: {sweep: {over: {bs: [4k, 64k, 1M], iodepth: [1, 4]}}}
  large: {sweep: {over: {bs: [1M, 4M, 16M], iodepth: [1, 2]}}}
  plain: {bs: 4k}
"""


def random_sweep(chance: random.Random) -> Made:
    """A grid of two options beside a work that is in no sweep."""
    return _swept(chance, STUDY, dict(list(targets_of(chance).items())[:1]))


def random_sweeps(chance: random.Random) -> Made:
    """More sweeps and targets than have a sentence each."""
    return _swept(chance, MANY, dict.fromkeys(("first", "second", "third"), LOCAL))


def _swept(chance: random.Random, text: str, facts: Mapping[str, TargetFacts]) -> Made:
    study = study_of(text)
    plan = planned_of(study, facts, chance)
    made = Made(study, plan, facts)
    swept = [cell.id for cell in plan.cells if cell.swept]
    for _ in range(3):
        made.added.append(sorted(chance.sample(swept, 8)))
        plan = with_block(plan, made.added[-1])
    plateau, noise = 10 ** chance.uniform(7.5, 9), chance.choice([0.01, 0.05])
    full_at = 2.0 ** chance.choice([16, 18, 20, 30])
    for trial in plan.trials:
        job = plan.cell(trial.cell).job
        amount = job.bs * job.iodepth
        rate = plateau * min(1.0, amount / full_at) * chance.lognormvariate(0, noise)
        made.rows.append(_row(plan, trial, chance, rate))
    return made


def _row(plan: Plan, trial: Trial, chance: random.Random, rate: float) -> Any:
    count = round(2 * rate)
    values = {
        "write_bytes": count,
        "write_operations": max(1, count // plan.cell(trial.cell).job.bs),
        "total_write_bytes": count,
        "read_bytes": 0,
        "read_operations": 0,
        "total_read_bytes": 0,
        "device_read_bytes": 0,
        "device_written_bytes": count,
    }
    row = row_of(plan, trial, chance, measured_ns=2_000_000_000, **values)
    return replace(row, busy_share_max=chance.choice([None, 0.2, 0.5]))
