"""The conducted face of a pipeline: its source is staged or served, and its clients run in a worker."""

from __future__ import annotations

from typing import Any

from leadline.run.face import Assignment, Conducted, Say
from leadline.workloads.application.conducted import program_job, programs_deadline_s
from leadline.workloads.application.staging import forget_input, stage_input_of
from leadline.workloads.pipeline.job import PipelineJob
from leadline.workloads.pipeline.trial import run_trial


class PipelineConducted(Conducted[PipelineJob]):
    """Clients that go through all stages at once."""

    kind = "pipeline"
    format = PipelineJob.engine_format
    own_beside_layout = True

    def deadline_s(self, job: PipelineJob) -> float:
        """See the base."""
        return programs_deadline_s(job)

    def as_worker_job(self, job: PipelineJob, given: Assignment) -> dict[str, Any]:
        """See the base."""
        return program_job(job, given)

    def lay_out(self, job: dict[str, Any], say: Say) -> dict[str, Any]:
        """Stage the source."""
        return stage_input_of(job, say)

    def forget(self, job: dict[str, Any]) -> None:
        """See the base."""
        forget_input(job)

    def run(self, job: dict[str, Any], record: str) -> dict[str, Any]:
        """Programs write no record of the engine's."""
        del record
        return run_trial(job)
