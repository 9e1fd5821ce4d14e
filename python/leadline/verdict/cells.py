"""Each cell of a result, judged: validity, figures with their intervals, trials and curves.

Each subject's rules of validity have a module in `codes`; thresholds are in `codes.yaml`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from leadline.analysis.cells import CellTable, cell_metrics
from leadline.analysis.chain import bytes_read, bytes_written
from leadline.analysis.metrics import latency_curve, summed_series
from leadline.analysis.search import asked_rate
from leadline.plan.model import PlannedCell
from leadline.store.tables import LatencyRow, SeriesRow, TrialRow
from leadline.verdict.chains import chains_of
from leadline.verdict.codes.case import Case, Rule
from leadline.verdict.codes.catalogue import catalogue
from leadline.verdict.codes.hosts import CLUSTER_RULES, HOST_RULES, HOSTS_RULES
from leadline.verdict.codes.implausible import IMPLAUSIBLE_RULES, ORIGIN_RULES, outrunning, overtaking
from leadline.verdict.codes.load import LOAD_RULES, unattributed
from leadline.verdict.codes.run import (
    COMPLETENESS_RULES,
    DATA_RULES,
    DURATION_RULES,
    RUN_RULES,
    SETTINGS_RULES,
    STEADINESS_RULES,
    is_shift,
)
from leadline.verdict.degraded import asked_degraded, fault_spans
from leadline.verdict.inputs import Material
from leadline.verdict.kinds import judged, metric_kind
from leadline.verdict.model import (
    Cell,
    CellShown,
    Code,
    Curve,
    Line,
    Origin,
    Quantity,
    TrialView,
    Validity,
    severity,
    worst,
)

# Codes of one severity stand in this order.
_RULES: tuple[Rule, ...] = (
    *COMPLETENESS_RULES,
    *ORIGIN_RULES,
    *DURATION_RULES,
    *CLUSTER_RULES,
    *SETTINGS_RULES,
    *HOST_RULES,
    *HOSTS_RULES,
    *STEADINESS_RULES,
    *DATA_RULES,
    *IMPLAUSIBLE_RULES,
    *LOAD_RULES,
    *RUN_RULES,
)


def _advised(code: Code, kind: str) -> Code:
    """The code with a remedy that the kind of work has the options for."""
    return replace(code, remedy=catalogue()[code.code].remedies.get(kind, code.remedy))


def judge(case: Case) -> Validity:
    """All codes that fire, worst first; the kind of work says which never do."""
    fired = (code for rule in _RULES for code in rule(case) if code.code not in case.work.exempt)
    codes = [_advised(code, case.cell.kind) for code in fired]
    codes.sort(key=lambda code: -severity(code.state))
    return Validity(worst(code.state for code in codes), tuple(codes))


@dataclass(frozen=True)
class CellFigures:
    """A cell's figures and their validity, without all else that a report shows of it."""

    id: str
    target: str
    work: str
    metrics: Mapping[str, Quantity]
    validity: Validity


def judge_figures(read: Material) -> Iterator[CellFigures]:
    """Every cell of the plan, in its order, as `judge_cells` judges it."""
    for case in _cases(read):
        cell, validity = case.cell, judge(case)
        metrics = _metrics(cell, read.tables.get(cell.id), validity, read.alpha)
        yield CellFigures(cell.id, cell.target, cell.work, metrics, validity)


def judge_cells(read: Material, *, with_charts: bool) -> tuple[Cell, ...]:
    """Every cell of the plan, in its order; without charts no curve is made, which is quicker."""
    latency = read.latency if with_charts else {}
    return tuple(_cell(case.cell, read, judge(case), unattributed(case), latency) for case in _cases(read))


def _cases(read: Material) -> Iterator[Case]:
    plan = read.plan.cells, read.tables, read.facts
    outran = overtaking(*plan) | outrunning(*plan)
    for cell in read.plan.cells:
        yield replace(_case(cell, read), outran=outran.get(cell.id))


def _case(cell: PlannedCell, read: Material) -> Case:
    table, memory = read.tables.get(cell.id), read.manifest.get("memory_bytes")
    emulation = (read.manifest.get("host") or {}).get("emulation")
    return Case(
        cell=cell,
        facts=read.facts[cell.target],
        trials=table.judged if table else (),
        blocks_planned=1 if cell.swept else read.plan.blocks,
        memory_bytes=memory if isinstance(memory, int) else None,
        not_run_reason=read.not_run.get(cell.id),
        max_rate_bytes_per_s=read.study.limits.max_rate,
        shifts=read.shifts,
        hosts=read.hosts,
        degraded=asked_degraded(read.manifest),
        emulation=None if emulation in (None, "none seen") else str(emulation),
    )


