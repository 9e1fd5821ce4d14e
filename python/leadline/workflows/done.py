"""Which operations of imported workflows are durations, which are not, and in what order workflows are shown.

Only what succeeded took the time that its work takes. What failed after five seconds would make a platform
quick; what still runs has no end: both are counted and named, and no mean or ratio knows them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from leadline.workflows.reading import Operation, Workflow

_GB = 1e9
_S, _MS = 10**9, 10**6
_SUCCEEDED, _FAILED, _SKIPPED = "succeeded", "failed", "skipped"
_BEGUN = ("running", "paused", "retry")


@dataclass(frozen=True)
class Run:
    """One operation of one workflow that succeeded and took a known time."""

    workflow: Workflow
    operation: Operation
    seconds: float

    @property
    def seconds_per_gb(self) -> float | None:
        """Where the size of the media is known."""
        return self.seconds / (self.workflow.bytes / _GB) if self.workflow.bytes else None

    @property
    def queue_s(self) -> float | None:
        """How long it waited before, where that is known."""
        return None if self.operation.queue_ns is None else self.operation.queue_ns / 1e9


def runs_of(workflows: Sequence[Workflow]) -> list[Run]:
    """Every operation that succeeded and has both times, whatever became of its workflow."""
    return [
        Run(workflow, operation, operation.seconds)
        for workflow in workflows
        for operation in workflow.operations
        if operation.seconds is not None and operation.state == _SUCCEEDED
    ]


@dataclass(frozen=True)
class NotDone:
    """Operations that are no durations: those that failed, and those that began and did not end."""

    failed: tuple[Operation, ...]
    unended: tuple[Operation, ...]


def not_done(operations: Sequence[Operation]) -> NotDone:
    """Those of `operations` that failed or did not end; one that was never begun is neither."""
    return NotDone(
        tuple(one for one in operations if one.state == _FAILED),
        tuple(one for one in operations if _is_unended(one)),
    )


def _is_unended(one: Operation) -> bool:
    if one.state in (_SUCCEEDED, _FAILED, _SKIPPED):
        return False
    return one.started_ns is not None or one.state in _BEGUN


def by_name(operations: Sequence[Operation]) -> dict[str, list[Operation]]:
    """Those that were begun, by name, in the order met."""
    gone = not_done(operations)
    begun = {id(one) for one in (*gone.failed, *gone.unended)}
    found: dict[str, list[Operation]] = {}
    for one in operations:
        if one.state == _SUCCEEDED or id(one) in begun:
            found.setdefault(one.name, []).append(one)
    return found


def operations_of(workflows: Sequence[Workflow]) -> list[Operation]:
    """All of them, workflow by workflow."""
    return [operation for workflow in workflows for operation in workflow.operations]


def took_s(workflow: Workflow) -> float | None:
    """From its first start to its last end; None where it did not succeed, or has no times."""
    if workflow.state != _SUCCEEDED or workflow.started_ns is None or workflow.completed_ns is None:
        return None
    return (workflow.completed_ns - workflow.started_ns) / 1e9


def in_order(workflows: Sequence[Workflow]) -> list[Workflow]:
    """Those that failed, those that are not done, then the others, the longest first."""

    def place(one: Workflow) -> tuple[int, float]:
        if one.state != _SUCCEEDED:
            return (0 if one.state == _FAILED else 1), 0.0
        return 2, -(took_s(one) or 0.0)

    return sorted(workflows, key=place)


def at_fault(workflow: Workflow) -> tuple[str, ...]:
    """The operations of a workflow that failed or did not end."""
    gone = not_done(workflow.operations)
    return tuple(dict.fromkeys(one.name for one in (*gone.failed, *gone.unended)))


def rounding_s(workflows: Sequence[Workflow]) -> float:
    """The standard deviation that a duration has because the platform's clock is cut to whole steps.

    A duration is the difference of two such times, each off by an even chance within a step.
    """
    moments = [
        moment
        for operation in operations_of(workflows)
        for moment in (operation.started_ns, operation.completed_ns)
        if moment is not None
    ]
    step_ns = _S if all(moment % _S == 0 for moment in moments) else _MS
    return step_ns / 1e9 / math.sqrt(6)
