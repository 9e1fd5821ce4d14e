"""The tables of a study of pipelines: operations, their comparison by target, network rates, where time went.

A series is one pipeline on one target. Figures are of complete trials; where there is none, of what was
measured before a stage failed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from leadline.analysis.cells import CellTable
from leadline.analysis.statistics.means import Estimate, arithmetic_mean, geometric_mean, typical
from leadline.plan.model import PlannedCell
from leadline.store.stages import StageRow
from leadline.verdict.model import (
    Cell,
    Comparison,
    FigureRow,
    FigureTable,
    Quantity,
    State,
    worst,
)
from leadline.verdict.sections.charts import StageSpan
from leadline.verdict.sections.section import Section
from leadline.verdict.sections.stages import stages_section
from leadline.workloads.pipeline.figures import STAGE_TIME
from leadline.workloads.pipeline.job import PipelineJob

WHOLE = "the whole"
_COPYING = ("download", "ingest", "copy")
_BITS = 8
_TIMES = "\u00d7"  # multiplication sign


@dataclass(frozen=True)
class PipelineSeries:
    """A pipeline on a target: its cell, and the stages of each of its trials, complete ones and others."""

    cell: Cell
    job: PipelineJob
    good: tuple[tuple[StageRow, ...], ...]
    failed: tuple[tuple[StageRow, ...], ...]

    @property
    def shown(self) -> tuple[tuple[StageRow, ...], ...]:
        """The trials that figures are of."""
        return self.good or self.failed

    def rows(self, stage: str) -> list[StageRow]:
        """Every row of a stage in the trials that figures are of."""
        return [row for trial in self.shown for row in trial if row.stage == stage]

    def mean(self, stage: str, value: Callable[[StageRow], float | None], unit: str) -> Quantity:
        """The plain mean of an amount over trials, each trial's over its clients; where every row has it."""
        blocks = self._blocks(stage, value, lambda values: sum(values) / len(values))
        return _over_blocks(blocks, arithmetic_mean, unit)

    def typical(self, stage: str, value: Callable[[StageRow], float | None], unit: str) -> Quantity:
        """The geometric mean of a time or a rate, in the same way: that which comparisons are of."""
        return _over_blocks(self._blocks(stage, value, typical), geometric_mean, unit)

    def part(self, stage: str, value: Callable[[StageRow], float | None]) -> Quantity:
        """A part of a stage's time, which may be zero: its share of the time of all trials, of the geometric
        mean of that. So parts add up to the whole."""
        plain, whole_s = self.mean(stage, value, "s"), self.mean(stage, _seconds, "s").value
        duration_s = self.typical(stage, _seconds, "s").value
        if plain.value is None or not whole_s or duration_s is None:
            return replace(plain, value=None, low=None, high=None, reason=plain.reason or "not observed")
        scale = duration_s / whole_s
        low, high = (None if bound is None else bound * scale for bound in (plain.low, plain.high))
        return replace(plain, value=plain.value * scale, low=low, high=high)

    def _blocks(
        self,
        stage: str,
        value: Callable[[StageRow], float | None],
        mean_of: Callable[[Sequence[float]], float | None],
    ) -> list[float] | None:
        """Each trial's mean over its clients; None where a row does not have the figure."""
        blocks = []
        for trial in self.shown:
            values = [value(row) for row in trial if row.stage == stage]
            known = [one for one in values if one is not None]
            mean = mean_of(known) if known else None
            if len(known) < len(values) or (known and mean is None):
                return None
            if mean is not None:
                blocks.append(mean)
        return blocks


def _over_blocks(
    blocks: Sequence[float] | None, mean_of: Callable[[Sequence[float]], Estimate | None], unit: str
) -> Quantity:
    if blocks is None:
        return Quantity(None, unit, reason="not observed")
    found = mean_of(blocks)
    if found is None:
        return Quantity(
            None, unit, reason="this stage was not reached" if not blocks else "a block measured zero"
        )
    return Quantity(found.value, unit, found.low, found.high, found.count)


def _seconds(row: StageRow) -> float:
    return row.seconds


def lines_of(
    planned: Sequence[PlannedCell],
    cells: Sequence[Cell],
    tables: Mapping[str, CellTable],
    stages: Sequence[StageRow],
) -> tuple[PipelineSeries, ...]:
    """The pipelines of a result, in the plan's order."""
    views = {cell.id: cell for cell in cells}
    by_trial: dict[str, list[StageRow]] = {}
    for row in stages:
        by_trial.setdefault(row.trial, []).append(row)
    found = []
    for cell in planned:
        if not isinstance(cell.job, PipelineJob):
            continue
        table = tables.get(cell.id)
        good = {trial.trial for trial in table.good} if table else set()
        trials = [trial.trial for trial in table.trials] if table else []
        own = [(name, tuple(by_trial.get(name, ()))) for name in trials]
        found.append(
            PipelineSeries(
                views[cell.id],
                cell.job,
                tuple(rows for name, rows in own if name in good and rows),
                tuple(rows for name, rows in own if name not in good and rows),
            )
        )
    return tuple(found)