def _cell(
    cell: PlannedCell,
    read: Material,
    validity: Validity,
    others: Mapping[str, str],
    latency: Mapping[str, Sequence[LatencyRow]],
) -> Cell:
    table = read.tables.get(cell.id)
    trials = table.trials if table else ()
    counted, good = (table.judged, table.good) if table else ((), ())
    own_latency = [row for trial in good for row in latency.get(trial.trial, ())]
    return Cell(
        id=cell.id,
        target=cell.target,
        work=cell.work,
        kind=cell.kind,
        factors=dict(cell.factors),
        job={**cell.job.as_json(), "notes": list(cell.notes)},
        metrics=_metrics(cell, table, validity, read.alpha),
        validity=validity,
        trials=tuple(_trial(cell, trial, table) for trial in trials),
        curves=tuple(_curves(cell, own_latency)),
        lines=tuple(
            _line(cell, trial, read.series[trial.trial], _shift_s(trial, validity, read))
            for trial in counted
            if trial.trial in read.series
        ),
        origin=origin_of(good, others),
        chains=chains_of(cell, read.facts[cell.target], good, others),
        shown=_shown(cell),
        swept=cell.swept.name if cell.swept else None,
    )


def _shown(cell: PlannedCell) -> CellShown:
    """A cell of a sweep is in the sweep's own table and chart."""
    shown = judged(cell.kind).shown(cell.job)
    return shown if cell.swept is None else replace(shown, own_tables=True, own_charts=True)


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
        why = validity.codes[0].evidence if validity.codes else "nothing was measured"
        for name in judged(cell.kind).expected_metrics(cell.job):
            metrics[name] = Quantity(None, metric_kind(name).unit, reason=why)
    return metrics


def _trial(cell: PlannedCell, trial: TrialRow, table: CellTable | None) -> TrialView:
    measured = None
    if table is not None:
        measured = table.probes.get(trial.trial) if table.probes else table.by_block.get(trial.block)
    values: dict[str, float | None] = dict(measured.values) if measured else {}
    values |= judged(cell.kind).trial_values(trial)
    if table is not None and table.counted is not None:
        values |= {"rate_asked": asked_rate(trial)}
    begin_s, length_s = trial.ramp_ns / 1e9, trial.measured_ns / 1e9
    values |= {"measured_s": length_s, "measured_from_s": begin_s, "measured_to_s": begin_s + length_s}
    if trial.cpu_user_ns or trial.cpu_system_ns:
        values |= {"cpu_user_s": trial.cpu_user_ns / 1e9, "cpu_system_s": trial.cpu_system_ns / 1e9}
    if trial.start_skew_ns is not None:
        values |= {"start_skew_s": trial.start_skew_ns / 1e9}
    for name in ("read", "write"):
        operations = getattr(trial, f"{name}_operations")
        if operations:
            values |= {f"{name}_bytes": getattr(trial, f"{name}_bytes"), f"{name}_operations": operations}
    return TrialView(trial.trial, trial.block, trial.order, trial.state, trial.error, values)


def _curves(cell: PlannedCell, latency: Sequence[LatencyRow]) -> Iterator[Curve]:
    for direction in judged(cell.kind).directions:
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


def _shift_s(trial: TrialRow, validity: Validity, read: Material) -> float | None:
    """Where a trial's level shifts, in a cell of which that is said."""
    found = read.shifts.get(trial.trial)
    said = any(code.code == "level_shift" for code in validity.codes)
    return found.at_s if said and found is not None and is_shift(found) else None


def _line(cell: PlannedCell, trial: TrialRow, series: Sequence[SeriesRow], shift_s: float | None) -> Line:
    name, unit = judged(cell.kind).series
    points = summed_series(series, "engine", name)
    from_s, steady = trial.ramp_ns / 1e9, trial.steady is not None
    to_s = from_s + trial.measured_ns / 1e9 if steady else None
    spans = fault_spans(trial, max((second for second, _ in points), default=0.0))
    return Line(trial.trial, trial.block, name, unit, points, from_s, to_s, shift_s, spans)


def origin_of(trials: Sequence[TrialRow], others: Mapping[str, str]) -> Origin | None:
    """Where bytes went, per byte moved; `others` has the columns whose counts are not this run's, and why."""
    if not trials:
        return None
    read, written = bytes_read(trials, others), bytes_written(trials, others)
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
