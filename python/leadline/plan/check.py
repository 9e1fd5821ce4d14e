"""What holds a plan against its targets: whether the engine would take a job, and whether there is room."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from leadline import _core, units
from leadline.errors import SpecError, TargetError
from leadline.plan.model import Plan, PlannedCell
from leadline.study.schemes import uses_storage
from leadline.study.study import Study
from leadline.study.target import Target, TargetFacts


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


# What only a run decides; any value within the engine's bounds stands in for it.
_STAND_INS = {
    "trial": "planned",
    "directory": "/",
    "prefix": "planned",
    "seed": 0,
    "generation": 1,
    "interval_ns": units.NS_PER_S,
    "parent_pid": None,
}
_GRACE_NS = 3600 * units.NS_PER_S
_REFUSAL = re.compile(r"(?P<key>[a-z_]+): (?P<message>.*?)(?:; (?P<remedy>.*))?", re.DOTALL)
# A study writes these with units.
_WRITTEN = {
    "runtime_ns": "runtime",
    "ramp_time_ns": "ramp_time",
    "thinktime_ns": "thinktime",
    "rate_bytes_per_s": "rate",
}


class EngineJob(Protocol):
    """What is asked of a job here."""

    @property
    def engine_format(self) -> str:
        """The format of its JSON."""

    @property
    def runtime_ns(self) -> int:
        """How long it is measured."""

    @property
    def ramp_time_ns(self) -> int:
        """Before that."""


def check_runs(work: str, target: Target, job: EngineJob, told: Mapping[str, Any] | None) -> None:
    """Raise SpecError where the engine would refuse the job; what the engine does not run is not asked.

    `told` is what the engine is told of it; None: it has no part in it.
    """
    if told is None or job.engine_format not in _core.job_formats():
        return
    asked = {
        "format": job.engine_format,
        **_STAND_INS,
        "deadline_ns": job.ramp_time_ns + job.runtime_ns + _GRACE_NS,
        **told,
    }
    if target.location is not None:
        asked["location"] = target.location
    try:
        _core.check_job(json.dumps(asked))
    except ValueError as error:
        raise _refused(str(error), f"workload {work} on target {target.name}") from None


def _refused(words: str, source: str) -> SpecError:
    found = _REFUSAL.fullmatch(words)
    if found is None:
        return SpecError(words, "choose other values", source=source)
    key, message, remedy = found["key"], found["message"], found["remedy"]
    return SpecError(message, remedy or "choose another value", source=source, key=_WRITTEN.get(key, key))
