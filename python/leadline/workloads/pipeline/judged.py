"""Pipelines as verdicts see them: programs whose stages each have a time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from leadline.analysis.metrics import Measured, MetricKind
from leadline.analysis.origin import Bytes
from leadline.store.stages import StageRow, read_stages
from leadline.store.tables import LatencyRow, TrialRow
from leadline.verdict.face import ColdInput, KindAnswer, OwnCells
from leadline.verdict.model import Statement
from leadline.verdict.sections.section import Section
from leadline.workloads.application.judged import COMPARED, JudgedPrograms, Traces
from leadline.workloads.pipeline.figures import STAGE_TIME, cold_bytes, metric_stage, stage_times
from leadline.workloads.pipeline.job import PipelineJob
from leadline.workloads.pipeline.tables import lines_of, pipeline_section
from leadline.workloads.pipeline.words import pipeline_answer, pipeline_statements

if TYPE_CHECKING:
    from leadline.store.reader import Result


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
        return Measured({**found.values, **stage_times(trial)}, found.reasons)

    def default_metrics(self, job: PipelineJob) -> tuple[str, ...]:
        """The time of the whole and of each stage."""
        return (COMPARED[0], *(f"{STAGE_TIME}{one.stage}" for one in job.pipeline))

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
        return pipeline_statements(_lines(own), own.comparisons)

    def answer(self, own: OwnCells) -> KindAnswer:
        """How much of the time had to do with files of the target."""
        return pipeline_answer(_lines(own))

    def section(self, own: OwnCells) -> Section | None:
        """Operations, their comparison, and where time and bytes went."""
        return pipeline_section(_lines(own), own.comparisons)


def _lines(own: OwnCells) -> Any:
    return lines_of(own.planned, own.cells, own.tables, own.extra.stages if own.extra else ())
