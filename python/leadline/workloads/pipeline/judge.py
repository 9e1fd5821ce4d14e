"""Pipelines as verdicts see them: programs whose stages each have a time."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from leadline import units
from leadline.analysis.chain import Bytes
from leadline.analysis.metrics import Measured, MetricKind
from leadline.store.own import StageRow, read_stages
from leadline.store.tables import LatencyRow, TrialRow
from leadline.verdict.interface import ColdInput, KindAnswer, OwnCells
from leadline.verdict.model import Statement
from leadline.verdict.sections.section import Section
from leadline.workloads.application.figures import account_of
from leadline.workloads.application.judge import COMPARED, JudgedPrograms, Traces
from leadline.workloads.pipeline.job import PipelineJob
from leadline.workloads.pipeline.messages import pipeline_answer, pipeline_statements
from leadline.workloads.pipeline.tables import STAGE_TIME, beside_base, lines_of, pipeline_section

if TYPE_CHECKING:
    from leadline.store.reader import Result


def metric_stage(name: str) -> str | None:
    """The stage of a pipeline that a metric is the time of; None for every other metric."""
    return name.removeprefix(STAGE_TIME) if name.startswith(STAGE_TIME) else None


def cold_bytes(trial: TrialRow) -> int | None:
    """What its stages read for the first time, bytes; None of a trial that does not say so."""
    found = [stage.get("cold_bytes") for stage in json.loads(trial.summary).get("stages") or ()]
    return None if not found or None in found else sum(found)


def stage_times(trial: TrialRow) -> dict[str, float]:
    """How long each stage of a pipeline took, the plain mean over the clients: stages add up."""
    seconds: dict[str, list[float]] = {}
    for stage in json.loads(trial.summary).get("stages") or ():
        seconds.setdefault(str(stage["stage"]), []).append(float(stage["seconds"]))
    return {f"{STAGE_TIME}{name}": sum(found) / len(found) for name, found in seconds.items()}


@dataclass(frozen=True)
class PipelineExtra:
    """What was traced of the clients of each trial, and the stages of all trials."""

    traces: Traces
    stages: tuple[StageRow, ...]


class JudgedPipeline(JudgedPrograms[PipelineJob]):
    """As an application, its clients being the copies; the time of each stage is compared, too."""

    kind = PipelineJob.kind

    def known_metrics(self) -> tuple[str, ...]:
        """None besides those of an application: stages are named by a study."""
        return ()

    def metric_kind(self, name: str) -> MetricKind | None:
        """The time of a stage has sentences of its own, and no headline."""
        stage = metric_stage(name)
        if stage is None:
            return super().metric_kind(name)
        return MetricKind("s", False, f"time of stage {stage}", leads=False)

    def read(self, result: Result) -> Any:
        """Traces and stages."""
        return PipelineExtra(super().read(result), tuple(read_stages(result)))

    def private(self, extra: Any) -> Iterable[str]:
        """How stages ended badly."""
        return (row.error for row in extra.stages if row.error) if extra else ()

    def metrics(
        self, trial: TrialRow, latency: Sequence[LatencyRow], *, open_loop: bool, extra: Any
    ) -> Measured:
        """An application's, and the time of each stage."""
        traces = extra.traces if extra else None
        found = super().metrics(trial, latency, open_loop=open_loop, extra=traces)
        took = [copy["wall_ns"] / 1e9 for copy in account_of(trial)]
        whole = {COMPARED[0]: sum(took) / len(took)} if took else {}  # the plain mean, as of the stages
        return Measured({**found.values, **whole, **stage_times(trial)}, found.reasons)

    def progress(self, trial: TrialRow) -> str | None:
        """The run time of its clients."""
        took = [copy["wall_ns"] / 1e9 for copy in account_of(trial)]
        if not took:
            return None
        words = f"run time {units.format_duration(sum(took) / len(took))}"
        return f"{words}, mean of {len(took)} clients" if took[1:] else words

    def measured(
        self, trial: TrialRow, latency: Sequence[LatencyRow], *, open_loop: bool = False, extra: Any = None
    ) -> Measured:
        """Times of stages add up to that of the whole, and so do their means."""
        found = super().measured(trial, latency, open_loop=open_loop, extra=extra)
        times = (name for name in found.values if name == COMPARED[0] or metric_stage(name))
        return replace(found, sums=found.sums | frozenset(times))

    def default_metrics(self, job: PipelineJob) -> tuple[str, ...]:
        """The time of the whole. Stages add up to it, and are compared in seconds: see `beside_base`."""
        del job
        return COMPARED[:1]

    def explaining_metrics(self, job: PipelineJob) -> tuple[str, ...]:
        """The time of each stage."""
        return tuple(f"{STAGE_TIME}{one.stage}" for one in job.pipeline)

    def expected_metrics(self, job: PipelineJob) -> tuple[str, ...]:
        """Both."""
        return (*self.default_metrics(job), *self.explaining_metrics(job))

    def read_cold(self, job: PipelineJob, found: Bytes, trials: Sequence[TrialRow]) -> Bytes | None:
        """What each stage reads of its inputs for the first time: what is read again may be in a cache."""
        cold = [cold_bytes(trial) for trial in trials]
        if job.cache != "cold" or None in cold:
            return None
        known = min(found.application, sum(one or 0 for one in cold))
        return replace(found, application=known) if known else None

    def cold_input(self, job: PipelineJob) -> ColdInput | None:
        """A staged source is the input of a stage, as every other file."""
        return None

    def statements(self, own: OwnCells) -> Iterable[Statement]:
        """What the stages say."""
        lines = _lines(own)
        return pipeline_statements(lines, beside_base(lines, own.comparisons, own.alpha))

    def answer(self, own: OwnCells) -> KindAnswer:
        """How much of the time had to do with files of the target."""
        lines = _lines(own)
        return pipeline_answer(lines, beside_base(lines, own.comparisons, own.alpha))

    def section(self, own: OwnCells) -> Section | None:
        """Operations, their comparison, and where time and bytes went."""
        lines = _lines(own)
        return pipeline_section(lines, beside_base(lines, own.comparisons, own.alpha))


def _lines(own: OwnCells) -> Any:
    return lines_of(own.planned, own.cells, own.tables, own.extra.stages if own.extra else ())
