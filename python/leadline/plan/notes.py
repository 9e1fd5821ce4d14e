"""What a plan says beside its trials: how works belong together, and where they are not alike."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from leadline import units
from leadline.plan.model import TRIAL_OVERHEAD_S, Plan, PlannedCell
from leadline.plan.sweeps import starting, sweep_trials, sweeps_of, trial_seconds
from leadline.study.kind.face import NOMINAL_BYTES_PER_S, NOMINAL_REMOTE_BYTES_PER_S
from leadline.study.left_out import LeftOut
from leadline.study.study import Study
from leadline.study.target import TargetFacts
from leadline.workloads.planned import PLANNED

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
