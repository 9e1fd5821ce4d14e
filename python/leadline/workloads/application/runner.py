"""The runner of an application: its input is staged, and its copies run in a worker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from leadline.run.interface import Assignment, Conducted, Say
from leadline.store.files import OUTPUT
from leadline.workloads.application.staging import forget_input, stage_input_of
from leadline.workloads.application.trial import run_trial

if TYPE_CHECKING:
    from leadline import _core
    from leadline.workloads.application.job import ApplicationJob


def program_job(job: ApplicationJob, given: Assignment) -> dict[str, Any]:
    """The JSON of a trial of programs, or of staging their input."""
    result = given.result.resolve()
    return {
        "format": job.engine_format,
        "trial": given.name,
        "cell": given.cell.id,
        "directory": given.place.directory,
        "prefix": given.prefix,
        "own_prefix": given.own_prefix,
        "result": str(result),
        "output": str(result / OUTPUT / given.name),
        "logs": str(given.logs.resolve()),
        **job.as_json(),
    }


def programs_deadline_s(job: ApplicationJob) -> float:
    """The longest that a trial may take: the worker ends it at its limit, the parent somewhat later."""
    return job.runtime_ns / 1e9 * job.runs


def program_cause(job: ApplicationJob) -> str:
    """All of a job but how many copies of it run at once."""
    return job.model_dump_json(exclude={"copies"})


class ApplicationConducted(Conducted["ApplicationJob"]):
    """Copies of a command at once."""

    kind = "application"
    own_beside_layout = True

    def deadline_s(self, job: ApplicationJob) -> float:
        """See the base."""
        return programs_deadline_s(job)

    def cause(self, job: ApplicationJob) -> str:
        """The same program, in whatever number of copies."""
        return program_cause(job)

    def as_worker_job(self, job: ApplicationJob, given: Assignment) -> dict[str, Any]:
        """See the base."""
        return program_job(job, given)

    def lay_out(self, job: dict[str, Any], say: Say) -> dict[str, Any]:
        """Stage the input."""
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
