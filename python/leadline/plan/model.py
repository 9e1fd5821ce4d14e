"""The plan: an ordered, seeded list of trials with every default explicit.

Frozen values that the manifest stores as JSON and `--resume` reads back; how they are made is in
`spec.resolve` (one job for one target) and here (order, files, space, time).
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from leadline import units
from leadline.errors import ResultError, SpecError, TargetError
from leadline.plan.notes import notes_on_left_out, notes_on_works, unlike
from leadline.study import schemes
from leadline.study.left_out import LeftOut
from leadline.study.problems import suggest
from leadline.study.study import Study, Work, expand
from leadline.study.target import Target, TargetFacts
from leadline.study.work import Order, Search, SteadyState, part_as_json
from leadline.workloads.application.job import ApplicationJob, Look
from leadline.workloads.coherence.job import CoherenceJob
from leadline.workloads.coherence.pairs import with_readers
from leadline.workloads.io.job import Job
from leadline.workloads.io.resolve import Surroundings, auto_data_set_bytes, resolve
from leadline.workloads.metadata.job import AnyJob, MetadataJob, job_from_json
from leadline.workloads.pipeline.job import Scout
from leadline.workloads.replay.job import ReplayJob

PLAN_FORMAT = "leadline.plan/1"
# What the time estimate assumes where a job ends with its size, and for laying files out. Nominal on purpose:
# nothing is measured before the plan is shown.
NOMINAL_BYTES_PER_S = 200 * units.MIB
NOMINAL_OPERATIONS_PER_S = 5_000
NOMINAL_QUESTION_S = 0.02  # one that is answered at once
NOMINAL_PROGRAM_S = 10.0  # what an application is taken to compute
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
    """One work, or one job of a composition, on one target. `id` is `target.work`; `notes` give the reason of
    each chosen default.

    `measures_caches`: reads or writes may be served by the page cache of this host. `seconds` is the
    expected time of one trial without its layout. `group` names the composition that the cell is a job of
    (`target.work`), and `order` says how its jobs follow each other. `steady`: when the trial may end early.
    `search`: the job's rate is not planned but found, in the search's number of trials each block.
    """

    id: str
    target: str
    work: str
    factors: dict[str, Any]
    job: AnyJob
    layout: Layout | None
    seconds: float
    measures_caches: bool = False
    notes: tuple[str, ...] = ()
    group: str | None = None
    order: Order | None = None
    steady: SteadyState | None = None
    search: Search | None = None

    @property
    def kind(self) -> str:
        """The kind of work, by the name of its folder below `workloads`."""
        return self.job.kind


@dataclass(frozen=True)
class Trial:
    """One execution of a cell: `order` from 1 over the whole plan, `block` from 1.

    The trials of a group's jobs stand next to each other: they are one slot. `probe` counts the trials of a
    search within its block, from 1.
    """

    id: str
    order: int
    block: int
    cell: str
    target: str
    seed: int
    probe: int | None = None


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
    left_out: tuple[LeftOut, ...] = ()

    def cell(self, cell_id: str) -> PlannedCell:
        """The cell of that id; KeyError where there is none."""
        return {cell.id: cell for cell in self.cells}[cell_id]

    def slots(self, without: Collection[str] = ()) -> list[tuple[Trial, ...]]:
        """What is executed at a time, in order: a trial, or those of a group's jobs; without those named."""
        cells = {cell.id: cell for cell in self.cells}
        found: dict[tuple[int, str], list[Trial]] = {}
        for trial in self.trials:
            if trial.id not in without:
                group = cells[trial.cell].group
                found.setdefault((trial.block, f"group {group}" if group else trial.id), []).append(trial)
        return [tuple(slot) for slot in found.values()]

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
                    "steady": part_as_json(cell.steady),
                    "search": part_as_json(cell.search),
                }
                for cell in self.cells
            ],
            "trials": [vars(trial).copy() for trial in self.trials],
            "seconds": self.seconds,
            "bytes_needed": dict(self.bytes_needed),
            "notes": list(self.notes),
            "left_out": [vars(one).copy() for one in self.left_out],
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
                left_out=tuple(LeftOut(**one) for one in value.get("left_out", ())),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ResultError(
                f"the plan is damaged: {type(error).__name__}: {error}", "run the study anew"
            ) from error


