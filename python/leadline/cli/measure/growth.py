"""Decides between the blocks of a run what is run once more: by `--until`, `--budget`, a study's `enough`.

Here because a run may not know how it is judged: `leadline run` hands it this function.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from leadline.plan.model import Plan
    from leadline.run.model import Growth, RunOptions
    from leadline.store.journal import Event
    from leadline.verdict.comparisons.stopping import WorkState


def make_growth(path: Path) -> Growth:
    """A function that names the cells of the next block of the result in `path`; none when it is done."""

    def grow(plan: Plan, options: RunOptions) -> Sequence[str]:
        from leadline.store.reader import open_result

        cells = _of_sweeps(path, plan) or _of_works(path, plan, options)
        if options.budget_s is not None and cells:
            from leadline.analysis.duration import spent_s

            events = open_result(path).events
            if expected_s(plan, cells, events) > options.budget_s - spent_s(events):
                return ()
        return cells

    return grow


def _of_sweeps(path: Path, plan: Plan) -> Sequence[str]:
    """What the sweeps try next: they have no blocks beforehand, so these come first."""
    from leadline.plan.make import sweeps_of
    from leadline.store.reader import open_result

    if not sweeps_of(plan.cells):
        return ()
    from leadline.analysis.knee import next_of_sweeps
    from leadline.verdict.inputs import tables_of

    return next_of_sweeps(plan, tables_of(open_result(path), plan))


def _of_works(path: Path, plan: Plan, options: RunOptions) -> Sequence[str]:
    """The next block of the works that are no sweeps."""
    from leadline.plan.make import without_sweeps
    from leadline.verdict.comparisons.stopping import next_works

    plan = without_sweeps(plan)
    if not plan.cells:
        return ()
    if options.until is None and options.budget_s is None:
        return _until_enough(path, plan)
    works = next_works(states_of(path, plan), options.until, widest_only=options.budget_s is not None)
    return [cell.id for cell in plan.cells if cell.work in works]


def _until_enough(path: Path, plan: Plan) -> Sequence[str]:
    """All cells while blocks lack by what the first ones say, where the rest of them fits its time."""
    from leadline.analysis.duration import spent_s
    from leadline.store.reader import open_result
    from leadline.study.study import Study
    from leadline.verdict.comparisons.stopping import enough_blocks
    from leadline.verdict.inputs import tables_of

    result = open_result(path)
    study = Study.from_json(result.manifest["study"])
    run = max(trial.block for trial in plan.trials)
    if study.enough is None:
        return ()
    base, metrics = study.compare.base or plan.targets[0].name, study.compare.metrics
    wanted = enough_blocks(plan, tables_of(result, plan), base, metrics, study.enough.tells)
    if wanted is None or wanted <= run:
        return ()
    cells = [cell.id for cell in plan.cells]
    left_s = (wanted - run) * expected_s(plan, cells, result.events)
    return cells if spent_s(result.events) + left_s <= study.enough.within / 1e9 else ()


def states_of(path: Path, plan: Plan) -> tuple[WorkState, ...]:
    """How narrow each work's interval is by what is stored so far."""
    from leadline.store.reader import open_result
    from leadline.study.study import Study
    from leadline.verdict.comparisons.stopping import work_states
    from leadline.verdict.inputs import tables_of

    result = open_result(path)
    tables = tables_of(result, plan)
    asked = Study.from_json(result.manifest["study"]).compare
    base = asked.base or plan.targets[0].name
    work_of = {cell.id: cell.work for cell in plan.cells}
    blocks: dict[str, set[int]] = {cell.work: set() for cell in plan.cells}
    for trial in plan.trials:
        blocks[work_of[trial.cell]].add(trial.block)
    tried = {work: len(found) for work, found in blocks.items()}
    return work_states(plan.cells, tables, base, tried, asked.metrics)


def expected_s(plan: Plan, cells: Sequence[str], events: Sequence[Event]) -> float:
    """What a block of these cells will take: each slot as long as its slowest one until now.

    A slot is what runs at a time: a trial, the jobs of a group (all of them, whichever was named), each probe
    of a search.
    """
    from leadline.plan.make import with_block
    from leadline.plan.model import TRIAL_OVERHEAD_S, slot_seconds

    seen = _slot_durations_s(plan, events)
    slots = with_block(plan, cells).slots(without={trial.id for trial in plan.trials})
    total_s = 0.0
    for slot in slots:
        key = frozenset(trial.cell for trial in slot)
        planned = [plan.cell(trial.cell) for trial in slot]
        total_s += seen.get(key) or slot_seconds(planned) + TRIAL_OVERHEAD_S
    return total_s


def _slot_durations_s(plan: Plan, events: Sequence[Event]) -> dict[frozenset[str], float]:
    """By the cells of a slot: the longest that one took, its workers' start included, files laid out not."""
    cells = {trial.id: trial.cell for trial in plan.trials}
    begun: dict[str, int] = {}
    longest: dict[frozenset[str], float] = {}
    before_ns = 0
    for event in events:
        trials = [str(name) for name in event.details.get("trials", [event.details.get("trial")])]
        if event.event == "trial_started":
            begun[trials[0]] = before_ns or event.t_ns
        elif event.event in ("trial_finished", "trials_finished") and all(t in begun for t in trials):
            key = frozenset(cells.get(trial, "") for trial in trials)
            took_s = (event.t_ns - min(begun[trial] for trial in trials)) / 1e9
            longest[key] = max(took_s, longest.get(key, 0.0))
        before_ns = event.t_ns
    return longest
