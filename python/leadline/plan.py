"""The plan: an ordered, seeded list of trials with every default explicit.

Frozen values that the manifest stores as JSON and `--resume` reads back; how they are made is in
`spec.resolve` (one job for one target) and here (order, files, space, time).
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from leadline import units
from leadline.errors import ResultError, SpecError, TargetError
from leadline.spec.job import READ_ONLY, Job
from leadline.spec.problems import suggest
from leadline.spec.resolve import Surroundings, auto_data_set_bytes, resolve
from leadline.spec.study import Study, expand
from leadline.spec.target import Target, TargetFacts

PLAN_FORMAT = "leadline.plan/1"
# What the time estimate assumes where a job ends with its size, and for laying files out. Nominal on purpose:
# nothing is measured before the plan is shown.
NOMINAL_BYTES_PER_S = 200 * units.MIB
NOMINAL_OPERATIONS_PER_S = 5_000
TRIAL_OVERHEAD_S = 0.5  # starting a worker, opening files, storing the trial


@dataclass(frozen=True)
class Layout:
    """Files that are written in full before the first cell of a target that needs them, and shared."""

    key: str
    numjobs: int
    nrfiles: int
    file_bytes: int
    incompressible: bool = True

    @property
    def total_bytes(self) -> int:
        """What the files take on the target."""
        return self.numjobs * self.nrfiles * self.file_bytes


@dataclass(frozen=True)
class PlannedCell:
    """One work on one target. `id` is `target.work`; `notes` give the reason of each chosen default.

    `measures_caches`: reads or writes may be served by the page cache of this host. `seconds` is the
    expected time of one trial without its layout.
    """

    id: str
    target: str
    work: str
    factors: dict[str, Any]
    job: Job
    layout: Layout | None
    seconds: float
    measures_caches: bool = False
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Trial:
    """One execution of a cell: `order` from 1 over the whole plan, `block` from 1."""

    id: str
    order: int
    block: int
    cell: str
    target: str
    seed: int


@dataclass(frozen=True)
class Plan:
    """Everything that will be run. `bytes_needed` is the most that is taken on each target at one time."""

    study: str
    title: str
    about: str
    seed: int
    blocks: int
    targets: tuple[Target, ...]
    cells: tuple[PlannedCell, ...]
    trials: tuple[Trial, ...]
    seconds: float
    bytes_needed: dict[str, int]
    notes: tuple[str, ...] = ()

    def cell(self, cell_id: str) -> PlannedCell:
        """The cell of that id; KeyError where there is none."""
        return {cell.id: cell for cell in self.cells}[cell_id]

    def layouts(self, target: str) -> tuple[Layout, ...]:
        """The distinct layouts that cells of one target share, in the cells' order."""
        found = {c.layout.key: c.layout for c in self.cells if c.target == target and c.layout is not None}
        return tuple(found.values())

    def as_json(self) -> dict[str, Any]:
        """Plain values; `from_json` reads them back to an equal plan."""
        return {
            "format": PLAN_FORMAT,
            **{name: getattr(self, name) for name in ("study", "title", "about", "seed", "blocks")},
            "targets": [vars(target).copy() for target in self.targets],
            "cells": [
                {
                    **vars(cell),
                    "factors": dict(cell.factors),
                    "job": cell.job.as_json(),
                    "layout": None if cell.layout is None else vars(cell.layout).copy(),
                    "notes": list(cell.notes),
                }
                for cell in self.cells
            ],
            "trials": [vars(trial).copy() for trial in self.trials],
            "seconds": self.seconds,
            "bytes_needed": dict(self.bytes_needed),
            "notes": list(self.notes),
        }

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Plan:
        """The inverse of `as_json`. Raises ResultError where it is no plan or one of a newer version."""
        found = value.get("format") if isinstance(value, dict) else None
        if found != PLAN_FORMAT:
            raise ResultError(
                f"the plan is of format {found!r}, this version reads {PLAN_FORMAT!r}",
                "use the version of leadline that wrote it, or run the study anew",
            )
        try:
            return cls(
                **{name: value[name] for name in ("study", "title", "about", "seed", "blocks", "seconds")},
                targets=tuple(Target(**target) for target in value["targets"]),
                cells=tuple(_cell_from_json(cell) for cell in value["cells"]),
                trials=tuple(Trial(**trial) for trial in value["trials"]),
                bytes_needed=dict(value["bytes_needed"]),
                notes=tuple(value["notes"]),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ResultError(
                f"the plan is damaged: {type(error).__name__}: {error}", "run the study anew"
            ) from error


def _cell_from_json(value: dict[str, Any]) -> PlannedCell:
    layout = value["layout"]
    return PlannedCell(
        **{
            **value,
            "job": Job.model_validate(value["job"]),
            "layout": None if layout is None else Layout(**layout),
            "notes": tuple(value["notes"]),
        }
    )


def make_plan(
    study: Study,
    targets: dict[str, Target],
    facts: dict[str, TargetFacts],
    memory_bytes: int,
    seed: int,
    *,
    unavailable: Mapping[str, str] | None = None,
) -> Plan:
    """Every trial of a study, in an order that depends on `seed` alone.

    `unavailable` names engines that do not work on this host, with the reason. Raises SpecError for a
    job that a target cannot do.
    """
    if not targets:
        raise SpecError("no target", "add --target NAME=PATH, for example --target local=/var/tmp")
    base = study.compare.base
    if base is not None and base not in targets:
        raise SpecError(f"{base!r} is no target of this run", suggest(base, targets), key="compare.base")
    free = [
        fact.free_bytes for name, fact in facts.items() if name in targets and fact.free_bytes is not None
    ]
    around = Surroundings(
        memory_bytes, auto_data_set_bytes(memory_bytes, free), study.limits.max_rate, unavailable or {}
    )
    works = expand(study)
    cells = []
    for target in targets.values():
        for work in works:
            found = resolve(work.name, work.options, target, facts[target.name], around)
            layout = layout_of(found.job)
            cells.append(
                PlannedCell(
                    f"{target.name}.{work.name}",
                    target.name,
                    work.name,
                    work.factors,
                    found.job,
                    layout,
                    _trial_seconds(found.job),
                    found.measures_caches,
                    found.notes,
                )
            )
    trials = _order(cells, study.blocks, seed)
    plan = Plan(
        study.name,
        study.title or study.name,
        study.about,
        seed,
        study.blocks,
        tuple(targets.values()),
        tuple(cells),
        trials,
        seconds=0.0,
        bytes_needed={
            name: _bytes_needed([cell for cell in cells if cell.target == name]) for name in targets
        },
    )
    return replace(plan, seconds=_total_seconds(plan, study), notes=_notes(plan, facts, study))


def layout_of(job: Job) -> Layout | None:
    """The files that must be there before the job, None where it writes fresh ones or does no I/O."""
    if job.engine == "null" or job.fresh_files:
        return None
    file_bytes = job.size // job.nrfiles
    kind = "" if job.incompressible else "-compressible"
    key = f"{job.numjobs}x{job.nrfiles}x{units.exact_size(file_bytes)}{kind}"
    return Layout(key, job.numjobs, job.nrfiles, file_bytes, job.incompressible)


def reserve_bytes(study: Study, facts: TargetFacts) -> int:
    """Free space that a run keeps on a target, from `limits.reserve`."""
    if study.limits.reserve.endswith("%"):
        return int((facts.total_bytes or 0) * units.parse_percent(study.limits.reserve) / 100)
    return units.parse_size(study.limits.reserve)


def check_space(plan: Plan, study: Study, facts: dict[str, TargetFacts]) -> None:
    """Raise TargetError for the first target that has no room for the plan and the reserve.

    Targets on one file system share its room.
    """
    needed: dict[object, int] = {}
    for target in plan.targets:
        fact = facts[target.name]
        if fact.free_bytes is None or plan.bytes_needed[target.name] == 0:
            continue
        shared = (fact.mount_point, fact.source) if fact.mount_point else target.name
        needed[shared] = needed.get(shared, 0) + plan.bytes_needed[target.name]
        reserve = reserve_bytes(study, fact)
        if needed[shared] + reserve > fact.free_bytes:
            free, wanted = units.format_size(fact.free_bytes), units.format_size(needed[shared])
            raise TargetError(
                f"target {target.name} ({fact.words}) has {free} free; the study needs {wanted} "
                f"and keeps a reserve of {units.format_size(reserve)}",
                "free space, lower it with --set size=…, or keep less free with --set limits.reserve=…",
            )


def _order(cells: list[PlannedCell], blocks: int, seed: int) -> tuple[Trial, ...]:
    """Each block is one pass over all cells, in a random order of its own."""
    trials: list[Trial] = []
    for block in range(1, blocks + 1):
        trials += _block(cells, block, len(trials) + 1, seed)
    return tuple(trials)


def _block(cells: list[PlannedCell], block: int, first: int, seed: int) -> list[Trial]:
    shuffled = list(cells)
    random.Random(f"{seed}:{block}").shuffle(shuffled)  # noqa: S311 - reproducible order, no secret
    trials = []
    for order, cell in enumerate(shuffled, start=first):
        own = random.Random(f"{seed}:{block}:{cell.id}").getrandbits(53)  # noqa: S311 - exact in JSON too
        trials.append(Trial(f"t{order:04d}", order, block, cell.id, cell.target, own))
    return trials


def with_block(plan: Plan, cells: Sequence[str]) -> Plan:
    """The plan with one more block, of these cells only. Numbers go on, so ids stay unique."""
    chosen = [cell for cell in plan.cells if cell.id in set(cells)]
    block = max((trial.block for trial in plan.trials), default=0) + 1
    return replace(plan, trials=(*plan.trials, *_block(chosen, block, len(plan.trials) + 1, plan.seed)))


def _bytes_needed(cells: list[PlannedCell]) -> int:
    """Layouts stay for the whole run; fresh files of one trial are removed before the next."""
    layouts = {cell.layout.key: cell.layout.total_bytes for cell in cells if cell.layout is not None}
    fresh = [cell.job.data_set_bytes for cell in cells if cell.layout is None and cell.job.engine != "null"]
    return sum(layouts.values()) + max(fresh, default=0)


def _trial_seconds(job: Job) -> float:
    limit_s = job.runtime_ns / units.NS_PER_S
    if job.time_based:
        return job.ramp_time_ns / units.NS_PER_S + limit_s
    speed = float(min(NOMINAL_BYTES_PER_S, NOMINAL_OPERATIONS_PER_S * job.bs))
    if job.rate_bytes_per_s is not None:
        speed = min(speed, float(job.rate_bytes_per_s))
    if job.rate_iops is not None:
        speed = min(speed, job.rate_iops * job.bs)
    by_size_s = job.data_set_bytes / speed
    return min(by_size_s, limit_s) if limit_s else by_size_s


def _total_seconds(plan: Plan, study: Study) -> float:
    speed = min(NOMINAL_BYTES_PER_S, study.limits.max_rate or NOMINAL_BYTES_PER_S)
    layout_bytes = sum(layout.total_bytes for target in plan.targets for layout in plan.layouts(target.name))
    cell_seconds = sum(cell.seconds for cell in plan.cells) * plan.blocks
    return cell_seconds + layout_bytes / speed + TRIAL_OVERHEAD_S * len(plan.trials)


def _notes(plan: Plan, facts: dict[str, TargetFacts], study: Study) -> tuple[str, ...]:
    notes = [
        f"time assumes {units.format_rate(NOMINAL_BYTES_PER_S)} for laying files out"
        f" and {TRIAL_OVERHEAD_S} s around each trial",
        f"space: {study.limits.reserve} of each target is kept free (limits.reserve)",
    ]
    if any(not cell.job.time_based for cell in plan.cells):
        notes.append(
            f"jobs that end with their size are taken to run at {units.format_rate(NOMINAL_BYTES_PER_S)} or "
            f"{NOMINAL_OPERATIONS_PER_S:,} operations per second, whichever is less"
        )
    if study.limits.max_rate is not None:
        notes.append(f"no trial and no layout goes above {units.format_rate(study.limits.max_rate)}")
    cached = [cell.id for cell in plan.cells if cell.measures_caches]
    if cached:
        notes.append(f"measures caches: {', '.join(cached)}")
    for work in dict.fromkeys(cell.work for cell in plan.cells):
        note = _unlike(work, [c for c in plan.cells if c.work == work and facts[c.target].access != "null"])
        if note:
            notes.append(note)
    if plan.blocks < 2:
        notes.append("one block gives no interval: nothing can be compared")
    if any(cell.job.rw in READ_ONLY and cell.job.verify for cell in plan.cells):
        notes.append("verify: the processor's time for checking each block is part of what is measured")
    return tuple(notes)


def _unlike(work: str, cells: list[PlannedCell]) -> str | None:
    """Direct and buffered I/O are never one figure; where targets force it, it is said."""
    direct = [cell.target for cell in cells if cell.job.direct]
    buffered = [cell.target for cell in cells if not cell.job.direct]
    if not direct or not buffered:
        return None
    return (
        f"{work}: direct on {', '.join(direct)} but buffered on {', '.join(buffered)}, so not the same thing"
    )
