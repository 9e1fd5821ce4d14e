"""Results of studies that were held against requirements near to what they give."""

from __future__ import annotations

import random
from dataclasses import replace
from statistics import fmean
from typing import Any

from made_studies import LOCAL, Made, planned_of, row_of, scatter, study_of

STUDY = """
works:
  small: {rw: randread, bs: 4k, iodepth: 4, size: 64M, time_based: true, runtime: 2s}
  stream: {rw: write, bs: 1M, iodepth: 4, size: 64M, time_based: true, runtime: 2s}
blocks: BLOCKS
"""


def random_required(chance: random.Random) -> Made:
    """Small reads and a stream on one or two disks; some of their trials are not to be relied upon."""
    facts = {name: LOCAL for name in ("one", "two")[: chance.randint(1, 2)]}
    study = study_of(STUDY.replace("BLOCKS", str(chance.choice([1, 3, 6]))))
    plan, noise = planned_of(study, facts, chance), scatter(chance)
    made = Made(study, plan, facts)
    base = {one.id: 10 ** chance.uniform(8, 9) for one in plan.cells}
    busy = {one.id: chance.choice([0.2, 0.2, 0.2, 0.99]) for one in plan.cells}
    asked: dict[str, Any] = {}
    for trial in plan.trials:
        words = "read" if trial.cell.endswith("small") else "write"
        other, count = {"read": "write", "write": "read"}[words], round(2 * base[trial.cell] * noise())
        operations = max(1, count // (4096 if words == "read" else 1 << 20))
        own = {f"{words}_bytes": count, f"total_{words}_bytes": count, f"{words}_operations": operations}
        none = dict.fromkeys((f"{other}_bytes", f"total_{other}_bytes", f"{other}_operations"), 0)
        device = {"device_read_bytes": 0, "device_written_bytes": 0}
        device["device_read_bytes" if words == "read" else "device_written_bytes"] = count
        row = row_of(plan, trial, chance, **own, **none, **device)
        made.rows.append(replace(row, cpu_busy_share=busy[trial.cell]))
    for place, one in enumerate(plan.cells):
        own_rows = [row for row in made.rows if row.cell == one.id]
        metric = chance.choice(["bandwidth", "iops"])
        rate = fmean(
            (row.read_bytes + row.write_bytes)
            if metric == "bandwidth"
            else (row.read_operations + row.write_operations)
            for row in own_rows
        )
        near = chance.choice([0.2, 0.95, 1.0, 1.05, 5.0]) * rate / 2.0
        figure = f"{near:.4g} B/s" if metric == "bandwidth" else f"{near:.4g}"
        asked[f"r{place}"] = {
            "from": f"section {place + 1}.2",
            "target": one.target,
            "work": one.work,
            "metric": metric,
            chance.choice(["at_least", "at_most"]): figure,
        }
    several = [{"metric": "iops", "at_least": "5"}, {"metric": "bandwidth", "at_least": "1 kB/s"}]
    asked["both"] = {"work": "small", "figures": several, "cells": chance.choice(["every", "one"])}
    asked["absent"] = {"work": "nowhere", "metric": "iops", "at_most": "5"}
    made.details["requirements"] = {"format": "leadline.requirements/1", "requirements": asked}
    return made
