"""The runner of a replay: its files are laid out anew before each trial, and the engine replays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from leadline.run.interface import (
    SLOWEST_BYTES_PER_S,
    SLOWEST_OPERATIONS_PER_S,
    Assignment,
    Conducted,
    JobFiles,
    Preparing,
)
from leadline.store.files import checked_name

if TYPE_CHECKING:
    from leadline.run.child import Answer
    from leadline.workloads.replay.job import ReplayJob


class ReplayConducted(Conducted["ReplayJob"]):
    """The calls of a trace."""

    kind = "replay"

    def deadline_s(self, job: ReplayJob) -> float:
        """What the trace took, and all of its calls and bytes at a pace below which they count as hung."""
        slowest_s = job.calls / SLOWEST_OPERATIONS_PER_S + job.moved_bytes / SLOWEST_BYTES_PER_S
        return super().deadline_s(job) + slowest_s

    def prepare(self, job: ReplayJob, target: str, preparing: Preparing) -> Answer | None:
        """A replay changes its files, so that each begins with its own."""
        del target
        return preparing.lay_out(job.data_set_bytes)

    carried = JobFiles(sent=("script",))

    def as_worker_job(self, job: ReplayJob, given: Assignment) -> dict[str, Any]:
        """See the base; the script is named by its whole path."""
        script = {"script": str((given.result / checked_name(job.script)).resolve())}
        return super().as_worker_job(job, given) | script
