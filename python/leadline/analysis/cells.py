"""From trials to cells: the metrics of each over its blocks, and cells against each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from leadline.analysis.metrics import Measured
from leadline.analysis.search import Probe, counted_trials, not_held
from leadline.analysis.statistics.means import (
    ALPHA,
    Estimate,
    Ratio,
    arithmetic_mean,
    geometric_means,
    paired_ratio,
    unpaired_ratio,
)
from leadline.store.tables import LatencyRow, TrialRow
from leadline.study.work import Search

# The metrics of one complete trial, of which the latencies are given: as its kind of work computes them.
Measure = Callable[[TrialRow, Sequence[LatencyRow]], Measured]


@dataclass(frozen=True)
class CellTable:
    """One cell: its trials in order of execution, and each block's metrics.

    `probes` has the metrics of every trial of a search, by trial; `counted` names those that its figures
    come from, one a block. Elsewhere every trial counts.
    """

    cell: str
    trials: tuple[TrialRow, ...]
    by_block: Mapping[int, Measured]
    probes: Mapping[str, Measured] = field(default_factory=dict)
    counted: frozenset[str] | None = None

    @property
    def judged(self) -> tuple[TrialRow, ...]:
        """Trials that the cell's figures rest on, and those that failed."""
        return tuple(
            t for t in self.trials if self.counted is None or t.trial in self.counted or t.state != "complete"
        )

    @property
    def good(self) -> tuple[TrialRow, ...]:
        """Trials that the cell's figures rest on."""
        return tuple(trial for trial in self.judged if trial.state == "complete")


@dataclass(frozen=True)
class CellMetric:
    """A metric over the blocks of a cell; `estimate` is None where `reason` says why."""

    estimate: Estimate | None
    reason: str | None


def tabulate(
    trials: Sequence[TrialRow],
    latency: Mapping[str, Sequence[LatencyRow]],
    measure: Measure,
    searches: Mapping[str, Search] | None = None,
) -> dict[str, CellTable]:
    """Cells by id. `latency` is by trial, `searches` are by cell; `measure` gives the metrics of a trial."""
    by_cell: dict[str, list[TrialRow]] = {}
    for trial in trials:
        by_cell.setdefault(trial.cell, []).append(trial)
    tables = {}
    for cell, found in by_cell.items():
        measured = {
            trial.trial: measure(trial, latency.get(trial.trial, ()))
            for trial in found
            if trial.state == "complete"
        }
        search = (searches or {}).get(cell)
        if search is not None:
            tables[cell] = _searched(cell, search, found, latency, measured)
        else:
            by_block = {trial.block: measured[trial.trial] for trial in found if trial.trial in measured}
            tables[cell] = CellTable(cell, tuple(found), by_block)
    return tables


def _searched(
    cell: str,
    search: Search,
    trials: Sequence[TrialRow],
    latency: Mapping[str, Sequence[LatencyRow]],
    probes: Mapping[str, Measured],
) -> CellTable:
    """A block's figures are those of its highest rate that held, once all its probes are stored."""
    whole = {
        block
        for block in {trial.block for trial in trials}
        if sum(trial.block == block for trial in trials) >= search.trials
    }
    chosen = counted_trials(search, [(t, latency.get(t.trial, ())) for t in trials if t.block in whole])
    by_block = {block: _with_rate(search, probe, probes[probe.trial]) for block, probe in chosen.items()}
    counted = frozenset(probe.trial for probe in chosen.values())
    return CellTable(cell, tuple(trials), by_block, probes, counted)


def _with_rate(search: Search, probe: Probe, measured: Measured) -> Measured:
    if probe.held and probe.rate is not None:
        return replace(measured, values={search.metric: probe.rate, **measured.values})
    return replace(measured, reasons={search.metric: not_held(search, probe), **measured.reasons})


def cell_metrics(table: CellTable, alpha: float = ALPHA) -> dict[str, CellMetric]:
    """Every metric that at least one block has, or has a reason not to have.

    `alpha` is the level of the intervals.
    """
    names: dict[str, None] = {}
    for measured in table.by_block.values():
        names.update(dict.fromkeys((*measured.values, *measured.reasons)))
    blocks = [measured for _, measured in sorted(table.by_block.items())]
    values = {name: [one.values[name] for one in blocks if name in one.values] for name in names}
    found: dict[str, CellMetric | None] = {
        name: _without_ratio(table, name, values[name], alpha) for name in names
    }
    rates = [name for name in names if found[name] is None]
    estimates = geometric_means([values[name] for name in rates], alpha)
    for name, estimate in zip(rates, estimates, strict=True):
        found[name] = CellMetric(estimate, None if estimate else "a block measured zero")
    return {name: one for name, one in found.items() if one is not None}


def _without_ratio(table: CellTable, name: str, values: Sequence[float], alpha: float) -> CellMetric | None:
    """A metric that a block lacks, or that may be zero; None of one whose geometric mean tells."""
    lacking = [m.reasons[name] for m in table.by_block.values() if name in m.reasons]
    if lacking:
        return CellMetric(None, lacking[0])
    if any(name in measured.sums for measured in table.by_block.values()):
        return CellMetric(arithmetic_mean(values, alpha), None)
    return None


def compare_cells(base: CellTable, other: CellTable, metric: str) -> Ratio | None:
    """The ratio other/base over the blocks that both have; None where none has the metric in both."""
    shared = [
        block
        for block in sorted(base.by_block)
        if block in other.by_block
        and metric in base.by_block[block].values
        and metric in other.by_block[block].values
    ]
    return paired_ratio(
        [base.by_block[block].values[metric] for block in shared],
        [other.by_block[block].values[metric] for block in shared],
        shared,
    )


def compare_cells_of_two_runs(base: CellTable, other: CellTable, metric: str) -> Ratio | None:
    """The ratio other/base of cells that were measured at different times, so that no blocks pair up."""
    values = [
        [
            measured.values[metric]
            for _, measured in sorted(table.by_block.items())
            if metric in measured.values
        ]
        for table in (base, other)
    ]
    return unpaired_ratio(values[0], values[1])


def worst_trial(trials: Sequence[TrialRow], value: Callable[[TrialRow], float | None]) -> tuple[float, str]:
    """The largest of some trials' values, and which trial has it; 0.0 where none has one."""
    found = [(v, trial.trial) for trial in trials if (v := value(trial)) is not None]
    return max(found, default=(0.0, ""))
