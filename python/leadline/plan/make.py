"""How a plan is made of a study: every work on every target, in an order, with its space, time and notes.

What a plan says beside its trials: how works belong together, and where they are not alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from leadline import units
from leadline.errors import SpecError
from leadline.plan.check import check_runs
from leadline.plan.model import TRIAL_OVERHEAD_S, Plan, PlannedCell, slot_seconds
from leadline.plan.order import order_trials, states_of
from leadline.plan.space import bytes_needed
from leadline.plan.sweeps import starting, sweep_trials, sweeps_of, trial_seconds
from leadline.study.kind.interface import NOMINAL_BYTES_PER_S, NOMINAL_REMOTE_BYTES_PER_S, Surroundings
from leadline.study.kinds import PLANNED, planned, resolve
from leadline.study.left_out import LeftOut
from leadline.study.problems import suggest
from leadline.study.study import Study, Work, expand
from leadline.study.target import Target, TargetFacts
from leadline.study.work import Search

# How the jobs of a composition follow each other, in words.
_ORDERS = {
    "together": "at the same time, in a process each",
    "start_together": "started at the same time, in a process each; the last ones go on alone",
    "sequence": "one after the other",
}


def notes_on_plan(plan: Plan, facts: Mapping[str, TargetFacts], study: Study) -> tuple[str, ...]:
    """Everything that is said beside a plan's trials."""
    notes = [
        *(f"otherwise than in fio: {note}" for note in study.notes),
        f"time assumes {units.format_rate(NOMINAL_BYTES_PER_S)} for laying files out,"
        f" {units.format_rate(NOMINAL_REMOTE_BYTES_PER_S)} on other hosts,"
        f" and {TRIAL_OVERHEAD_S} s around each trial",
        f"space: {study.limits.reserve} of each target is kept free (limits.reserve)",
    ]
    notes += dict.fromkeys(_assumptions(plan.cells))
    if study.limits.max_rate is not None:
        notes.append(f"no trial and no layout goes above {units.format_rate(study.limits.max_rate)}")
    cached = dict.fromkeys(
        f"{cell.target}.{cell.swept.name}" if cell.swept else cell.id
        for cell in plan.cells
        if cell.measures_caches
    )
    if cached:
        notes.append(f"measures caches: {', '.join(cached)}")
    for work in dict.fromkeys(cell.work for cell in plan.cells if cell.swept is None):
        note = unlike(work, [c for c in plan.cells if c.work == work and facts[c.target].has_storage])
        if note:
            notes.append(note)
    notes += notes_on_works(plan.cells)
    notes += notes_on_sweeps(plan.cells)
    notes += notes_on_left_out(plan.left_out)
    if plan.blocks < 2 and any(cell.swept is None for cell in plan.cells):
        notes.append("one block gives no interval: nothing can be compared")
    if any(cell.job.reads_only and cell.job.verify for cell in plan.cells):
        notes.append("verify: the processor's time for checking each block is part of what is measured")
    if any(cell.job.verify and not cell.job.reads_only for cell in plan.cells):
        notes.append(
            "verify: after each trial that writes all its files are read back, past this host's caches, apart"
            " from what is measured; the engine keeps 4 bytes for each 4 KiB of them"
        )
    return tuple(notes)


def _assumptions(cells: Sequence[PlannedCell]) -> Iterator[str]:
    """What the expected times take for granted; the least certain first."""
    by_kind: dict[str, list[PlannedCell]] = {}
    for cell in cells:
        by_kind.setdefault(cell.kind, []).append(cell)
    for kind in reversed(tuple(PLANNED)):
        said = (PLANNED[kind].assumption(cell.job) for cell in by_kind.get(kind, ()))
        yield from (words for words in said if words is not None)


def notes_on_works(cells: Sequence[PlannedCell]) -> Iterator[str]:
    """What is said of jobs together, of works that end early and of searches."""
    for group in dict.fromkeys(cell.group for cell in cells if cell.group):
        own = [cell for cell in cells if cell.group == group]
        yield f"{group}: {len(own)} jobs {_ORDERS[own[0].order or 'together']}, on files of their own"
    steady = [cell.id for cell in cells if cell.steady]
    if steady:
        yield f"end once they are steady, so the time is the longest: {', '.join(steady)}"
    for cell in cells:
        if cell.search:
            bound = units.exact_duration(cell.search.bound)
            yield (
                f"{cell.id}: {cell.search.trials} probes in each block for the highest rate with"
                f" {cell.search.latency} under {bound}; a probe's rate follows from those before it"
            )