def _cell_from_json(value: dict[str, Any]) -> PlannedCell:
    layout, steady, search = value["layout"], value.get("steady"), value.get("search")
    return PlannedCell(
        **{
            **value,
            "job": job_from_json(value["job"]),
            "layout": None if layout is None else Layout(**layout),
            "notes": tuple(value["notes"]),
            "steady": None if steady is None else SteadyState.model_validate(steady),
            "search": None if search is None else Search.model_validate(search),
        }
    )


def make_plan(  # noqa: PLR0913 - the last five have defaults, each for one kind of work
    study: Study,
    targets: dict[str, Target],
    facts: dict[str, TargetFacts],
    memory_bytes: int,
    seed: int,
    *,
    unavailable: Mapping[str, str] | None = None,
    look: Look | None = None,
    scout: Scout | None = None,
    absent: Sequence[LeftOut] = (),
) -> Plan:
    """Every trial of a study, in an order that depends on `seed` alone.

    `unavailable` names engines that do not work on this host, with the reason; `look` finds out about a
    command, `scout` about a pipeline's source and programs. Raises SpecError for what a target cannot do.
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
        memory_bytes,
        auto_data_set_bytes(memory_bytes, free),
        study.limits.max_rate,
        unavailable or {},
        look,
        scout,
    )
    works = expand(study)
    cells, left_out = [], list(absent)
    for target in targets.values():
        own = []
        for work in works:
            try:
                own.append(_planned_cell(work, target, facts[target.name], around))
            except SpecError as error:
                if not study.where_possible:
                    raise
                left_out.append(LeftOut(target.name, work.group or work.name, error.plain, target.url))
        lost = {f"{one.target}.{one.work}" for one in left_out}
        cells += _with_files_of_their_own([cell for cell in own if cell.group not in lost])
    cells = with_readers(cells)
    if not cells:
        raise SpecError("no target can do any of the works", f"the first reason: {left_out[0].reason}")
    trials = order_trials(cells, study.blocks, seed)
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
        left_out=tuple(left_out),
    )
    return replace(plan, seconds=_total_seconds(plan, study), notes=_notes(plan, facts, study))


def _planned_cell(work: Work, target: Target, facts: TargetFacts, around: Surroundings) -> PlannedCell:
    found = resolve(work.name, work.options, target, facts, around)
    if work.search is not None and isinstance(found.job, Job):
        _check_search(work, work.search, found.job, target, around)
    return PlannedCell(
        f"{target.name}.{work.name}",
        target.name,
        work.name,
        work.factors,
        found.job,
        layout_of(found.job),
        trial_seconds(found.job),
        found.measures_caches,
        found.notes,
        None if work.group is None else f"{target.name}.{work.group}",
        work.order,
        work.steady,
        work.search,
    )


def _check_search(work: Work, search: Search, job: Job, target: Target, around: Surroundings) -> None:
    limit, high = around.max_rate_bytes_per_s, search.high
    asked = high if isinstance(high, float) else search.low
    if limit is not None and asked * job.bs > limit:
        raise SpecError(
            f"{asked:g} operations of {units.exact_size(job.bs)} a second are above limits.max_rate,"
            f" {units.format_rate(limit)}",
            "search lower rates, or raise limits.max_rate",
            source=f"work {work.name} on target {target.name}",
            key="search",
        )


def _with_files_of_their_own(cells: list[PlannedCell]) -> list[PlannedCell]:
    """No two jobs of a group work on the same files: what one writes, the other must not read."""
    taken: dict[tuple[str | None, str], int] = {}
    found = []
    for cell in cells:
        if cell.group is None or cell.layout is None:
            found.append(cell)
            continue
        number = taken.get((cell.group, cell.layout.key), 0) + 1
        taken[cell.group, cell.layout.key] = number
        key = cell.layout.key if number == 1 else f"{cell.layout.key}-{number}"
        found.append(replace(cell, layout=replace(cell.layout, key=key)))
    return found


def layout_of(job: AnyJob) -> Layout | None:
    """The files that must be there before the job, None where it makes fresh ones or does no I/O."""
    if job.engine == schemes.storageless().name or job.fresh_files:
        return None
    if isinstance(job, MetadataJob):
        return layout_of(job.layout_job())
    if isinstance(job, ReplayJob | CoherenceJob):
        return None
    if isinstance(job, ApplicationJob):
        return _input_of(job)
    shared = job.shared != "none"
    owners, file_bytes = (1, job.data_set_bytes) if shared else (job.numjobs, job.size // job.nrfiles)
    key = f"{owners}x{job.nrfiles}x{units.exact_size(file_bytes)}{_content(job)}"
    return Layout(key, owners, job.nrfiles, file_bytes, job.incompressible)


def _input_of(job: ApplicationJob) -> Layout:
    """The staged input, whose key tells inputs of other places and sizes apart."""
    words = f"{job.input}:{job.input_files}:{job.input_bytes}"
    return Layout(f"input-{zlib.crc32(words.encode('utf-8', 'replace')):08x}", 1, 1, job.input_bytes)


def _content(job: Job) -> str:
    """What tells files apart whose data is not incompressible."""
    if job.incompressible:
        return ""
    compressed, equal = job.buffer_compress_percentage, job.dedupe_percentage
    kind = f"-compressible{compressed or ''}" if compressed or not equal else ""
    return kind + (f"-dedupe{equal}x{units.exact_size(job.bs)}" if equal else "")


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


def order_trials(cells: list[PlannedCell], blocks: int, seed: int) -> tuple[Trial, ...]:
    """Each block is one pass over all cells, in a random order of its own; a group's jobs stay together."""
    trials: list[Trial] = []
    for block in range(1, blocks + 1):
        trials += _block(cells, block, len(trials) + 1, seed)
    return tuple(trials)


