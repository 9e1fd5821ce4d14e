"""What a media platform's own times say: operations, queues, hosts, and whether a change made a difference.

Nothing was measured here: times are the platform's, and films differ. So figures are means over workflows, a
change is judged by time per GB where sizes are known, every doubt is said, and no validity is claimed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from leadline import units
from leadline.analysis.statistics.intervals import ALPHA, holm_levels
from leadline.analysis.statistics.means import Estimate, WelchRatio, mean_of_values, welch_ratio
from leadline.store.reader import Result
from leadline.verdict.comparisons.deciding import correction_words, outcome_of
from leadline.verdict.model import FigureRow, FigureTable, Findings, Outcome, Quantity, Statement
from leadline.verdict.private import HOST, private_texts
from leadline.verdict.sections.section import Frame, stages_section
from leadline.workflows.reading import Operation, Workflow, read_stored_workflows
from leadline.workflows.tables import (
    Run,
    at_fault,
    by_name,
    clock_words,
    in_order,
    not_done,
    operation_table,
    operations_by_host,
    operations_by_name,
    operations_of,
    rounding_s,
    runs_of,
    spans_of,
    workflow_table,
)

_SAID_MAX = 12
_CLOCK_S = 60.0  # what may lie between operations before it is said


def workflow_statements(workflows: Sequence[Workflow]) -> list[Statement]:
    """All but those of a change."""
    runs = runs_of(workflows)
    return [
        _headline(workflows, runs),
        *_queues(runs),
        *_unfinished(workflows),
        *_no_durations(workflows),
        *_lacking(workflows),
        *_gaps(workflows),
    ]


def _headline(workflows: Sequence[Workflow], runs: Sequence[Run]) -> Statement:
    states: dict[str, int] = {}
    for workflow in workflows:
        states[workflow.state] = states.get(workflow.state, 0) + 1
    listed = ", ".join(f"{count} {state}" for state, count in states.items())
    spent: dict[str, float] = {}
    for run in runs:
        spent[run.operation.name] = spent.get(run.operation.name, 0.0) + run.seconds
    whole_s = sum(spent.values())
    ranked = sorted(spent.items(), key=lambda one: -one[1])
    most = [f"{name} {seconds / whole_s:.0%}" for name, seconds in ranked[:3] if whole_s > 0]
    text = f"{_count(len(workflows), 'workflow')} ({listed})"
    if most:
        text += f"; of the time in operations that succeeded most was spent in {', '.join(most)}"
    return Statement("headline", f"{text}.", says="workflows_time")


def _count(number: int, name: str) -> str:
    return f"{number:,} {name}{'' if number == 1 else 's'}"


def _queues(runs: Sequence[Run]) -> Iterator[Statement]:
    known = [(queue, run) for run in runs if (queue := run.queue_s) is not None]
    if known:
        waited_s, worked_s = sum(queue for queue, _ in known), sum(run.seconds for _, run in known)
        share = waited_s / (waited_s + worked_s) if waited_s + worked_s > 0 else 0.0
        text = f"Operations waited {units.format_duration(waited_s)} in queues, {share:.0%} of their time."
        yield Statement("finding", text, says="workflows_queued")


def _unfinished(workflows: Sequence[Workflow]) -> Iterator[Statement]:
    """Workflows that failed or still run, by name."""
    odd = [one for one in in_order(workflows) if one.state != "succeeded"]
    if odd:
        names = (", ".join(at_fault(one)) for one in odd)
        words = [
            f"{one.id}: {one.state}{f', in {name}' if name else ''}"
            for one, name in zip(odd, names, strict=True)
        ]
        verb = "is" if len(odd) == 1 else "are"
        text = (
            f"{len(odd)} of {_count(len(workflows), 'workflow')} failed or {verb} not done:"
            " only their operations that succeeded are counted as durations."
        )
        yield Statement("caution", text, _first(words), says="workflows_unfinished")


def _first(words: Sequence[str]) -> tuple[str, ...]:
    """Some of them, and how many more there are."""
    if len(words) <= _SAID_MAX:
        return tuple(words)
    return (*words[: _SAID_MAX - 1], f"and {len(words) - _SAID_MAX + 1:,} more")


def _no_durations(workflows: Sequence[Workflow]) -> Iterator[Statement]:
    """Operations that failed or did not end, by name."""
    words = []
    for name, own in by_name(operations_of(workflows)).items():
        gone = not_done(own)
        said = [f"{verb} {_times(len(ones))}" for verb, ones in (
            ("failed", gone.failed), ("did not end", gone.unended)
        ) if ones]  # fmt: skip
        if said:
            words.append(f"{name} {' and '.join(said)}")
    if words:
        text = f"What failed or did not end is no duration: {'; '.join(words[:_SAID_MAX])}."
        if len(words) > _SAID_MAX:
            text = f"{text[:-1]}; and {len(words) - _SAID_MAX} more operations."
        yield Statement("caution", text, says="operations_not_done")


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count:,} times"


def _lacking(workflows: Sequence[Workflow]) -> Iterator[Statement]:
    lacking = [
        f"{workflow.id}: {operation.name} ({operation.state or 'no state'})"
        for workflow in workflows
        for operation in workflow.operations
        if operation.seconds is None and operation.state in ("succeeded", "failed")
    ]
    if lacking:
        text = (
            f"{_count(len(lacking), 'operation')} ended without a start or an end, or before the start:"
            " no duration is known."
        )
        yield Statement("caution", text, _first(lacking), says="operations_lack_times")
    empty = [one.id for one in workflows if not one.operations]
    if empty:
        text = f"{_count(len(empty), 'workflow')} without any operation."
        yield Statement("caution", text, _first(empty), says="workflows_empty")


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
        text = (
            f"In {_count(len(found), 'workflow')} the operations do not add up to the whole time,"
            " by more than a minute"
        )
        text += f"; the first {_SAID_MAX} are listed." if len(found) > _SAID_MAX else "."
        yield Statement("finding", text, tuple(found[:_SAID_MAX]), says="workflows_do_not_add_up")


_TIMES = "\u00d7"  # multiplication sign
_MARGIN = 0.05


@dataclass(frozen=True)
class OperationChange:
    """An operation before and after: values in s, or in s/GB where all sizes are known."""

    name: str
    before: tuple[float, ...]
    after: tuple[float, ...]
    gone_before: int
    gone_after: int
    ratio: WelchRatio | None
    least: tuple[float, float]


def changes(workflows: Sequence[Workflow], change_ns: int) -> tuple[tuple[OperationChange, ...], bool]:
    """Every operation, and whether its values are s/GB."""
    runs = {id(run.operation): run for run in runs_of(workflows)}
    sized = bool(runs) and all(run.workflow.bytes for run in runs.values())
    clock_s = rounding_s(workflows)
    found = []
    for name, own in by_name(operations_of(workflows)).items():
        done = [runs[id(one)] for one in own if id(one) in runs]
        sides = [
            [run for run in done if _is_after(run.operation, change_ns) is side] for side in (False, True)
        ]
        values = [tuple(_value(run, sized) for run in side) for side in sides]
        least = _least(sides[0], clock_s), _least(sides[1], clock_s)
        gone = not_done(own)
        late = [_is_after(one, change_ns) for one in (*gone.failed, *gone.unended)]
        ratio = welch_ratio(values[0], values[1], least)
        found.append(
            OperationChange(name, values[0], values[1], late.count(False), late.count(True), ratio, least)
        )
    return tuple(found), sized


def _is_after(operation: Operation, change_ns: int) -> bool | None:
    return None if operation.started_ns is None else operation.started_ns >= change_ns


def _value(run: Run, sized: bool) -> float:
    return (run.seconds_per_gb or 0.0) if sized else run.seconds


def _least(side: Sequence[Run], clock_s: float) -> float:
    """What the clock's steps alone make of the logarithms of a side's durations."""
    mean = mean_of_values([run.seconds for run in side])
    return clock_s / mean.value if mean is not None else 0.0


def since_change(workflows: Sequence[Workflow], change_ns: int) -> tuple[FigureTable, tuple[Statement, ...]]:
    """The table of before and after, and what it allows one to say.

    The operations answer one question together, so that Holm's levels decide them.
    """
    found, sized = changes(workflows, change_ns)
    decided = [one for one in found if one.ratio is not None and one.ratio.count > 1]
    levels = holm_levels([one.ratio.p_value() for one in decided if one.ratio])
    by_name = {one.name: level for one, level in zip(decided, levels, strict=True)}
    rows, outcomes = [], []
    for one in found:
        estimate = one.ratio.estimate(by_name[one.name]) if one.ratio and one.name in by_name else None
        verdict = outcome_of(estimate, False, _MARGIN)
        rows.append(_row(one, estimate, verdict, "s/GB" if sized else "s"))
        if estimate is not None:
            outcomes.append((one, verdict, estimate))
    notes = [
        "Means are geometric, and the ratio is theirs; only what succeeded is counted.",
        "Welch's test on logarithms, each time taken as independent of the others",
    ]
    correction = correction_words(levels, ALPHA, explores=False)
    table = FigureTable(
        "since_change",
        f"Before and after {clock_words(change_ns)} UTC",
        ("Operation", "Done before", "Done after", "Not done before", "Not done after", "Verdict"),
        ("Before", "After", "After / before"),
        tuple(rows),
        f"{notes[0]} {notes[1]}{f'; {correction}' if correction else ''}.",
    )
    return table, tuple(_statements(outcomes, change_ns, sized))


def _row(one: OperationChange, estimate: Estimate | None, verdict: Outcome, unit: str) -> FigureRow:
    times = Quantity(None, _TIMES, reason="not two that succeeded on both sides of the date")
    if estimate is not None:
        times = Quantity(estimate.value, _TIMES, estimate.low, estimate.high, estimate.count)
    counts = len(one.before), len(one.after), one.gone_before, one.gone_after
    keys = (one.name, *map(str, counts), verdict if estimate else "-")
    sides = zip((one.before, one.after), one.least, strict=True)
    return FigureRow(keys, (*(_mean(values, unit, least) for values, least in sides), times), None)


def _mean(values: Sequence[float], unit: str, least: float) -> Quantity:
    found = mean_of_values(values, least)
    if found is None:
        return Quantity(None, unit, reason="none succeeded, or one took less than the clock shows")
    return Quantity(found.value, unit, found.low, found.high, found.count)


_Decided = tuple[OperationChange, Outcome, Estimate]


def _statements(outcomes: Sequence[_Decided], change_ns: int, sized: bool) -> list[Statement]:
    day = clock_words(change_ns)
    if not outcomes:
        text = f"No operation succeeded twice both before and after {day} UTC: nothing is compared."
        return [Statement("caution", text, says="workflows_on_one_side")]
    parts = [_difference(*one) for one in outcomes if one[1] in ("faster", "slower")]
    for verdict, words in (("same", f"equivalent within {_MARGIN:.0%}"), ("undecided", "inconclusive")):
        names = [one.name for one, its, _ in outcomes if its == verdict]
        if names:
            parts.append(f"{words}: {', '.join(names)}")
    evidence = tuple(
        f"{one.name}: {units.format_number(found.value)} times as long,"
        f" {len(one.before)} before, {len(one.after)} after"
        for one, _, found in outcomes
    )
    text = f"Since {day} UTC: {'; '.join(parts)}."
    said = [Statement("finding", text, evidence[:_SAID_MAX], says="workflows_changed")]
    if not sized:
        text = "Sizes are not known for all films: a change of the films would look like one of the platform."
        said.append(Statement("caution", text, says="workflows_sizes_unknown"))
    return said


def _difference(one: OperationChange, verdict: Outcome, found: Estimate) -> str:
    low, high = found.low or 0.0, found.high or 0.0
    if verdict == "faster":
        low, high = 1 / high, 1 / low
    return f"{one.name} is {units.format_number(low)} to {units.format_number(high)} times {verdict}"


_NOTE = (
    "The first workflows of the table below on one scale of time: a bar for each operation, from its start to"
    " its end; those that failed say so."
)
_FRAME = Frame(
    cells=False,
    steps=(
        "Every workflow and operation: leadline show DIR --all",
        "For charts: leadline report DIR --format html -o report.html",
    ),
    no_jobs="times of a platform are no fio jobs",
)


def workflow_findings(result: Result) -> Findings:
    """Everything that can be said of imported workflows."""
    workflows = read_stored_workflows(result)
    change = result.manifest.get("since_change_ns")
    tables = [
        workflow_table(workflows),
        operations_by_name(workflows),
        operations_by_host(workflows),
        operation_table(workflows),
    ]
    statements = workflow_statements(workflows)
    if isinstance(change, int):
        table, said = since_change(workflows, change)
        tables.insert(0, table)
        statements[1:1] = said
    source = result.manifest.get("imported", {})
    ranks = {"headline": 0, "finding": 1, "caution": 2}
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
        statements=tuple(sorted(statements, key=lambda one: ranks[one.tone])),
        version=str(result.manifest.get("version", "")),
        reproduce=(f"leadline import opencast {source.get('source', '')}".rstrip(),),
        sections=(stages_section(tuple(t for t in tables if t.rows), tuple(spans_of(workflows)), _NOTE),),
        frame=_FRAME,
        private={**private_texts(result.manifest), **dict.fromkeys(_hosts(workflows), HOST)},
    )


def _hosts(workflows: Sequence[Workflow]) -> Iterator[str]:
    yield from (one.host for workflow in workflows for one in workflow.operations if one.host)
