"""The conducted face of a pipeline: its source is staged or served, and its clients run in a worker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from leadline.run.face import Assignment, Conducted, Say
from leadline.workloads.application.conducted import program_cause, program_job, programs_deadline_s
from leadline.workloads.application.staging import forget_input, stage_input_of
from leadline.workloads.pipeline.trial import run_trial

if TYPE_CHECKING:
    from leadline import _core
    from leadline.workloads.pipeline.job import PipelineJob


class PipelineConducted(Conducted["PipelineJob"]):
    """Clients that go through all stages at once."""

    kind = "pipeline"
    own_beside_layout = True

    def deadline_s(self, job: PipelineJob) -> float:
        """See the base."""
        return programs_deadline_s(job)

    def cause(self, job: PipelineJob) -> str:
        """The same stages, for whatever number of clients."""
        return program_cause(job)

    def as_worker_job(self, job: PipelineJob, given: Assignment) -> dict[str, Any]:
        """See the base."""
        return program_job(job, given)

    def lay_out(self, job: dict[str, Any], say: Say) -> dict[str, Any]:
        """Stage the source."""
        return stage_input_of(job, say)

    def forget(self, job: dict[str, Any]) -> None:
        """See the base."""
        forget_input(job)

    def run(self, job: dict[str, Any], record: str, meeting: _core.Meeting | None) -> dict[str, Any]:
        """Programs write no record of the engine's."""
        del record
        if meeting is not None:
            meeting.come()
        return run_trial(job)