def _block(cells: list[PlannedCell], block: int, first: int, seed: int) -> list[Trial]:
    shuffled = _units(cells)
    random.Random(f"{seed}:{block}").shuffle(shuffled)  # noqa: S311 - reproducible order, no secret
    trials = []
    for order, (cell, probe) in enumerate((one for unit in shuffled for one in unit), start=first):
        words = f"{seed}:{block}:{cell.id}" + (f":{probe}" if probe else "")
        own = random.Random(words).getrandbits(53)  # noqa: S311 - exact in JSON too
        trials.append(Trial(f"t{order:04d}", order, block, cell.id, cell.target, own, probe))
    return trials


def _units(cells: list[PlannedCell]) -> list[list[tuple[PlannedCell, int | None]]]:
    """What stays together in a block: a cell, the jobs of a group, the probes of a search."""
    found: dict[str, list[tuple[PlannedCell, int | None]]] = {}
    for cell in cells:
        unit = found.setdefault(f"group {cell.group}" if cell.group else cell.id, [])
        probes = range(1, cell.search.trials + 1) if cell.search else (None,)
        unit += [(cell, probe) for probe in probes]
    return list(found.values())


def with_block(plan: Plan, cells: Sequence[str]) -> Plan:
    """The plan with one more block, of these cells; a group runs whole. Numbers go on: ids stay unique."""
    groups = {cell.group for cell in plan.cells if cell.id in cells and cell.group}
    chosen = [cell for cell in plan.cells if cell.id in cells or cell.group in groups]
    block = max((trial.block for trial in plan.trials), default=0) + 1
    return replace(plan, trials=(*plan.trials, *_block(chosen, block, len(plan.trials) + 1, plan.seed)))


