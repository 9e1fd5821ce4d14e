"""What a media platform's own times say: operations, queues, hosts, and whether a change made a difference.

Nothing was measured here: times are the platform's, and films differ. So figures are means over workflows, a
change is judged by time per GB where sizes are known, and every doubt is said.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from leadline import units
from leadline.analysis.statistics.means import arithmetic_mean, unpaired_ratio
from leadline.analysis.statistics.multiplicity import ALPHA
from leadline.store.reader import Result
from leadline.verdict.compared.deciding import outcome_of
from leadline.verdict.model import (
    FigureRow,
    FigureTable,
    Findings,
    Quantity,
    Statement,
)
from leadline.verdict.private import HOST, private_texts
from leadline.verdict.sections.charts import StageSpan
from leadline.verdict.sections.stages import stages_section
from leadline.workflows.reading import Operation, Workflow
from leadline.workflows.store import read_stored_workflows

_GB = 1e9
_TIMES = "\u00d7"  # multiplication sign
_SHOWN_MAX = 5  # workflows whose operations are listed one by one
_SAID_MAX = 12
_MARGIN = 0.05
_CLOCK_S = 60.0  # what may lie between operations before it is said


@dataclass(frozen=True)
class Run:
    """One operation of one workflow that took a known time."""

    workflow: Workflow
    operation: Operation
    seconds: float

    @property
    def seconds_per_gb(self) -> float | None:
        """Where the size of the media is known."""
        return self.seconds / (self.workflow.bytes / _GB) if self.workflow.bytes else None


def workflow_findings(result: Result) -> Findings:
    """Everything that can be said of imported workflows."""
    workflows = read_stored_workflows(result)
    change = result.manifest.get("since_change_ns")
    runs = runs_of(workflows)
    tables = [_operations(workflows), _by_operation(runs), _by_host(runs)]
    statements = [_headline(workflows, runs)]
    if isinstance(change, int):
        table, said = _change(runs, change)
        tables.insert(1, table)
        statements += said
    statements += [*_queues(runs), *_unfinished(workflows), *_lacking(workflows), *_gaps(workflows)]
    source = result.manifest.get("imported", {})
    return Findings(
        id=str(result.manifest["id"]),
        kind="workflows",
        title=str(result.manifest.get("title", "")),
        about="Times are the platform's own; nothing was measured here.",
        created=str(result.manifest.get("created", "")),
        state="VALID",
        targets=(),
        cells=(),
        comparisons=(),
        statements=tuple(
            sorted(statements, key=lambda one: ("headline", "finding", "caution").index(one.tone))
        ),
        version=str(result.manifest.get("version", "")),
        reproduce=(f"leadline import opencast {source.get('source', '')}".rstrip(),),
        sections=(stages_section(tuple(t for t in tables if t.rows), tuple(_spans(workflows))),),
        private={**private_texts(result.manifest), **dict.fromkeys(_hosts(workflows), HOST)},
    )


def _hosts(workflows: Sequence[Workflow]) -> Iterator[str]:
    yield from (one.host for workflow in workflows for one in workflow.operations if one.host)


def runs_of(workflows: Sequence[Workflow]) -> list[Run]:
    """Every operation that came to its end with both times, the skipped ones left out."""
    return [
        Run(workflow, operation, operation.seconds)
        for workflow in workflows
        for operation in workflow.operations
        if operation.seconds is not None and operation.state != "skipped"
    ]


def _names(runs: Sequence[Run]) -> list[str]:
    return list(dict.fromkeys(run.operation.name for run in runs))


def _mean(values: Sequence[float | None], unit: str, why: str = "not known") -> Quantity:
    known = [value for value in values if value is not None]
    found = arithmetic_mean(known) if known else None
    if found is None:
        return Quantity(None, unit, reason=why)
    return Quantity(found.value, unit, found.low, found.high, found.count)


def _headline(workflows: Sequence[Workflow], runs: Sequence[Run]) -> Statement:
    states: dict[str, int] = {}
    for workflow in workflows:
        states[workflow.state] = states.get(workflow.state, 0) + 1
    listed = ", ".join(f"{count} {state}" for state, count in states.items())
    ranked = sorted(
        ((sum(run.seconds for run in runs if run.operation.name == name), name) for name in _names(runs)),
        reverse=True,
    )
    whole_s = sum(seconds for seconds, _ in ranked)
    most = [f"{name} {seconds / whole_s:.0%}" for seconds, name in ranked[:3] if whole_s > 0]
    text = f"{len(workflows)} workflows ({listed})"
    if most:
        text += f"; of the time in operations most was spent in {', '.join(most)}"
    return Statement("headline", f"{text}.", says="workflows_time")


def _operations(workflows: Sequence[Workflow]) -> FigureTable:
    rows = []
    for workflow in workflows[:_SHOWN_MAX]:
        for operation in workflow.operations:
            keys = (
                workflow.id,
                operation.name,
                operation.state or "-",
                operation.host or "-",
                _clock(operation.started_ns),
                _clock(operation.completed_ns),
            )
            queue, seconds = operation.queue_ns, operation.seconds
            values = (
                Quantity(None, "s", reason="not known") if queue is None else Quantity(queue / 1e9, "s"),
                Quantity(None, "s", reason="not known") if seconds is None else Quantity(seconds, "s"),
            )
            rows.append(FigureRow(keys, values, "VALID"))
    note = "In the queue: as the platform counts it, taken as milliseconds."
    if len(workflows) > _SHOWN_MAX:
        note += f" The first {_SHOWN_MAX} of {len(workflows)} workflows."
    return FigureTable(
        "operations",
        "Operations, with their times",
        ("Workflow", "Operation", "State", "Host", "Started (UTC)", "Finished (UTC)"),
        ("In the queue", "Duration"),
        tuple(rows),
        note,
    )


def _clock(moment_ns: int | None) -> str:
    if moment_ns is None:
        return "-"
    return datetime.fromtimestamp(moment_ns / 1e9, UTC).strftime("%Y-%m-%d %H:%M:%S")


def _queue_s(run: Run) -> float | None:
    return None if run.operation.queue_ns is None else run.operation.queue_ns / 1e9


def _by_operation(runs: Sequence[Run]) -> FigureTable:
    rows = []
    for name in _names(runs):
        own = [run for run in runs if run.operation.name == name]
        rows.append(FigureRow((name, str(len(own))), _figures(own), "VALID"))
    return FigureTable(
        "by_operation",
        "By operation",
        ("Operation", "Times done"),
        ("Duration", "Longest", "Time per GB", "In the queue"),
        tuple(rows),
        "Means over workflows, whose films differ. Time per GB: where the platform says how large they are.",
    )


def _figures(own: Sequence[Run]) -> tuple[Quantity, ...]:
    return (
        _mean([run.seconds for run in own], "s"),
        Quantity(max(run.seconds for run in own), "s"),
        _mean([run.seconds_per_gb for run in own], "s/GB", "sizes are not known"),
        _mean([_queue_s(run) for run in own], "s"),
    )


def _by_host(runs: Sequence[Run]) -> FigureTable:
    rows = []
    places = dict.fromkeys((run.operation.host or "-", run.operation.name) for run in runs)
    for host, name in sorted(places):
        own = [run for run in runs if (run.operation.host or "-", run.operation.name) == (host, name)]
        rows.append(FigureRow((host, name, str(len(own))), _figures(own), "VALID"))
    several = len({host for host, _ in places}) > 1
    return FigureTable(
        "by_host",
        "By host",
        ("Host", "Operation", "Times done"),
        ("Duration", "Longest", "Time per GB", "In the queue"),
        tuple(rows) if several else (),
    )


def _change(runs: Sequence[Run], change_ns: int) -> tuple[FigureTable, list[Statement]]:
    """Operations that began before and after a moment, such as that of a new mount."""
    rows, parts, evidence = [], [], []
    sized = all(run.workflow.bytes for run in runs)
    value: Callable[[Run], float] = (
        (lambda run: run.seconds_per_gb or 0.0) if sized else (lambda run: run.seconds)
    )
    unit = "s/GB" if sized else "s"
    names = _names(runs)
    level = ALPHA / max(1, len(names))
    for name in names:
        own = [run for run in runs if run.operation.name == name]
        before = [value(run) for run in own if (run.operation.started_ns or 0) < change_ns]
        after = [value(run) for run in own if (run.operation.started_ns or 0) >= change_ns]
        ratio = unpaired_ratio(before, after)
        found = ratio.estimate(level) if ratio else None
        verdict = outcome_of(found, False, _MARGIN)
        times = Quantity(None, _TIMES, reason="not on both sides of the date, or of no length")
        if found is not None:
            times = Quantity(found.value, _TIMES, found.low, found.high, found.count)
            parts.append(_change_words(name, verdict, found.low, found.high))
            evidence.append(
                f"{name}: {units.format_number(found.value)} times, {len(before)} before, {len(after)} after"
            )
        keys = (name, str(len(before)), str(len(after)), verdict if found else "-")
        rows.append(FigureRow(keys, (_mean(before, unit), _mean(after, unit), times), "VALID"))
    day = _clock(change_ns)
    table = FigureTable(
        "since_change",
        f"Before and after {day} UTC",
        ("Operation", "Done before", "Done after", "Verdict"),
        ("Before", "After", "After / before"),
        tuple(rows),
        f"The ratio is of geometric means; intervals hold together at {1 - ALPHA:.0%} for all operations.",
    )
    said = (
        [
            Statement(
                "finding",
                f"Since {day} UTC: {'; '.join(parts)}.",
                tuple(evidence[:_SAID_MAX]),
                says="workflows_changed",
            )
        ]
        if parts
        else []
    )
    if not parts:
        said.append(
            Statement(
                "caution",
                f"No operation was done both before and after {day} UTC.",
                says="workflows_on_one_side",
            )
        )
    elif not sized:
        text = "Sizes are not known for all films: a change of the films would look like one of the platform."
        said.append(Statement("caution", text, says="workflows_sizes_unknown"))
    return table, said


def _change_words(name: str, verdict: str, low: float | None, high: float | None) -> str:
    if low is None or high is None or verdict == "undecided":
        return f"{name} is undecided"
    if verdict == "same":
        return f"{name} is the same within {_MARGIN:.0%}"
    if verdict == "faster":
        low, high = 1 / high, 1 / low
    return f"{name} is {units.format_number(low)} to {units.format_number(high)} times {verdict}"


def _queues(runs: Sequence[Run]) -> Iterator[Statement]:
    known = [(queue, run) for run in runs if (queue := _queue_s(run)) is not None]
    if known:
        waited_s, worked_s = sum(queue for queue, _ in known), sum(run.seconds for _, run in known)
        share = waited_s / (waited_s + worked_s) if waited_s + worked_s > 0 else 0.0
        text = f"Operations waited {units.format_duration(waited_s)} in queues, {share:.0%} of their time."
        yield Statement("finding", text, says="workflows_queued")


def _unfinished(workflows: Sequence[Workflow]) -> Iterator[Statement]:
    """Workflows that failed or still run: what they did is counted, and they are named."""
    odd = [one for one in workflows if one.state != "succeeded"]
    if odd:
        words = tuple(f"{one.id}: {one.state}{_at_fault(one)}" for one in odd[:_SAID_MAX])
        text = f"{len(odd)} of {len(workflows)} workflows failed or are not done: what they did is counted."
        yield Statement("caution", text, words, says="workflows_unfinished")


def _at_fault(workflow: Workflow) -> str:
    names = [one.name for one in workflow.operations if one.state in ("failed", "running", "retry", "paused")]
    return f", in {', '.join(names)}" if names else ""


def _lacking(workflows: Sequence[Workflow]) -> Iterator[Statement]:
    lacking = [
        f"{workflow.id}: {operation.name} ({operation.state or 'no state'})"
        for workflow in workflows
        for operation in workflow.operations
        if operation.seconds is None and operation.state in ("succeeded", "failed")
    ]
    if lacking:
        text = (
            f"{len(lacking)} operations ended and lack a time, or end before they begin: they are left out."
        )
        yield Statement("caution", text, tuple(lacking[:_SAID_MAX]), says="operations_lack_times")
    empty = [one.id for one in workflows if not one.operations]
    if empty:
        yield Statement(
            "caution",
            f"{len(empty)} workflows have no operation.",
            tuple(empty[:_SAID_MAX]),
            says="workflows_empty",
        )


def _gaps(workflows: Sequence[Workflow]) -> Iterator[Statement]:
    """Operations against the timestamps of the whole: what lies between them is nobody's."""
    found = []
    for one in workflows:
        if one.started_ns is None or one.completed_ns is None or one.state != "succeeded":
            continue
        whole_s = (one.completed_ns - one.started_ns) / 1e9
        inside_s = sum(operation.seconds or 0.0 for operation in one.operations)
        if abs(whole_s - inside_s) > _CLOCK_S:
            between = units.format_duration(abs(whole_s - inside_s))
            what = "between them" if whole_s > inside_s else "at once with others"
            found.append(f"{one.id}: {between} {what}, of {units.format_duration(whole_s)} in all")
    if found:
        text = f"Operations of {len(found)} workflows do not add up to their time by more than a minute."
        yield Statement("finding", text, tuple(found[:_SAID_MAX]), says="workflows_do_not_add_up")


def _spans(workflows: Sequence[Workflow]) -> Iterator[StageSpan]:
    for workflow in workflows[:_SHOWN_MAX]:
        start_ns = workflow.started_ns
        for operation in workflow.operations:
            if start_ns is None or operation.started_ns is None or operation.seconds is None:
                continue
            begin_s = (operation.started_ns - start_ns) / 1e9
            end_s = begin_s + operation.seconds
            name = f"workflow {workflow.id}"
            words = "" if operation.state == "succeeded" else operation.state
            yield StageSpan(name, name, workflow.id, 1, 1, operation.name, begin_s, end_s, "VALID", words)
