"""Puts a result's verdicts together: the only way from the store to a report."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from leadline.analysis.cells import CellTable, cell_metrics, tabulate
from leadline.analysis.curves import latency_curve, summed_series
from leadline.analysis.metrics import default_metrics, metric_kind, operation_phases
from leadline.analysis.origin import bytes_read, bytes_written
from leadline.analysis.statistics.level_shift import TrialShift, shift_of_trial
from leadline.analysis.statistics.multiplicity import ALPHA, ALPHA_AFTER_LOOKS
from leadline.errors import UsageError
from leadline.plan.model import Plan, PlannedCell
from leadline.published.findings import published_findings
from leadline.store.reader import Result
from leadline.store.stages import StageRow, read_stages
from leadline.store.tables import LatencyRow, SeriesRow, TrialRow
from leadline.study.left_out import LeftOut
from leadline.study.study import Study
from leadline.study.target import TargetFacts
from leadline.study.work import Search
from leadline.tracing.findings import trace_findings
from leadline.verdict import words
from leadline.verdict.chains import chains_of
from leadline.verdict.codes.case import Case
from leadline.verdict.codes.implausible import outrunning
from leadline.verdict.codes.judge import is_shift, judge, worst
from leadline.verdict.comparisons import compare_beside, compare_targets
from leadline.verdict.model import (
    ApplicationTable,
    Cell,
    Curve,
    Findings,
    Line,
    Origin,
    Quantity,
    Statement,
    TargetView,
    Validity,
)
from leadline.verdict.model import TrialRow as TrialView
from leadline.verdict.over_time import changes_over_time
from leadline.verdict.sections.section import Section
from leadline.verdict.way_words import way_statements
from leadline.verdict.ways import EMULATED, columns_of, ways_of, ways_section, ways_table
from leadline.workflows.findings import workflow_findings
from leadline.workloads.application.figures import CopyTrace, copy_traces
from leadline.workloads.application.job import ApplicationJob
from leadline.workloads.application.tables import application_section, places_of
from leadline.workloads.application.words import application_statements, in_order
from leadline.workloads.coherence.words import coherence_statements, coherence_tables, pairs_of
from leadline.workloads.io.job import Job
from leadline.workloads.metadata.job import OPERATIONS
from leadline.workloads.pipeline.job import PipelineJob
from leadline.workloads.pipeline.tables import lines_of, pipeline_section
from leadline.workloads.pipeline.words import pipeline_statements
from leadline.workloads.replay.words import replay_statements

_Row = TypeVar("_Row", LatencyRow, SeriesRow)


def build_findings(result: Result, *, with_charts: bool = True, base: str | None = None) -> Findings:
    """Judge a whole result, comparing with `base` (None: the study's base, or its first target).

    Without charts no curve and no series is read, which is quicker.
    """
    if result.published:
        if base is not None:
            raise UsageError("published figures have no base to compare with", "leave --base out")
        return published_findings(result)
    if result.workflows:
        return workflow_findings(result)
    if result.traced:
        return trace_findings(result, with_charts=with_charts, base=base)
    return _study_findings(result, _read(result), with_charts, base)


@dataclass(frozen=True)
class _Material:
    """What a study's result holds, read once."""

    manifest: Mapping[str, Any]
    plan: Plan
    study: Study
    facts: Mapping[str, TargetFacts]
    latency: dict[str, list[LatencyRow]]
    traces: dict[str, dict[int, CopyTrace]]
    tables: Mapping[str, CellTable]
    shifts: Mapping[str, TrialShift]
    guest: Findings | None
    left_out: tuple[LeftOut, ...]


def _read(result: Result) -> _Material:
    manifest, in_guest = result.manifest, result.guest()
    plan = Plan.from_json(manifest["plan"])
    guest = build_findings(in_guest, with_charts=False) if in_guest else None
    latency = rows_by_trial(result.latency())
    traces = traces_of(result, plan)
    return _Material(
        manifest=manifest,
        plan=plan,
        study=Study.from_json(manifest["study"]),
        facts={name: TargetFacts.from_json(value) for name, value in manifest["targets"].items()},
        latency=latency,
        traces=traces,
        tables=tables_of(result, plan, latency, traces),
        guest=guest,
        left_out=_left_out(plan, in_guest, guest),
        shifts={trial: found for trial, rows in latency.items() if (found := shift_of_trial(rows))},
    )


def _study_findings(result: Result, read: _Material, with_charts: bool, base: str | None) -> Findings:
    plan, tables, asked = read.plan, read.tables, read.study.compare
    validity = _validity(read, _not_run_reasons(result))
    series = rows_by_trial(result.series(["engine"])) if with_charts else {}
    alpha = alpha_of(read.manifest)
    cells = _cells(read, validity, series, with_charts, alpha)
    anchor = _anchor(base, read.study, plan)
    states = {name: found.state for name, found in validity.items()}
    comparisons = compare_targets(plan.cells, tables, states, anchor, asked.metrics, asked.margin, alpha)
    beside = compare_beside(plan.cells, tables, states, asked.metrics, asked.margin, alpha)
    targets = tuple(
        TargetView(t.name, t.url, facts.access, facts.words, facts.as_json())
        for t, facts in ((t, read.facts[t.name]) for t in plan.targets)
    )
    places = places_of(plan.cells, cells, tables, read.traces)
    lines = lines_of(plan.cells, cells, tables, _stages_of(result, plan))
    ways, words_of_ways = _ways(read, targets, cells, alpha)
    statements = [
        *words.statements(targets, cells, comparisons, result.complete, beside),
        *words_of_ways,
        *replay_statements(read.manifest),
        *application_statements(places, comparisons),
        *pipeline_statements(lines, comparisons),
        *changes_over_time(plan.cells, tables, states, anchor, asked.metrics),
    ]
    return Findings(
        id=str(read.manifest["id"]),
        kind=str(read.manifest["kind"]),
        title=plan.title or plan.study,
        about=plan.about,
        created=str(read.manifest.get("created", "")),
        state=worst([*(cell.validity.state for cell in cells), *(("NOT_RUN",) if _absent(read) else ())]),
        targets=targets,
        cells=cells,
        comparisons=comparisons + beside,
        statements=in_order(statements, bool(places or lines)),
        host={str(k): str(v) for k, v in read.manifest.get("host", {}).items()},
        cluster=_cluster(result.trials()),
        itself=_itself(result, tables),
        study=read.manifest["study"],
        reproduce=_reproduce(read.manifest, plan),
        version=str(read.manifest.get("version", "")),
        complete=result.complete,
        sections=_sections(
            application_section(places), pipeline_section(lines, comparisons), ways_section(ways)
        ),
    )


def _absent(read: _Material) -> bool:
    """True where a target that was asked for was not there at all."""
    return any(one.work is None for one in read.left_out)


def _left_out(plan: Plan, in_guest: Result | None, guest: Findings | None) -> tuple[LeftOut, ...]:
    """What was left out here and not measured in a guest either; a guest's own reasons count there."""
    if guest is None or in_guest is None:
        return plan.left_out
    measured = {target.name for target in guest.targets}
    reasons = {one.target: one for one in Plan.from_json(in_guest.manifest["plan"]).left_out}
    whole = [one for one in plan.left_out if one.work is None and one.target not in measured]
    parts = [one for one in plan.left_out if one.work is not None]
    parts += [one for one in reasons.values() if one.target in measured]
    return (*(reasons.get(one.target, one) for one in whole), *parts)


def _ways(
    read: _Material, targets: tuple[TargetView, ...], cells: tuple[Cell, ...], alpha: float
) -> tuple[tuple[ApplicationTable, ...], tuple[Statement, ...]]:
    """The table of what one way sees of another, or that of all targets, and what they say."""
    pairs = pairs_of(read.plan.cells, cells, read.tables)
    if pairs:
        own = tuple(
            replace(table, title=f"{table.title} (in a guest, {EMULATED})")
            for table in _tables_of_guest(read.guest)
        )
        return (*coherence_tables(pairs), *own), coherence_statements(pairs, read.left_out)
    if not read.study.compare.table:
        return (), ()
    left_out, guest = read.left_out, read.guest
    ways = ways_of(targets, cells, left_out, (guest.targets, guest.cells) if guest else ((), ()))
    columns = columns_of(ways)
    table = ways_table(ways, columns, read.tables, alpha)
    return (table,) if table else (), way_statements(ways, columns, read.tables, alpha, left_out)


def _tables_of_guest(guest: Findings | None) -> Iterator[ApplicationTable]:
    for section in guest.sections if guest else ():
        if section.name == "ways":
            yield from section.tables


def _validity(read: _Material, reasons: Mapping[str, str]) -> dict[str, Validity]:
    outran = outrunning(read.plan.cells, read.tables)
    return {
        cell.id: judge(replace(_case(cell, read, reasons.get(cell.id)), outran=outran.get(cell.id)))
        for cell in read.plan.cells
    }


def _cells(
    read: _Material,
    validity: Mapping[str, Validity],
    series: Mapping[str, Sequence[SeriesRow]],
    with_charts: bool,
    alpha: float,
) -> tuple[Cell, ...]:
    latency = read.latency if with_charts else {}
    tables, shifts = read.tables, read.shifts
    found = []
    for cell in read.plan.cells:
        table = tables.get(cell.id)
        view = _cell(cell, table, validity[cell.id], latency, series, shifts, alpha)
        chains = chains_of(cell, read.facts[cell.target], _good(tables, cell.id))
        found.append(replace(view, chains=chains))
    return tuple(found)


def _good(tables: Mapping[str, CellTable], cell: str) -> tuple[TrialRow, ...]:
    table = tables.get(cell)
    return table.good if table else ()


def rows_by_trial(rows: Sequence[_Row]) -> dict[str, list[_Row]]:
    """Rows of one table, by trial."""
    found: dict[str, list[_Row]] = {}
    for row in rows:
        found.setdefault(row.trial, []).append(row)
    return found


def tables_of(
    result: Result,
    plan: Plan,
    latency: Mapping[str, Sequence[LatencyRow]] | None = None,
    traces: Mapping[str, Mapping[int, CopyTrace]] | None = None,
) -> dict[str, CellTable]:
    """A result's cells as tables. `latency` by trial and `traces`, where they were read already."""
    rows = rows_by_trial(result.latency()) if latency is None else latency
    open_loop = frozenset(cell.id for cell in plan.cells if is_open_loop(cell))
    followed = traces_of(result, plan) if traces is None else traces
    return tabulate(result.trials(), rows, open_loop, _searches_of(plan), followed)


def traces_of(result: Result, plan: Plan) -> dict[str, dict[int, CopyTrace]]:
    """What was traced of each application's trial, by copy."""
    if not any(isinstance(cell.job, ApplicationJob) for cell in plan.cells):
        return {}
    from leadline.tracing.store import read_trace_without_segments, traced_trials

    return {trial: copy_traces(read_trace_without_segments(result, trial)) for trial in traced_trials(result)}


def _stages_of(result: Result, plan: Plan) -> list[StageRow]:
    """The stages of pipelines' trials."""
    return read_stages(result) if any(isinstance(cell.job, PipelineJob) for cell in plan.cells) else []


def _searches_of(plan: Plan) -> dict[str, Search]:
    """The cells whose rate is searched, with what is searched."""
    return {cell.id: cell.search for cell in plan.cells if cell.search is not None}


def alpha_of(manifest: Mapping[str, Any]) -> float:
    """The level of intervals and verdicts: less where the run chose its blocks by what it had measured.

    Intervals drawn at it hold as often as 95 % intervals of a run whose blocks were fixed beforehand.
    """
    options = manifest.get("options") or {}
    return ALPHA_AFTER_LOOKS if options.get("until") or options.get("budget_s") else ALPHA


def _anchor(base: str | None, study: Study, plan: Plan) -> str:
    names = [target.name for target in plan.targets]
    if base is not None and base not in names:
        raise UsageError(f"the result has no target {base!r}", f"use one of: {', '.join(names)}")
    return base or study.compare.base or names[0]


def is_open_loop(cell: PlannedCell) -> bool:
    """True where operations begin at planned times, not when the one before is done."""
    return cell.job.rate_bytes_per_s is not None or cell.job.rate_iops is not None


def _not_run_reasons(result: Result) -> dict[str, str]:
    return {
        str(e.details["cell"]): str(e.details["reason"]) for e in result.events if e.event == "trial_not_run"
    }


def _case(cell: PlannedCell, read: _Material, reason: str | None) -> Case:
    table, memory = read.tables.get(cell.id), read.manifest.get("memory_bytes")
    emulation = (read.manifest.get("host") or {}).get("emulation")
    return Case(
        cell=cell,
        facts=read.facts[cell.target],
        trials=table.judged if table else (),
        blocks_planned=read.plan.blocks,
        memory_bytes=memory if isinstance(memory, int) else None,
        not_run_reason=reason,
        max_rate_bytes_per_s=read.study.limits.max_rate,
        shifts=read.shifts,
        emulation=None if emulation in (None, "none seen") else str(emulation),
    )


def _cell(
    cell: PlannedCell,
    table: CellTable | None,
    validity: Validity,
    latency: Mapping[str, Sequence[LatencyRow]],
    series: Mapping[str, Sequence[SeriesRow]],
    shifts: Mapping[str, TrialShift],
    alpha: float,
) -> Cell:
    trials = table.trials if table else ()
    judged, good = (table.judged, table.good) if table else ((), ())
    own_latency = [row for trial in good for row in latency.get(trial.trial, ())]
    return Cell(
        id=cell.id,
        target=cell.target,
        work=cell.work,
        kind=cell.kind,
        factors=dict(cell.factors),
        job={**cell.job.as_json(), "notes": list(cell.notes)},
        metrics=_metrics(cell, table, validity, alpha),
        validity=validity,
        trials=tuple(_trial(trial, table) for trial in trials),
        curves=tuple(_curves(own_latency)),
        lines=tuple(
            _line(trial, series[trial.trial], _shift_s(trial, validity, shifts))
            for trial in judged
            if trial.trial in series
        ),
        origin=_origin(good),
    )


def _metrics(
    cell: PlannedCell, table: CellTable | None, validity: Validity, alpha: float
) -> dict[str, Quantity]:
    found = cell_metrics(table, alpha) if table else {}
    metrics = {}
    for name, metric in found.items():
        unit, estimate = metric_kind(name).unit, metric.estimate
        metrics[name] = (
            Quantity(estimate.value, unit, estimate.low, estimate.high, estimate.count)
            if estimate
            else Quantity(None, unit, reason=metric.reason)
        )
    if not metrics:
        of_data = ("bandwidth", "iops", "latency_mean", "latency_p99")
        job = cell.job
        expected = of_data if isinstance(job, Job) else default_metrics(job.as_json())
        why = validity.codes[0].evidence if validity.codes else "nothing was measured"
        for name in expected:
            metrics[name] = Quantity(None, metric_kind(name).unit, reason=why)
    return metrics


def _trial(trial: TrialRow, table: CellTable | None) -> TrialView:
    measured = None
    if table is not None:
        measured = table.probes.get(trial.trial) if table.probes else table.by_block.get(trial.block)
    values: dict[str, float | None] = dict(measured.values) if measured else {}
    for name, phase in operation_phases(trial).items():
        values |= {f"{name}_operations": phase["operations"], f"{name}_s": phase["elapsed_ns"] / 1e9}
    if table is not None and table.counted is not None:
        values |= {"rate_asked": json.loads(trial.job).get("rate_iops")}
    begin_s, length_s = trial.ramp_ns / 1e9, trial.measured_ns / 1e9
    values |= {"measured_s": length_s, "measured_from_s": begin_s, "measured_to_s": begin_s + length_s}
    if trial.start_skew_ns is not None:
        values |= {"start_skew_s": trial.start_skew_ns / 1e9}
    for name in ("read", "write"):
        operations = getattr(trial, f"{name}_operations")
        if operations:
            values |= {f"{name}_bytes": getattr(trial, f"{name}_bytes"), f"{name}_operations": operations}
    return TrialView(trial.trial, trial.block, trial.order, trial.state, trial.error, values)


def _curves(latency: Sequence[LatencyRow]) -> Iterator[Curve]:
    for direction in dict.fromkeys(("read", "write", "sync", "meta", *OPERATIONS)):
        for clock in ("submission", "completion", "total", "intended"):
            found = latency_curve(latency, direction, clock)
            if found is not None:
                yield Curve(
                    direction,
                    clock,
                    found.operations,
                    found.points,
                    found.mean_ns,
                    found.stdev_ns,
                    found.buckets,
                )


def _shift_s(trial: TrialRow, validity: Validity, shifts: Mapping[str, TrialShift]) -> float | None:
    """Where a trial's level shifts, in a cell of which that is said."""
    found = shifts.get(trial.trial)
    said = any(code.code == "level_shift" for code in validity.codes)
    return found.at_s if said and found is not None and is_shift(found) else None


def _line(trial: TrialRow, series: Sequence[SeriesRow], shift_s: float | None) -> Line:
    name, unit = ("iops", "1/s") if operation_phases(trial) else ("bandwidth", "B/s")
    points = summed_series(series, "engine", name)
    from_s, steady = trial.ramp_ns / 1e9, trial.steady is not None
    to_s = from_s + trial.measured_ns / 1e9 if steady else None
    return Line(trial.trial, trial.block, name, unit, points, from_s, to_s, shift_s)


def _origin(trials: Sequence[TrialRow]) -> Origin | None:
    if not trials:
        return None
    read, written = bytes_read(trials), bytes_written(trials)
    application = read.application + written.application
    if not application:
        return None
    shares: dict[str, float | None] = {}
    reasons = {name: why for name, why in read.reasons.items() if name == "application"}
    for name in ("wire", "device", "osd"):
        parts = [
            (getattr(amount, name), amount.reasons.get(name, ""))
            for amount in (read, written)
            if amount.application
        ]
        if any(value is None for value, _ in parts):
            shares[name] = None
            reasons[name] = next(reason for value, reason in parts if value is None)
        else:
            shares[name] = sum(value for value, _ in parts) / application
    return Origin(1.0, shares["wire"], shares["device"], shares["osd"], reasons)


def _cluster(trials: Sequence[TrialRow]) -> dict[str, str]:
    """The cluster as it was when the last trial that saw it began, as flat facts."""
    for trial in reversed(trials):
        state = json.loads(trial.start_state)
        if state:
            pgs = ", ".join(f"{count} {name}" for name, count in state["pgs"].items())
            facts = {
                "health": state["health"],
                "health checks": "; ".join(f"{k}: {v}" for k, v in state["checks"].items()) or "none",
                "placement groups": pgs,
                "OSDs": f"{state['osds_up']} up, {state['osds_in']} in, of {state['osds']}",
                "flags": ", ".join(state["flags"]) if state["flags"] else "none",
            }
            if state["used_share"] is not None:
                facts["used"] = f"{state['used_share']:.1%}"
            return facts
    return {}


def _itself(result: Result, tables: Mapping[str, CellTable]) -> dict[str, str]:
    """What leadline itself cost: the engine without storage, and the observers."""
    found: dict[str, str] = {}
    for event in result.events:
        if event.event == "self_measured":
            cost = event.details.get("null_ns_per_operation")
            found["engine without storage (null, 4 KiB, 32 in flight)"] = (
                f"{cost:.0f} ns per operation" if cost else f"not measured: {event.details.get('reason')}"
            )
    trials = [trial for table in tables.values() for trial in table.trials]
    cpu = [trial.observer_cpu_ns for trial in trials if trial.observer_cpu_ns is not None]
    seconds = sum(trial.ramp_ns + trial.measured_ns for trial in trials) / 1e9
    if cpu and seconds > 0:
        found["observers"] = f"{sum(cpu) / 1e9 / seconds:.2%} of one CPU during trials"
    return found


def _reproduce(manifest: Mapping[str, Any], plan: Plan) -> tuple[str, ...]:
    command = manifest.get("command")
    lines = [shlex.join(command)] if isinstance(command, list) and command else []
    return (*lines, f"seed {plan.seed}, {plan.blocks} blocks, {len(plan.trials)} trials")


def _sections(*found: Section | None) -> tuple[Section, ...]:
    """What the report has besides cells, in its order: a verdict that makes a section is listed here."""
    return tuple(section for section in found if section is not None)
