"""The runner of metadata operations: the engine does them by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from leadline.run.interface import SLOWEST_OPERATIONS_PER_S, Assignment, Conducted, engine_job
from leadline.transfer import TRANSFER_FORMAT, plain_transfer

if TYPE_CHECKING:
    from leadline.workloads.metadata.job import MetadataJob


class MetadataConducted(Conducted["MetadataJob"]):
    """Operations in phases. Nothing is forgotten before a trial: opening its files here would warm them."""

    kind = "metadata"

    def deadline_s(self, job: MetadataJob) -> float:
        """A pass is never cut, so that it may go on for another."""
        return super().deadline_s(job) + job.pass_operations / SLOWEST_OPERATIONS_PER_S

    def as_worker_job(self, job: MetadataJob, given: Assignment) -> dict[str, Any]:
        """See the base. The files that `first_byte` reads are laid out as those of a transfer are."""
        if given.trial is not None:
            return super().as_worker_job(job, given)
        files = plain_transfer(
            rw="read",
            bs=1,
            size=job.files * job.file_size,
            nrfiles=job.files,
            numjobs=job.numjobs,
            engine=given.place.engine,
            layout_rate_bytes_per_s=given.layout_rate_bytes_per_s,
        )
        return engine_job(TRANSFER_FORMAT, files, given)
