"""The conducted face of I/O: the engine does it by itself."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from leadline.run.face import SLOWEST_BYTES_PER_S, Assignment, Conducted
from leadline.run.storage.workspace import forget_cached
from leadline.study.schemes import uses_storage

if TYPE_CHECKING:
    from leadline.workloads.io.job import Job


class IoConducted(Conducted["Job"]):
    """One job that moves data."""

    kind = "io"

    def deadline_s(self, job: Job) -> float:
        """By its time, or by its size at a pace below which it counts as hung."""
        planned_s = super().deadline_s(job)
        return planned_s if job.time_based else max(planned_s, job.data_set_bytes / SLOWEST_BYTES_PER_S)

    def as_worker_job(self, job: Job, given: Assignment) -> dict[str, Any]:
        """See the base; its layout keeps to a rate."""
        rate = {"layout_rate_bytes_per_s": given.layout_rate_bytes_per_s}
        return super().as_worker_job(job, given) | rate

    def at_rate(self, job: Job, rate_iops: float) -> Job:
        """See the base."""
        return job.model_copy(update={"rate_iops": rate_iops, "rate_bytes_per_s": None})

    def forget(self, job: dict[str, Any]) -> None:
        """Pages of the job's files; what a library reaches is in no page cache."""
        if not job["direct"] and uses_storage(job["engine"]) and not job.get("location"):
            forget_cached(Path(job["directory"]), job["prefix"])
