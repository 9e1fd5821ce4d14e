"""What is said of imported workflows: where the time went, what failed, lacks times or does not add up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from leadline import units
from leadline.verdict.model import Statement
from leadline.workflows.done import Run, at_fault, by_name, in_order, not_done, operations_of, runs_of
from leadline.workflows.reading import Workflow

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
