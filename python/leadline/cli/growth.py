"""Decides, between the blocks of a run with `--until` or `--budget`, what is run once more.

Here because a run may not know how it is judged: `leadline run` hands it this function.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from leadline.plan import Plan
    from leadline.run.model import Growth, RunOptions
    from leadline.store.journal import Event
    from leadline.verdict.stopping import WorkState


def make_growth(path: Path) -> Growth:
    """A function that names the cells of the next block of the result in `path`; none when it is done."""

    def grow(plan: Plan, options: RunOptions) -> Sequence[str]:
        from leadline.store.reader import open_result
        from leadline.verdict.stopping import next_works

        if options.until is None and options.budget_s is None:
            return ()
        events = open_result(path).events
        works = next_works(states_of(path, plan), options.until, widest_only=options.budget_s is not None)
        cells = [cell for cell in plan.cells if cell.work in works]
        if options.budget_s is not None:
            left_s = options.budget_s - spent_s(events)
            if _expected_s(plan, [cell.id for cell in cells], events) > left_s:
                return ()
        return [cell.id for cell in cells]

    return grow


def states_of(path: Path, plan: Plan) -> tuple[WorkState, ...]:
    """How narrow each work's interval is by what is stored so far."""
    from leadline.spec.study import Study
    from leadline.store.reader import open_result
    from leadline.verdict.findings import tables_of
    from leadline.verdict.stopping import work_states

    result = open_result(path)
    tables = tables_of(result, plan)
    base = Study.from_json(result.manifest["study"]).compare.base or plan.targets[0].name
    work_of = {cell.id: cell.work for cell in plan.cells}
    blocks: dict[str, set[int]] = {cell.work: set() for cell in plan.cells}
    for trial in plan.trials:
        blocks[work_of[trial.cell]].add(trial.block)
    return work_states(plan.cells, tables, base, {work: len(found) for work, found in blocks.items()})


def spent_s(events: Sequence[Event]) -> float:
    """Time that the run has taken so far, without the gaps between a run and its resumption."""
    total_ns, started_ns, last_ns = 0, None, 0
    for event in events:
        if event.event == "run_started":
            total_ns += last_ns - started_ns if started_ns is not None else 0
            started_ns = event.t_ns
        last_ns = event.t_ns
    return (total_ns + (last_ns - started_ns if started_ns is not None else 0)) / 1e9


def _expected_s(plan: Plan, cells: Sequence[str], events: Sequence[Event]) -> float:
    """What a block of these cells will take: as long as their slowest trials until now."""
    begun = {str(e.details.get("trial")): e.t_ns for e in events if e.event == "trial_started"}
    longest: dict[str, float] = {}
    for event in events:
        trial = str(event.details.get("trial"))
        if event.event == "trial_finished" and trial in begun:
            cell = str(event.details.get("cell"))
            longest[cell] = max((event.t_ns - begun[trial]) / 1e9, longest.get(cell, 0.0))
    return sum(longest.get(cell.id, cell.seconds) for cell in plan.cells if cell.id in cells)