def pipeline_section(lines: Sequence[PipelineSeries], comparisons: Sequence[Comparison]) -> Section | None:
    """The tables and the spans of the chart; None where no pipeline was run."""
    if not any(line.shown for line in lines):
        return None
    by_work: dict[str, list[PipelineSeries]] = {}
    for line in lines:
        by_work.setdefault(line.cell.work, []).append(line)
    tables = [_compared(work, own, comparisons, len(by_work) > 1) for work, own in by_work.items()]
    tables += [_operations(lines), _time_spent(lines), _bytes(lines), _copying(lines), _network(lines)]
    return stages_section(tuple(table for table in tables if table.rows), tuple(_spans(lines)))


def stages_of(lines: Sequence[PipelineSeries]) -> tuple[str, ...]:
    """The stages of some pipelines, in order."""
    return tuple(dict.fromkeys(stage.stage for line in lines for stage in line.job.pipeline))


def series_name(line: PipelineSeries, several: bool) -> str:
    """How a pipeline on a target is called beside others."""
    return f"{line.cell.target} {line.cell.work}" if several else line.cell.target


def several_works(lines: Sequence[PipelineSeries]) -> bool:
    """True where the work has to be named."""
    return len({line.cell.work for line in lines}) > 1


def _compared(
    work: str, lines: Sequence[PipelineSeries], comparisons: Sequence[Comparison], several: bool
) -> FigureTable:
    """Times by target, and the ratio of each other target to the first."""
    against = {(c.other, c.metric): c for c in comparisons if c.work == work}
    others = list(dict.fromkeys(other for other, _ in against))
    rows = []
    for stage in (*stages_of(lines), WHOLE):
        metric = "run_time" if stage == WHOLE else f"{STAGE_TIME}{stage}"
        times = [line.cell.metrics.get(metric, Quantity(None, "s", reason="not measured")) for line in lines]
        ratios = [_ratio(against.get((other, metric))) for other in others]
        rows.append(FigureRow((_marked(lines, stage),), (*times, *ratios), _worst(lines)))
    base = next((c.base for c in comparisons if c.work == work), "")
    return FigureTable(
        f"comparison_{work}",
        f"Operations compared: {work}" if several else "Operations compared",
        ("Operation",),
        (*(line.cell.target for line in lines), *(f"{other} / {base}" for other in others)),
        tuple(rows),
        "Times are geometric means over blocks and clients; ratios are paired by block, at the confidence of"
        " the comparison.",
    )


def _marked(lines: Sequence[PipelineSeries], stage: str) -> str:
    wide = any(row.enlarges for line in lines for row in line.rows(stage))
    return f"{stage} (enlarges)" if wide else stage


def _ratio(found: Comparison | None) -> Quantity:
    if found is None or found.ratio is None:
        return Quantity(None, _TIMES, reason="not measured on both")
    return Quantity(found.ratio, _TIMES, found.low, found.high, found.blocks)


def _worst(lines: Sequence[PipelineSeries]) -> State:
    return worst([line.cell.validity.state for line in lines])


def _operations(lines: Sequence[PipelineSeries]) -> FigureTable:
    """One trial of each target with its times of day: the first complete one, or else what there is."""
    rows = []
    for line in lines:
        for row in line.shown[0] if line.shown else ():
            state = row.stage if row.state == "complete" else f"{row.stage} (failed)"
            start, end = (_clock(row.started_unix_ns + add) for add in (0, row.ended_ns - row.started_ns))
            keys = (series_name(line, several_works(lines)), row.trial, str(row.client), state, start, end)
            value = Quantity(row.seconds, "s", blocks=1)
            rows.append(FigureRow(keys, (value,), line.cell.validity.state))
    return FigureTable(
        "operations",
        "Operations, with their times",
        ("Target", "Trial", "Client", "Operation", "Started (UTC)", "Finished (UTC)"),
        ("Duration",),
        tuple(rows),
        "One trial of each target, the first that was complete; all of them are in the table `stages`.",
    )


def _clock(unix_ns: int) -> str:
    return datetime.fromtimestamp(unix_ns / 1e9, UTC).strftime("%H:%M:%S.%f")[:-3]


def _each(lines: Sequence[PipelineSeries]) -> Iterator[tuple[PipelineSeries, str, tuple[str, str]]]:
    for line in lines:
        for stage in (one.stage for one in line.job.pipeline):
            if line.rows(stage):
                yield line, stage, (series_name(line, several_works(lines)), stage)


def compute_s(row: StageRow) -> float | None:
    """What no call on a file of the target took; None without a trace."""
    if row.read_s is None or row.write_s is None or row.meta_s is None:
        return None
    return max(0.0, row.seconds - row.read_s - row.write_s - row.meta_s)


def cpu_s(row: StageRow) -> float:
    """CPU time of a stage's processes."""
    return (row.cpu_user_ns + row.cpu_system_ns) / 1e9


