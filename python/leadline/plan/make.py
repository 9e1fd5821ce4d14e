"""How a plan is made of a study: every work on every target, in an order, with its space, time and notes.

The order of trials is seeded, block by block; what belongs together stays together in a block. Each sweep
starts with a few cells over the whole of its grid.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product

from leadline import units
from leadline.errors import SpecError
from leadline.plan.check import bytes_needed, check_runs
from leadline.plan.model import TRIAL_OVERHEAD_S, Plan, PlannedCell, Trial, slot_seconds
from leadline.study.kind.interface import NOMINAL_BYTES_PER_S, NOMINAL_REMOTE_BYTES_PER_S, Surroundings
from leadline.study.kinds import PLANNED, planned, resolve
from leadline.study.study import Study, Work, expand
from leadline.study.target import LeftOut, Target, TargetFacts
from leadline.study.work import Search
from leadline.study.yaml_source import suggest

_ALONE, _EACH = 5, 3  # levels of the only option, and of each of two


def sweeps_of(cells: Iterable[PlannedCell]) -> dict[tuple[str, str], list[PlannedCell]]:
    """The cells of every sweep, by its target and its name."""
    found: dict[tuple[str, str], list[PlannedCell]] = {}
    for cell in cells:
        if cell.swept is not None:
            found.setdefault((cell.target, cell.swept.name), []).append(cell)
    return found


def without_sweeps(plan: Plan) -> Plan:
    """The plan of the works whose blocks are planned."""
    swept = {cell.id for cell in plan.cells if cell.swept is not None}
    return replace(
        plan,
        cells=tuple(cell for cell in plan.cells if cell.id not in swept),
        trials=tuple(trial for trial in plan.trials if trial.cell not in swept),
    )


def starting(cells: Iterable[PlannedCell]) -> frozenset[str]:
    """The ids of the cells that sweeps start with."""
    found: set[str] = set()
    for own in sweeps_of(cells).values():
        places = {cell.swept.place: cell.id for cell in own if cell.swept}
        levels = own[0].swept.sweep.levels if own[0].swept else ()
        found |= {places[place] for place in first_cells([len(one) for one in levels], places)}
    return frozenset(found)


def sweep_trials(own: Sequence[PlannedCell]) -> int:
    """The most trials that a sweep of these cells may have."""
    return own[0].swept.sweep.trials if own[0].swept else 0


def most_seconds(plan: Plan) -> float:
    """How long the plan takes if its sweeps have all the trials that they may, each as long as their mean."""
    planned = Counter(trial.cell for trial in plan.trials)
    added = 0.0
    for own in sweeps_of(plan.cells).values():
        count = sweep_trials(own) - sum(planned[cell.id] for cell in own)
        added += max(count, 0) * trial_seconds(own)
    return plan.seconds + added


def trial_seconds(own: Sequence[PlannedCell]) -> float:
    """How long a trial of one of these cells takes on average."""
    return sum(cell.seconds for cell in own) / len(own) + TRIAL_OVERHEAD_S


def first_cells(levels: Sequence[int], cells: Collection[tuple[int, ...]]) -> tuple[tuple[int, ...], ...]:
    """Of a grid with so many levels of each option the cells to begin with, of those that can be tried."""
    most = _ALONE if len(levels) == 1 else _EACH
    axes = [sorted({round(n * (count - 1) / (most - 1)) for n in range(most)}) for count in levels]
    nearest = (min(sorted(cells), key=lambda cell: _distance(cell, one)) for one in product(*axes))
    return tuple(sorted(dict.fromkeys(nearest)))


def _distance(cell: tuple[int, ...], other: tuple[int, ...]) -> int:
    return sum((a - b) ** 2 for a, b in zip(cell, other, strict=True))


def order_trials(
    cells: list[PlannedCell], blocks: int, seed: int, states: Mapping[str, str] | None = None
) -> tuple[Trial, ...]:
    """Each block is one pass over all cells, in a random order of its own; a group's jobs stay together.

    `states` are those of targets by name. To enter one costs time, so the cells of a state stand together;
    every second block has the states of the one before in reverse (A B B A): a steady drift of the system
    falls on all of them alike, and two blocks meet in the same state.

    Of a sweep the first block has the cells that it starts with; which follow, trials decide.
    """
    trials: list[Trial] = []
    start = starting(cells)
    for block in range(1, blocks + 1):
        own = [cell for cell in cells if cell.swept is None or (block == 1 and cell.id in start)]
        trials += _block(own, block, len(trials) + 1, seed, states or {})
    return tuple(trials)


def state_order(states: Iterable[str], block: int, seed: int) -> list[str]:
    """The states of a block in their order: drawn for the odd ones, reversed in the even ones after them."""
    found = list(dict.fromkeys(states))
    pair = (block + 1) // 2
    random.Random(f"{seed}:states:{pair}").shuffle(found)  # noqa: S311 - reproducible order, no secret
    return found if block % 2 else found[::-1]


def _block(
    cells: list[PlannedCell], block: int, first: int, seed: int, states: Mapping[str, str]
) -> list[Trial]:
    shuffled = _units(cells)
    random.Random(f"{seed}:{block}").shuffle(shuffled)  # noqa: S311 - reproducible order, no secret
    if states:
        ranks = {state: at for at, state in enumerate(state_order(states.values(), block, seed))}
        shuffled.sort(key=lambda unit: ranks.get(states.get(unit[0][0].target, ""), -1))
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
    more = _block(chosen, block, len(plan.trials) + 1, plan.seed, states_of(plan.targets))
    return replace(plan, trials=(*plan.trials, *more))


def states_of(targets: Iterable[Target]) -> dict[str, str]:
    """The states of targets that have one, by the targets' names."""
    return {target.name: target.state for target in targets if target.state is not None}


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
        f"time assumes {units.format_rate(NOMINAL_BYTES_PER_S)} for prefilling files,"
        f" {units.format_rate(NOMINAL_REMOTE_BYTES_PER_S)} on other hosts,"
        f" and {TRIAL_OVERHEAD_S} s around each trial",
        f"space: {study.limits.reserve} of each target is kept free (limits.reserve)",
    ]
    notes += dict.fromkeys(_assumptions(plan.cells))
    if study.limits.max_rate is not None:
        notes.append(f"no trial and no prefill goes above {units.format_rate(study.limits.max_rate)}")
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
        notes.append("one block gives no confidence interval: nothing can be compared")
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
            f"sweep {target}.{name}: a grid of {len(own)} cells of {' x '.join(asked.over)}. It starts"
            f" with {first}; block by block it chooses which to try until it knows the least that give"
            f" {100 * asked.share:.4g} % of the plateau, at most {most} trials"
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


def _blocks(study: Study, targets: Mapping[str, Target]) -> int:
    """Fewer where the study says so of a single target: six are for comparisons, and there is none."""
    alone = study.enough.alone if study.enough and len(targets) == 1 else None
    return study.blocks if alone is None else alone


def make_plan(
    study: Study, targets: Mapping[str, Target], facts: Mapping[str, TargetFacts], host: Host, seed: int
) -> Plan:
    """Every trial of a study, in an order that depends on `seed` alone.

    Raises SpecError for what a target cannot do.
    """
    _check_targets(study, targets)
    cells, left_out = _cells(study, targets, facts, host)
    blocks = _blocks(study, targets)
    plan = Plan(
        study.name,
        study.title or study.name,
        study.about,
        seed,
        blocks,
        tuple(targets.values()),
        tuple(cells),
        order_trials(cells, blocks, seed, states_of(targets.values())),
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
        raise SpecError("no target can do any of the workloads", f"the first reason: {left_out[0].reason}")
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
    source = f"workload {work.name} on target {target.name}"
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
