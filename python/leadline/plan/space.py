"""The room that a plan takes on its targets, and whether they have it."""

from __future__ import annotations

from collections.abc import Sequence

from leadline import units
from leadline.errors import TargetError
from leadline.plan.model import Plan, PlannedCell
from leadline.study.schemes import uses_storage
from leadline.study.study import Study
from leadline.study.target import TargetFacts


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


def bytes_needed(cells: Sequence[PlannedCell]) -> int:
    """The most that these cells take at one time.

    Layouts stay for the whole run; fresh files of one slot are removed before the next.
    """
    layouts = {cell.layout.key: cell.layout.total_bytes for cell in cells if cell.layout is not None}
    fresh: dict[str, int] = {}
    for cell in cells:
        if cell.layout is None and uses_storage(cell.job.engine):
            together = cell.group if cell.order != "sequence" and cell.group else cell.id
            fresh[together] = fresh.get(together, 0) + cell.job.data_set_bytes
    return sum(layouts.values()) + max(fresh.values(), default=0)
