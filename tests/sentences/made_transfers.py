"""Transfers made by chance, whose acknowledgements have a known truth: nothing, stalls, bursts, late ends."""

from __future__ import annotations

import json
import random
from dataclasses import replace

from made_studies import Made, S, planned_of, row_of, scatter, spans, study_of, targets_of
from transfer_traces import ending_together, in_step, made_acks, put_off, stalled

from leadline.store.own import Acks

_TEXT = """
name: made
title: A made study
about: How fast do streams go?
works:
  by_size: {transfer: write, streams: 8, buffer: 1M, size: 300M, in_flight: 2}
  timed: {transfer: write, streams: 8, buffer: 1M, in_flight: 4, size: 64M, time_based: true, runtime: 20s}
blocks: BLOCKS
"""
_WHAT = ("nothing", "stall", "stall", "bursts", "late", "lost")


def random_transfers(chance: random.Random) -> Made:
    """Eight streams on one to three targets; of each cell one thing is wrong, or nothing is."""
    study = study_of(_TEXT.replace("BLOCKS", str(chance.choice([1, 2, 3]))))
    facts = targets_of(chance)
    plan = planned_of(study, facts, chance)
    made, noise = Made(study, plan, facts), scatter(chance)
    wrong = {
        one.id: chance.choice(_WHAT if one.job.time_based else ("nothing", "ends")) for one in plan.cells
    }
    for trial in plan.trials:
        job = plan.cell(trial.cell).job
        acks = _acks(chance, wrong[trial.cell], by_size=None if job.time_based else job.size // job.buffer)
        row = row_of(plan, trial, chance, summary=json.dumps({"streams": []}))
        moved = int(acks.length.sum())
        seconds = float(acks.acked_ns.max()) / S * noise()
        row = replace(
            row,
            measured_ns=round(seconds * S),
            read_bytes=0,
            read_operations=0,
            write_bytes=moved,
            write_operations=len(acks),
            total_read_bytes=0,
            total_write_bytes=moved,
        )
        made.rows.append(row)
        made.acks[trial.id] = acks
    return spans(chance, made)


def _acks(chance: random.Random, wrong: str, by_size: int | None) -> Acks:
    seed = chance.randrange(1 << 30)
    if by_size is not None:
        paces = [0.6 + 0.1 * place for place in range(8)]
        acks = made_acks(seed, streams=8, in_flight=2, by_size=by_size, paces=paces)
        return ending_together(acks, chance.uniform(0.05, 0.3)) if wrong == "ends" else acks
    acks = made_acks(seed, streams=8, in_flight=4, seconds=20.0, latency_s=0.04)
    if wrong == "stall":
        acks = stalled(acks, chance.uniform(2, 9), chance.uniform(1.5, 4), range(chance.randint(3, 8)))
        return stalled(acks, 15.0, 1.2, range(8)) if chance.random() < 0.5 else acks
    if wrong == "bursts":
        return in_step(acks, 0.4)
    if wrong == "late":
        return put_off(acks, chance.uniform(2, 20))
    return acks.first(2000) if wrong == "lost" else acks


TRANSFERS = {"transfers": random_transfers}