def _bytes_needed(cells: list[PlannedCell]) -> int:
    """Layouts stay for the whole run; fresh files of one slot are removed before the next."""
    layouts = {cell.layout.key: cell.layout.total_bytes for cell in cells if cell.layout is not None}
    fresh: dict[str, int] = {}
    for cell in cells:
        if cell.layout is None and cell.job.engine != schemes.storageless().name:
            together = cell.group if cell.order == "together" and cell.group else cell.id
            fresh[together] = fresh.get(together, 0) + cell.job.data_set_bytes
    return sum(layouts.values()) + max(fresh.values(), default=0)


def trial_seconds(job: AnyJob) -> float:
    limit_s = job.runtime_ns / units.NS_PER_S
    if job.time_based:
        return job.ramp_time_ns / units.NS_PER_S + limit_s
    if isinstance(job, MetadataJob):
        return job.pass_operations / NOMINAL_OPERATIONS_PER_S
    if isinstance(job, CoherenceJob):
        return NOMINAL_QUESTION_S * job.repetitions * len(job.questions)
    if isinstance(job, ReplayJob):
        fast_s = max(job.calls / NOMINAL_OPERATIONS_PER_S, job.moved_bytes / NOMINAL_BYTES_PER_S)
        return max(limit_s, fast_s) if job.pace == "recorded" else fast_s
    if isinstance(job, ApplicationJob):
        once_s = NOMINAL_PROGRAM_S + job.copies * job.input_bytes / NOMINAL_BYTES_PER_S
        return min(once_s, limit_s) * job.runs
    speed = float(min(NOMINAL_BYTES_PER_S, NOMINAL_OPERATIONS_PER_S * job.mean_bs))
    if job.rate_bytes_per_s is not None:
        speed = min(speed, float(job.rate_bytes_per_s))
    if job.rate_iops is not None:
        speed = min(speed, job.rate_iops * job.mean_bs)
    by_size_s = job.data_set_bytes / speed
    return min(by_size_s, limit_s) if limit_s else by_size_s


def _total_seconds(plan: Plan, study: Study) -> float:
    speed = min(NOMINAL_BYTES_PER_S, study.limits.max_rate or NOMINAL_BYTES_PER_S)
    layout_bytes = sum(layout.total_bytes for target in plan.targets for layout in plan.layouts(target.name))
    cells = {cell.id: cell for cell in plan.cells}
    slots = [[cells[trial.cell] for trial in slot] for slot in plan.slots()]
    return sum(map(slot_seconds, slots)) + layout_bytes / speed + TRIAL_OVERHEAD_S * len(slots)


def slot_seconds(cells: Sequence[PlannedCell]) -> float:
    """How long a slot of these cells is expected to take, without what surrounds a trial."""
    seconds = [cell.seconds for cell in cells]
    return max(seconds) if cells[0].order == "together" else sum(seconds)


def _notes(plan: Plan, facts: dict[str, TargetFacts], study: Study) -> tuple[str, ...]:
    notes = [
        f"time assumes {units.format_rate(NOMINAL_BYTES_PER_S)} for laying files out"
        f" and {TRIAL_OVERHEAD_S} s around each trial",
        f"space: {study.limits.reserve} of each target is kept free (limits.reserve)",
    ]
    if any(isinstance(cell.job, ApplicationJob) for cell in plan.cells):
        notes.append(
            f"a program is taken to compute for {NOMINAL_PROGRAM_S:g} s and to read its input at"
            f" {units.format_rate(NOMINAL_BYTES_PER_S)}; what it writes is not known beforehand"
        )
    if any(not cell.job.time_based and not isinstance(cell.job, ApplicationJob) for cell in plan.cells):
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
        note = unlike(work, [c for c in plan.cells if c.work == work and facts[c.target].has_storage])
        if note:
            notes.append(note)
    notes += notes_on_works(plan.cells)
    notes += notes_on_left_out(plan.left_out)
    if plan.blocks < 2:
        notes.append("one block gives no interval: nothing can be compared")
    if any(cell.job.reads_only and cell.job.verify for cell in plan.cells):
        notes.append("verify: the processor's time for checking each block is part of what is measured")
    return tuple(notes)