def notes_on_sweeps(cells: Sequence[PlannedCell]) -> Iterator[str]:
    """What is said of each sweep: its grid, its start, and how far it may go."""
    start = starting(cells)
    for (target, name), own in sweeps_of(cells).items():
        asked = own[0].swept.sweep if own[0].swept else None
        if asked is None:
            continue
        first = sum(cell.id in start for cell in own)
        most = sweep_trials(own)
        seconds = most * trial_seconds(own)
        yield (
            f"sweep {target}.{name}: a grid of {len(own)} cells of {' x '.join(asked.over)}, of which it"
            f" starts with {first}; block by block it chooses which to try until the least that give"
            f" {100 * asked.share:.4g} % of the plateau are known, at most {most} trials"
            f" (about {units.format_duration(seconds)})"
        )


def unlike(work: str, cells: list[PlannedCell]) -> str | None:
    """Direct and buffered I/O are never one figure; where targets force it, it is said."""
    direct = [cell.target for cell in cells if cell.job.direct]
    buffered = [cell.target for cell in cells if not cell.job.direct]
    if not direct or not buffered:
        return None
    return (
        f"{work}: direct on {', '.join(direct)} but buffered on {', '.join(buffered)}, so not the same thing"
    )


def notes_on_left_out(left_out: Sequence[LeftOut]) -> Iterator[str]:
    """What is not run, and why."""
    for one in left_out:
        what = "the whole target" if one.work is None else one.work
        yield f"left out, {one.target}: {what}: {one.reason}"


AUTO_SIZE_MIN_BYTES = 256 * units.MIB
AUTO_SIZE_MAX_BYTES = 2 * units.GIB
AUTO_SIZE_MEMORY_SHARE = 16
AUTO_SIZE_FREE_SHARE = 10


@dataclass(frozen=True)
class Host:
    """What a plan is made against besides targets: the host that will run it.

    `unavailable` names engines that do not work on it, with the reason; `lookups` find out more about it, for
    kinds of work that ask. `absent` was asked for, and is not there.
    """

    memory_bytes: int
    unavailable: Mapping[str, str] = field(default_factory=dict)
    lookups: tuple[object, ...] = ()
    absent: Sequence[LeftOut] = ()


def make_plan(
    study: Study, targets: Mapping[str, Target], facts: Mapping[str, TargetFacts], host: Host, seed: int
) -> Plan:
    """Every trial of a study, in an order that depends on `seed` alone.

    Raises SpecError for what a target cannot do.
    """
    _check_targets(study, targets)
    cells, left_out = _cells(study, targets, facts, host)
    plan = Plan(
        study.name,
        study.title or study.name,
        study.about,
        seed,
        study.blocks,
        tuple(targets.values()),
        tuple(cells),
        order_trials(cells, study.blocks, seed, states_of(targets.values())),
        seconds=0.0,
        bytes_needed={
            name: bytes_needed([cell for cell in cells if cell.target == name]) for name in targets
        },
        left_out=tuple(left_out),
    )
    return replace(plan, seconds=_total_seconds(plan, facts, study), notes=notes_on_plan(plan, facts, study))


def _check_targets(study: Study, targets: Mapping[str, Target]) -> None:
    if not targets:
        raise SpecError("no target", "add --target NAME=PATH, for example --target local=/var/tmp")
    base = study.compare.base
    if base is not None and base not in targets:
        raise SpecError(f"{base!r} is no target of this run", suggest(base, targets), key="compare.base")


def _surroundings(
    study: Study, targets: Mapping[str, Target], facts: Mapping[str, TargetFacts], host: Host
) -> Surroundings:
    free = [
        fact.free_bytes for name, fact in facts.items() if name in targets and fact.free_bytes is not None
    ]
    return Surroundings(
        host.memory_bytes,
        auto_data_set_bytes(host.memory_bytes, free),
        study.limits.max_rate,
        host.unavailable,
        host.lookups,
    )


def _cells(
    study: Study, targets: Mapping[str, Target], facts: Mapping[str, TargetFacts], host: Host
) -> tuple[list[PlannedCell], list[LeftOut]]:
    """What can be run, and what cannot where the study says that it may be left out."""
    around = _surroundings(study, targets, facts, host)
    works = expand(study)
    cells: list[PlannedCell] = []
    left_out = list(host.absent)
    for target in targets.values():
        own, refused = [], []
        for work in works:
            try:
                own.append(_planned_cell(work, target, facts[target.name], around))
            except SpecError as error:
                if work.swept is not None:
                    refused.append((work, error))
                elif not study.where_possible:
                    raise
                else:
                    left_out.append(LeftOut(target.name, work.group or work.name, error.plain, target.url))
        left_out += _parts_of_grids(study, target, own, refused)
        lost = {f"{one.target}.{one.work}" for one in left_out}
        cells += _with_files_of_their_own([cell for cell in own if cell.group not in lost])
    if not cells:
        raise SpecError("no target can do any of the works", f"the first reason: {left_out[0].reason}")
    return _spread(cells, targets, left_out), left_out


