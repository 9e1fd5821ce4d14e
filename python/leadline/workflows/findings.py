"""What a media platform's own times say: operations, queues, hosts, and whether a change made a difference.

Nothing was measured here: times are the platform's, and films differ. So figures are means over workflows, a
change is judged by time per GB where sizes are known, every doubt is said, and no validity is claimed.

Operations that began before and after a moment, such as that of a new mount, and whether they differ.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from leadline import units
from leadline.analysis.statistics.means import Estimate
from leadline.analysis.statistics.multiplicity import ALPHA, holm_levels
from leadline.analysis.statistics.welch import WelchRatio, mean_of_values, welch_ratio
from leadline.store.reader import Result
from leadline.verdict.compared.deciding import correction_words, outcome_of
from leadline.verdict.model import FigureRow, FigureTable, Findings, Outcome, Quantity, Statement
from leadline.verdict.private import HOST, private_texts
from leadline.verdict.sections.section import Frame
from leadline.verdict.sections.stages import stages_section
from leadline.workflows.done import Run, by_name, not_done, operations_of, rounding_s, runs_of
from leadline.workflows.reading import Operation, Workflow
from leadline.workflows.store import read_stored_workflows
from leadline.workflows.tables import (
    clock_words,
    operation_table,
    operations_by_host,
    operations_by_name,
    spans_of,
    workflow_table,
)
from leadline.workflows.words import workflow_statements

_TIMES = "\u00d7"  # multiplication sign
_MARGIN = 0.05
_SAID_MAX = 12


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
