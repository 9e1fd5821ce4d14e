"""Reads a study's result once: what its verdicts are made from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from leadline.analysis.cells import CellTable, tabulate
from leadline.analysis.duration import TimeTaken, block_seconds, finished_trials, time_taken
from leadline.analysis.statistics.drift import TrialShift, shift_of_trial
from leadline.analysis.statistics.intervals import ALPHA, ALPHA_AFTER_LOOKS
from leadline.faults import Fault
from leadline.plan.model import Plan
from leadline.store.reader import Result
from leadline.store.tables import LatencyRow, SeriesRow, TrialRow
from leadline.study.study import Study
from leadline.study.target import TargetFacts
from leadline.study.work import Search
from leadline.verdict.degraded import faults_meanwhile
from leadline.verdict.hosts import ONE_HOST, HostsSeen, hosts_seen
from leadline.verdict.kinds import judged, measure_of

_Row = TypeVar("_Row", LatencyRow, SeriesRow)


@dataclass(frozen=True)
class Material:
    """What a study's result holds. `extras` are by kind of work: what only that kind has.

    `plan` has of sweeps the cells that were tried, or were to be; `whole` has their whole grids, too.
    `samples` are of this host and of a lab's ports, by trial, where there is a sweep.
    """

    manifest: Mapping[str, Any]
    plan: Plan
    study: Study
    facts: Mapping[str, TargetFacts]
    latency: Mapping[str, Sequence[LatencyRow]]
    series: Mapping[str, Sequence[SeriesRow]]
    extras: Mapping[str, Any]
    tables: Mapping[str, CellTable]
    shifts: Mapping[str, TrialShift]
    not_run: Mapping[str, str]
    taken: TimeTaken | None = None
    block_s: float | None = None
    done: int = 0  # trials that came to their end
    grid: Plan | None = None
    samples: Mapping[str, Sequence[SeriesRow]] = field(default_factory=dict)
    faults: tuple[Fault, ...] = ()
    hosts: HostsSeen = ONE_HOST

    @property
    def whole(self) -> Plan:
        """The plan with every cell of the grids of sweeps."""
        return self.grid or self.plan

    @property
    def trials(self) -> tuple[TrialRow, ...]:
        """Every trial that is stored, in order of execution."""
        rows = (trial for table in self.tables.values() for trial in table.trials)
        return tuple(sorted(rows, key=lambda trial: trial.order))

    @property
    def alpha(self) -> float:
        """The level of intervals and verdicts."""
        return alpha_of(self.manifest)

    def good(self, cell: str) -> tuple[TrialRow, ...]:
        """The trials that a cell's figures rest on."""
        table = self.tables.get(cell)
        return table.good if table else ()


def read_material(result: Result, *, with_charts: bool) -> Material:
    """Everything but what reports draw of it, where they draw nothing."""
    manifest = result.manifest
    whole = Plan.from_json(manifest["plan"])
    plan = _needed(whole, result)
    latency = rows_by_trial(result.latency())
    extras = _extras(result, plan)
    swept = any(cell.swept for cell in whole.cells)
    tables = tabulate(result.trials(), latency, measure_of(plan.cells, extras), _searches_of(plan))
    return Material(
        manifest=manifest,
        plan=plan,
        study=Study.from_json(manifest["study"]),
        facts={name: TargetFacts.from_json(value) for name, value in manifest["targets"].items()},
        latency=latency,
        series=rows_by_trial(result.series(["engine"])) if with_charts else {},
        extras=extras,
        tables=tables,
        shifts={trial: found for trial, rows in latency.items() if (found := shift_of_trial(rows))},
        not_run=_not_run_reasons(result),
        taken=time_taken(result.events, plan),
        block_s=block_seconds(result.events, plan),
        done=finished_trials(result.events),
        faults=faults_meanwhile(result.events),
        grid=whole,
        samples=rows_by_trial(result.series(["host", "wire"])) if swept else {},
        hosts=hosts_seen(result, tables, alpha_of(manifest)),
    )


def needed_plan(result: Result) -> Plan:
    """The plan of a result without the cells of sweeps that were never to be tried: nothing lacks there."""
    return _needed(Plan.from_json(result.manifest["plan"]), result)


def _needed(plan: Plan, result: Result) -> Plan:
    chosen = {trial.cell for trial in plan.trials}
    for event in result.events:
        if event.event == "block_added":
            chosen.update(event.details["cells"])
    return replace(plan, cells=tuple(cell for cell in plan.cells if cell.swept is None or cell.id in chosen))


def tables_of(result: Result, plan: Plan) -> dict[str, CellTable]:
    """A result's cells as tables."""
    measure = measure_of(plan.cells, _extras(result, plan))
    return tabulate(result.trials(), rows_by_trial(result.latency()), measure, _searches_of(plan))


def _extras(result: Result, plan: Plan) -> dict[str, Any]:
    kinds = dict.fromkeys(cell.kind for cell in plan.cells)
    return {kind: judged(kind).read(result) for kind in kinds}


def rows_by_trial(rows: Sequence[_Row]) -> dict[str, list[_Row]]:
    """Rows of one table, by trial."""
    found: dict[str, list[_Row]] = {}
    for row in rows:
        found.setdefault(row.trial, []).append(row)
    return found


def _searches_of(plan: Plan) -> dict[str, Search]:
    """The cells whose rate is searched, with what is searched."""
    return {cell.id: cell.search for cell in plan.cells if cell.search is not None}


def alpha_of(manifest: Mapping[str, Any]) -> float:
    """The level of intervals and verdicts: less where the run chose its blocks by what it had measured.

    Intervals drawn at it hold as often as 95 % intervals of a run whose blocks were fixed beforehand.
    """
    options = manifest.get("options") or {}
    return ALPHA_AFTER_LOOKS if options.get("until") or options.get("budget_s") else ALPHA


def _not_run_reasons(result: Result) -> dict[str, str]:
    return {
        str(e.details["cell"]): str(e.details["reason"]) for e in result.events if e.event == "trial_not_run"
    }
