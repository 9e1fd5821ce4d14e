"""The tables of a study of pipelines: operations, their comparison by target, network rates, where time went.

A series is one pipeline on one target. Figures are of complete trials; where there is none, of what was
measured before a stage failed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from leadline.analysis.cells import CellTable
from leadline.analysis.statistics.differences import MeanDifference, Sides, mean_differences
from leadline.analysis.statistics.means import Estimate, arithmetic_mean, geometric_mean, typical
from leadline.knowledge.tables import numbers
from leadline.plan.model import PlannedCell
from leadline.store.own import StageRow
from leadline.verdict.model import (
    UNUSABLE,
    Cell,
    Comparison,
    FigureRow,
    FigureTable,
    Quantity,
    State,
    worst,
)
from leadline.verdict.sections.charts import StageSpan
from leadline.verdict.sections.section import Section, stages_section
from leadline.workloads.pipeline.job import PipelineJob

WHOLE = "the whole"
_COPYING = ("download", "ingest", "copy")
_BITS = 8
STAGE_TIME = "stage_time_"


def thresholds() -> Mapping[str, float]:
    """The table of `thresholds.yaml`."""
    return numbers(__package__)


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
        """The plain mean of a time or an amount over trials, each trial's over its clients; where every row
        has it. Times of stages add up, and so do plain means of them."""
        blocks = self._blocks(stage, value, lambda values: sum(values) / len(values))
        return _over_blocks(blocks, arithmetic_mean, unit)

    def typical(self, stage: str, value: Callable[[StageRow], float | None], unit: str) -> Quantity:
        """The geometric mean of a rate, in the same way."""
        return _over_blocks(self._blocks(stage, value, typical), geometric_mean, unit)

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
        why = "a block measured zero" if blocks else "this stage was not reached"
        return Quantity(None, unit, reason=why)
    return Quantity(found.value, unit, found.low, found.high, found.count)


@dataclass(frozen=True)
class StageBeside:
    """A stage, or the whole, on two targets: mean seconds in the blocks that both have, and those of them in
    calls on files of the target, None without a trace. `longer` is other less base."""

    stage: str
    base_s: float
    other_s: float
    base_calls_s: float | None
    other_calls_s: float | None
    longer: MeanDifference


@dataclass(frozen=True)
class PipelineBeside:
    """A pipeline on another target beside the same one on the base, stage by stage, in seconds.

    `calls_longer` is by how much longer calls on files took there in all, None without a trace.
    """

    base: PipelineSeries
    other: PipelineSeries
    stages: tuple[StageBeside, ...]
    whole: StageBeside
    calls_longer: MeanDifference | None


SeriesTimes = Mapping[str, tuple[float, float | None]]  # by stage: seconds, and those of them in calls
_Times = Mapping[int, SeriesTimes]  # by block


def beside_base(
    lines: Sequence[PipelineSeries], comparisons: Sequence[Comparison], alpha: float
) -> tuple[PipelineBeside, ...]:
    """Every target that was compared with a base, work by work.

    What the whole took and what all calls took answer the question, and share the chance to err; stages
    explore, and share a false discovery rate.
    """
    by_place = {(line.cell.work, line.cell.target): line for line in lines}
    pairs: list[_InBlocks] = []
    for work, base, other in dict.fromkeys((c.work, c.base, c.other) for c in comparisons):
        lines_of_pair = [by_place[work, name] for name in (base, other) if (work, name) in by_place]
        if len(lines_of_pair) == 2 and not any(one.cell.validity.state in UNUSABLE for one in lines_of_pair):
            found = _InBlocks.of(*lines_of_pair)
            pairs += [found] if found.blocks else []
    asked = [one.sides(WHOLE, which) for one in pairs for which in ((0, 1) if one.traced else (0,))]
    parts = [one.sides(stage, 0) for one in pairs for stage in stages_of([one.base])]
    answers = iter(mean_differences(asked, alpha, explores=False))
    explored = iter(mean_differences(parts, alpha))
    made = []
    for one in pairs:
        whole = one.stage(WHOLE, next(answers))
        calls = next(answers) if one.traced else None
        own = tuple(one.stage(stage, next(explored)) for stage in stages_of([one.base]))
        made.append(PipelineBeside(one.base, one.other, own, whole, calls))
    return tuple(made)


@dataclass(frozen=True)
class _InBlocks:
    """Two pipelines in the blocks that both have: of each, by block, the seconds of each stage."""

    base: PipelineSeries
    other: PipelineSeries
    times: tuple[_Times, _Times]
    blocks: tuple[int, ...]

    @classmethod
    def of(cls, base: PipelineSeries, other: PipelineSeries) -> _InBlocks:
        """Both, as far as they came to their end in the same blocks."""
        times = (_times(base), _times(other))
        return cls(base, other, times, tuple(sorted(times[0].keys() & times[1].keys())))

    @property
    def traced(self) -> bool:
        """What calls took is known of all of them."""
        return all(side[block][WHOLE][1] is not None for side in self.times for block in self.blocks)

    def sides(self, stage: str, which: int) -> Sides:
        """The seconds of a stage, or (`which` 1) those in calls."""
        before, after = (tuple(side[b][stage][which] or 0.0 for b in self.blocks) for side in self.times)
        whole_s = _mean([side[b][WHOLE][0] for side in self.times for b in self.blocks]) or 1.0
        names = (self.base.cell.id, self.other.cell.target)
        return Sides(*names, before, after, thresholds()["negligible_share"] * whole_s)

    def stage(self, name: str, longer: MeanDifference) -> StageBeside:
        """Means of both, beside the difference."""
        (base_s, base_calls_s), (other_s, other_calls_s) = (
            [_mean([side[block][name][which] for block in self.blocks]) for which in (0, 1)]
            for side in self.times
        )
        return StageBeside(name, base_s or 0.0, other_s or 0.0, base_calls_s, other_calls_s, longer)


def _times(line: PipelineSeries) -> _Times:
    """By block and stage the mean over clients, the whole from the first start to the last end of each."""
    blocks = {trial.trial: trial.block for trial in line.cell.trials}
    found: dict[int, dict[str, tuple[float, float | None]]] = {}
    stages = stages_of([line])
    for rows in line.good:
        clients = [[row for row in rows if row.client == one] for one in sorted({row.client for row in rows})]
        if any(stage not in {row.stage for row in own} for own in clients for stage in stages):
            continue
        spans = [(max(r.ended_ns for r in own) - min(r.started_ns for r in own)) / 1e9 for own in clients]
        by_stage = {stage: _mean_times([row for row in rows if row.stage == stage]) for stage in stages}
        calls = [one[1] for one in by_stage.values()]
        every = None if None in calls else sum(one or 0.0 for one in calls)
        found[blocks[rows[0].trial]] = {**by_stage, WHOLE: (sum(spans) / len(spans), every)}
    return found


def _mean_times(rows: Sequence[StageRow]) -> tuple[float, float | None]:
    calls = [None if (rest := compute_s(row)) is None else row.seconds - rest for row in rows]
    mean_s = sum(row.seconds for row in rows) / len(rows)
    return mean_s, None if None in calls else sum(one or 0.0 for one in calls) / len(rows)


def series_times(line: PipelineSeries) -> SeriesTimes | None:
    """Mean seconds of each stage and of the whole, and those of them in calls on files of the target, None
    without a trace; None where no trial came to its end."""
    blocks = list(_times(line).values())
    if not blocks:
        return None
    return {
        stage: (_mean([one[stage][0] for one in blocks]) or 0.0, _mean([one[stage][1] for one in blocks]))
        for stage in (*stages_of([line]), WHOLE)
    }


def _mean(values: Sequence[float | None]) -> float | None:
    return None if None in values else sum(value or 0.0 for value in values) / len(values)


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


def pipeline_section(
    lines: Sequence[PipelineSeries], beside: Sequence[PipelineBeside] = ()
) -> Section | None:
    """The tables and the spans of the chart; None where no pipeline was run."""
    if not any(line.shown for line in lines):
        return None
    by_work: dict[str, list[PipelineSeries]] = {}
    for line in lines:
        by_work.setdefault(line.cell.work, []).append(line)
    tables = [_compared(work, own, beside, len(by_work) > 1) for work, own in by_work.items()]
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
    work: str, lines: Sequence[PipelineSeries], beside: Sequence[PipelineBeside], several: bool
) -> FigureTable:
    """Times by target, and how much longer each other target takes than the first."""
    own = [one for one in beside if one.other.cell.work == work]
    rows = []
    for stage in (*stages_of(lines), WHOLE):
        metric = "run_time" if stage == WHOLE else f"{STAGE_TIME}{stage}"
        times = [line.cell.metrics.get(metric, Quantity(None, "s", reason="not measured")) for line in lines]
        longer = [_longer(one, stage) for one in own]
        rows.append(FigureRow((_marked(lines, stage),), (*times, *longer), _worst(lines)))
    differences = (f"{one.other.cell.target} \u2212 {one.base.cell.target}" for one in own)
    return FigureTable(
        f"comparison_{work}",
        f"Operations compared: {work}" if several else "Operations compared",
        ("Operation",),
        (*(line.cell.target for line in lines), *differences),
        tuple(rows),
        "Times are plain means over blocks and clients: those of stages add up. Differences are of the blocks"
        " that both have; of stages whose interval leaves out 0 at most 5 % differ by chance, on average.",
    )


def _longer(beside: PipelineBeside, stage: str) -> Quantity:
    found = next(one for one in (*beside.stages, beside.whole) if one.stage == stage).longer
    return Quantity(found.value, "s", found.low, found.high, found.blocks)


def _marked(lines: Sequence[PipelineSeries], stage: str) -> str:
    wide = any(row.enlarges for line in lines for row in line.rows(stage))
    return f"{stage} (enlarges)" if wide else stage


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
            line.mean(stage, lambda row: row.seconds, "s"),
            line.mean(stage, lambda row: row.read_s, "s"),
            line.mean(stage, lambda row: row.write_s, "s"),
            line.mean(stage, lambda row: row.meta_s, "s"),
            line.mean(stage, compute_s, "s"),
            line.mean(stage, cpu_s, "s"),
        )
        rows.append(FigureRow(keys, values, line.cell.validity.state))
    return FigureTable(
        "time",
        "Where the time of each operation went",
        ("Target", "Operation"),
        ("Duration", "Reading", "Writing", "Metadata", "Outside of file calls", "CPU time"),
        tuple(rows),
        "Plain means over blocks and clients. Reading, writing and metadata: calls on files of the target, by"
        " the trace."
        " What is outside of file calls was computing or waiting. CPU time adds up all processors.",
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
