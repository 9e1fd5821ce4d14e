"""The tables of imported workflows: those that failed first, by operation, by host, and every operation.

Means are geometric, as ratios of them are; of the time in a queue, which may be none, the mean is arithmetic.
Only what succeeded took the time that its work takes. What failed after five seconds would make a platform
quick; what still runs has no end: both are counted and named, and no mean or ratio knows them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from leadline import units
from leadline.analysis.statistics.means import arithmetic_mean, mean_of_values
from leadline.verdict.model import FigureRow, FigureTable, Quantity
from leadline.verdict.sections.charts import StageSpan
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


_DRAWN_MAX = 6  # workflows with a chart
_ROWS_MAX = 5000  # of a table; every workflow is in workflows.json
_BRIEF_WORKFLOWS, _BRIEF_HOSTS, _BRIEF_OPERATIONS = 10, 8, 12
_COUNTS = ("Succeeded", "Failed", "Did not end")
_FIGURES = ("Mean duration", "Longest", "Time per GB", "In the queue")
_MEANS = "Of those that succeeded. Means are geometric, of the queue arithmetic; films differ."


def clock_words(moment_ns: int | None) -> str:
    """A moment in UTC."""
    if moment_ns is None:
        return "-"
    return datetime.fromtimestamp(moment_ns / 1e9, UTC).strftime("%Y-%m-%d %H:%M:%S")


def workflow_table(workflows: Sequence[Workflow]) -> FigureTable:
    """A row each: the failed ones, those that are not done, then the longest first."""
    rows = []
    for one in in_order(workflows)[:_ROWS_MAX]:
        seconds = took_s(one)
        why = f"no duration: {'it has no times' if one.state == 'succeeded' else 'failed or not done'}"
        waited = [operation.queue_ns for operation in one.operations if operation.queue_ns is not None]
        values = (
            Quantity(None, "s", reason=why) if seconds is None else Quantity(seconds, "s"),
            Quantity(sum(waited) / 1e9, "s") if waited else Quantity(None, "s", reason="not known"),
        )
        keys = (one.id, one.state, ", ".join(at_fault(one)) or "-", clock_words(one.started_ns))
        rows.append(FigureRow(keys, values, None))
    return FigureTable(
        "workflows",
        "Workflows: failed, not done, then the longest first",
        ("Workflow", "State", "Failed or not ended in", "Started (UTC)"),
        ("Duration", "In queues"),
        tuple(rows),
        f"From the first start to the last end.{_cut(len(rows), len(workflows))}",
        brief=_BRIEF_WORKFLOWS,
    )


def _cut(shown: int, every: int) -> str:
    return f" The first {shown:,} of {every:,}." if shown < every else ""


def operation_table(workflows: Sequence[Workflow]) -> FigureTable:
    """Every operation with its times, workflow by workflow in the same order."""
    pairs = [(workflow, one) for workflow in in_order(workflows) for one in workflow.operations]
    rows = tuple(_operation_row(workflow, one) for workflow, one in pairs[:_ROWS_MAX])
    return FigureTable(
        "operations",
        "Operations, with their times",
        ("Workflow", "Operation", "State", "Host", "Started (UTC)", "Finished (UTC)"),
        ("In the queue", "Duration"),
        rows,
        f"In the queue: as the platform counts it, taken as milliseconds.{_cut(len(rows), len(pairs))}",
        brief=_BRIEF_OPERATIONS,
    )


def _operation_row(workflow: Workflow, one: Operation) -> FigureRow:
    keys = (workflow.id, one.name, one.state or "-", one.host or "-")
    times = (clock_words(one.started_ns), clock_words(one.completed_ns))
    queue = one.queue_ns
    values = (
        Quantity(None, "s", reason="not known") if queue is None else Quantity(queue / 1e9, "s"),
        _duration(one),
    )
    return FigureRow((*keys, *times), values, None)


def _duration(one: Operation) -> Quantity:
    if one.seconds is None:
        return Quantity(None, "s", reason="not known")
    if one.state == "succeeded":
        return Quantity(one.seconds, "s")
    return Quantity(None, "s", text=_ended_after(one, one.seconds))


def _ended_after(one: Operation, seconds: float) -> str:
    return f"{one.state or 'no state'} after {units.format_number(seconds)} s"


def operations_by_name(workflows: Sequence[Workflow]) -> FigureTable:
    """A row for each operation by its name."""
    runs = _runs(workflows)
    rows = tuple(_figure_row((name,), own, runs) for name, own in by_name(operations_of(workflows)).items())
    return FigureTable("by_operation", "By operation", ("Operation", *_COUNTS), _FIGURES, rows, _MEANS)


def _runs(workflows: Sequence[Workflow]) -> dict[int, Run]:
    return {id(run.operation): run for run in runs_of(workflows)}


def operations_by_host(workflows: Sequence[Workflow]) -> FigureTable:
    """A row for each operation on each host; none where there is one host."""
    runs = _runs(workflows)
    hosts: dict[str, list[Operation]] = {}
    for one in operations_of(workflows):
        hosts.setdefault(one.host or "-", []).append(one)
    rows = [
        _figure_row((host, name), own, runs)
        for host in sorted(hosts)
        for name, own in sorted(by_name(hosts[host]).items())
    ]
    several = len({row.keys[0] for row in rows}) > 1
    return FigureTable(
        "by_host",
        "By host",
        ("Host", "Operation", *_COUNTS),
        _FIGURES,
        tuple(rows) if several else (),
        _MEANS,
        brief=_BRIEF_HOSTS,
    )


def _figure_row(
    names: tuple[str, ...], operations: Sequence[Operation], known: Mapping[int, Run]
) -> FigureRow:
    gone, runs = not_done(operations), [known[id(one)] for one in operations if id(one) in known]
    done = sum(one.state == "succeeded" for one in operations)
    keys = (*names, str(done), str(len(gone.failed)), str(len(gone.unended)))
    none = Quantity(None, "s", reason="none succeeded with both times")
    values = (
        _mean([run.seconds for run in runs], "s", "none succeeded, or one took less than the clock shows"),
        Quantity(max(run.seconds for run in runs), "s") if runs else none,
        _mean([run.seconds_per_gb for run in runs], "s/GB", "sizes are not known"),
        _waited([run.queue_s for run in runs]),
    )
    return FigureRow(keys, values, None)


def _mean(values: Sequence[float | None], unit: str, why: str) -> Quantity:
    found = mean_of_values([value for value in values if value is not None])
    if found is None:
        return Quantity(None, unit, reason=why)
    return Quantity(found.value, unit, found.low, found.high, found.count)


def _waited(values: Sequence[float | None]) -> Quantity:
    found = arithmetic_mean([value for value in values if value is not None])
    if found is None:
        return Quantity(None, "s", reason="not known")
    return Quantity(found.value, "s", found.low, found.high, found.count)


def spans_of(workflows: Sequence[Workflow]) -> Iterator[StageSpan]:
    """What the chart shows: operations of the first workflows of the table, in its order."""
    drawn = [one for one in in_order(workflows) if any(_has_times(it) for it in one.operations)]
    for workflow in drawn[:_DRAWN_MAX]:
        name = f"workflow {workflow.id}"
        if workflow.state != "succeeded":
            name += f" ({workflow.state})"
        for one in workflow.operations:
            if workflow.started_ns is None or one.started_ns is None or one.seconds is None:
                continue
            begin_s = (one.started_ns - workflow.started_ns) / 1e9
            label = "" if one.state == "succeeded" else _ended_after(one, one.seconds)
            end_s = begin_s + one.seconds
            yield StageSpan(name, one.state, workflow.id, 1, 1, one.name, begin_s, end_s, None, label=label)


def _has_times(one: Operation) -> bool:
    return one.started_ns is not None and one.seconds is not None