def _parts_of_grids(
    study: Study, target: Target, own: Sequence[PlannedCell], refused: Sequence[tuple[Work, SpecError]]
) -> Iterator[LeftOut]:
    """What of the grids of sweeps a target cannot do: a part, as what does not fit memory, is told; a whole
    grid is as any other work. Raises SpecError."""
    by_sweep: dict[str, list[tuple[Work, SpecError]]] = {}
    for work, error in refused:
        by_sweep.setdefault(work.swept.name if work.swept else work.name, []).append((work, error))
    for name, lost in by_sweep.items():
        left = sum(cell.swept is not None and cell.swept.name == name for cell in own)
        if not left and not study.where_possible:
            raise lost[0][1]
        words = f"{len(lost)} of {len(lost) + left} cells of its grid: {lost[0][1].plain}"
        yield LeftOut(target.name, name, words if left else lost[0][1].plain, target.url)


def _spread(
    cells: Sequence[PlannedCell], targets: Mapping[str, Target], left_out: list[LeftOut]
) -> list[PlannedCell]:
    """The cells, each once for what its kind makes of targets that can do the same work on the same files.

    What has nothing to do there is added to `left_out`.
    """
    found: list[PlannedCell] = []
    for cell in cells:
        own = targets[cell.target]
        able = [one.target for one in cells if one.work == cell.work and own.may_share(targets[one.target])]
        if own.shares is not None and able == [own.name]:
            able = []  # it is known that nobody else sees its files
        jobs = planned(cell.job).spread(cell.job, able)
        if not jobs:
            reason = "no other target of this run leads to the same files"
            left_out.append(LeftOut(own.name, cell.work, reason, own.url))
        for ending, job in jobs:
            work = f"{cell.work}{ending}"
            found.append(replace(cell, id=f"{cell.target}.{work}", work=work, job=job))
    return found


def _planned_cell(work: Work, target: Target, facts: TargetFacts, around: Surroundings) -> PlannedCell:
    found = resolve(work.name, work.options, target, facts, around)
    face = planned(found.job)
    check_runs(work.name, target, found.job, face.told_engine(found.job))
    source = f"work {work.name} on target {target.name}"
    if work.steady is not None:
        face.check_steady(found.job, source)
    if work.search is not None:
        face.check_search(found.job, _highest(work.search), source, around)
    return PlannedCell(
        f"{target.name}.{work.name}",
        target.name,
        work.name,
        work.factors,
        found.job,
        face.layout(found.job),
        face.seconds(found.job),
        found.measures_caches,
        found.notes,
        None if work.group is None else f"{target.name}.{work.group}",
        work.order,
        work.steady,
        work.search,
        work.swept,
    )


def _highest(search: Search) -> float:
    """The highest rate that was asked for; the lowest where the highest is still to be found."""
    return search.high if isinstance(search.high, float) else search.low


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


def auto_data_set_bytes(memory_bytes: int, free_bytes: list[int]) -> int:
    """The data set of `size: auto`: a sixteenth of memory, 256 MiB to 2 GiB, a tenth of free space at most.

    One value for all targets (`free_bytes` of each), because targets are compared.
    """
    wanted = min(max(memory_bytes // AUTO_SIZE_MEMORY_SHARE, AUTO_SIZE_MIN_BYTES), AUTO_SIZE_MAX_BYTES)
    limited = min([wanted, *(free // AUTO_SIZE_FREE_SHARE for free in free_bytes)])
    step = 64 * units.MIB if limited >= 64 * units.MIB else units.MIB
    return limited // step * step


def _total_seconds(plan: Plan, facts: Mapping[str, TargetFacts], study: Study) -> float:
    limit = study.limits.max_rate or NOMINAL_BYTES_PER_S
    layout_s = 0.0
    for target in plan.targets:
        speed = NOMINAL_REMOTE_BYTES_PER_S if facts[target.name].is_remote else NOMINAL_BYTES_PER_S
        layout_s += sum(layout.total_bytes for layout in plan.layouts(target.name)) / min(speed, limit)
    cells = {cell.id: cell for cell in plan.cells}
    slots = [[cells[trial.cell] for trial in slot] for slot in plan.slots()]
    return sum(map(slot_seconds, slots)) + layout_s + TRIAL_OVERHEAD_S * len(slots)