def _time_spent(lines: Sequence[PipelineSeries]) -> FigureTable:
    rows = []
    for line, stage, keys in _each(lines):
        values = (
            line.typical(stage, _seconds, "s"),
            line.part(stage, lambda row: row.read_s),
            line.part(stage, lambda row: row.write_s),
            line.part(stage, lambda row: row.meta_s),
            line.part(stage, compute_s),
            line.part(stage, cpu_s),
        )
        rows.append(FigureRow(keys, values, line.cell.validity.state))
    return FigureTable(
        "time",
        "Where the time of each operation went",
        ("Target", "Operation"),
        ("Duration", "Reading", "Writing", "Metadata", "Computing", "CPU time"),
        tuple(rows),
        "Durations are geometric means over blocks and clients; the others are their shares of the time of"
        " all trials, of that. Reading, writing and metadata: calls on files of the target, by the trace."
        " Computing is the remainder, waiting for a CPU included. CPU time adds up all processors.",
    )


def _bytes(lines: Sequence[PipelineSeries]) -> FigureTable:
    rows = []
    for line, stage, keys in _each(lines):
        values = (
            line.mean(stage, lambda row: row.input_bytes, "B"),
            line.mean(stage, lambda row: row.target_read_bytes, "B"),
            line.mean(stage, lambda row: row.passes, "passes"),
            line.mean(stage, lambda row: row.target_written_bytes, "B"),
            line.mean(stage, lambda row: row.output_bytes, "B"),
        )
        rows.append(FigureRow(keys, values, line.cell.validity.state))
    return FigureTable(
        "bytes",
        "Where the bytes went",
        ("Target", "Operation"),
        ("Input", "Read there", "Passes over it", "Written there", "Output"),
        tuple(rows),
        "Plain means over blocks and clients. Read and written: on the target, by the trace. A pass is"
        " the whole input read once.",
    )


def copying_stages(job: PipelineJob) -> tuple[str, ...]:
    """The stages that move a file as it is."""
    return tuple(
        stage.stage for stage in job.pipeline if any(action.step in _COPYING for action in stage.actions)
    )


def _copying(lines: Sequence[PipelineSeries]) -> FigureTable:
    """The rate at which files were moved: what arrived over how long it took."""
    rows = []
    for line, stage, keys in _each(lines):
        if stage in copying_stages(line.job):
            rate = line.typical(stage, _rate, "B/s")
            bits = line.typical(stage, lambda row: _BITS * (_rate(row) or 0.0), "b/s")
            rows.append(FigureRow(keys, (rate, bits), line.cell.validity.state))
    return FigureTable(
        "file_copy",
        "File copy rates",
        ("Target", "Operation"),
        ("Rate", "In bits"),
        tuple(rows),
        "Geometric means over blocks and clients.",
    )


def _rate(row: StageRow) -> float | None:
    return row.output_bytes / row.seconds if row.seconds > 0 else None


def _network(lines: Sequence[PipelineSeries]) -> FigureTable:
    """What went over each interface while a stage ran, everybody's traffic."""
    rows = []
    for line, stage, keys in _each(lines):
        found = [json.loads(row.interfaces) for row in line.rows(stage)]
        for name in dict.fromkeys(name for one in found for name in one):
            values = tuple(
                line.mean(stage, _interface_rate(name, key), unit)
                for key, unit in (
                    ("received_bytes", "b/s"),
                    ("received_packets", "1/s"),
                    ("sent_bytes", "b/s"),
                    ("sent_packets", "1/s"),
                )
            )
            rows.append(FigureRow((*keys, name), values, line.cell.validity.state))
    return FigureTable(
        "network",
        "Network rates",
        ("Target", "Operation", "Interface"),
        ("Incoming", "Packets in", "Outgoing", "Packets out"),
        tuple(rows),
        "Plain means. Whole interfaces while an operation ran, everybody's traffic; through lo all"
        " that is sent arrives.",
    )


def _interface_rate(name: str, key: str) -> Callable[[StageRow], float | None]:
    def rate(row: StageRow) -> float | None:
        moved = json.loads(row.interfaces).get(name, {}).get(key, 0)
        factor = _BITS if key.endswith("_bytes") else 1
        return float(factor * moved) / (row.observed_ns / 1e9) if row.observed_ns else None

    return rate


def _spans(lines: Sequence[PipelineSeries]) -> Iterator[StageSpan]:
    several = several_works(lines)
    for line in lines:
        blocks = {trial.trial: trial.block for trial in line.cell.trials}
        for rows in line.shown[:1]:
            for row in rows:
                yield StageSpan(
                    series_name(line, several),
                    line.cell.target,
                    row.trial,
                    blocks.get(row.trial, 0),
                    row.client,
                    row.stage,
                    row.started_ns / 1e9,
                    row.ended_ns / 1e9,
                    line.cell.validity.state,
                    "enlarges its source" if row.enlarges else row.error or "",
                )
