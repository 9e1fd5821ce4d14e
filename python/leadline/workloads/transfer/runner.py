"""The runner of a transfer: the engine moves the data, and its log becomes the table `acks`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leadline.run.interface import (
    SLOWEST_BYTES_PER_S,
    Assignment,
    Conducted,
    JobFiles,
    engine_job,
)
from leadline.run.workspace import forget_cached
from leadline.study.schemes import uses_storage

if TYPE_CHECKING:
    from leadline import _core
    from leadline.workloads.transfer.job import TransferJob


class TransferConducted(Conducted["TransferJob"]):
    """Streams at once, a file each."""

    kind = "transfer"

    def deadline_s(self, job: TransferJob) -> float:
        """By its time, or by its size at a pace below which it counts as hung."""
        planned_s = super().deadline_s(job)
        return planned_s if job.time_based else max(planned_s, job.data_set_bytes / SLOWEST_BYTES_PER_S)

    carried = JobFiles(brought=("acks",), ours=("result",))

    def as_worker_job(self, job: TransferJob, given: Assignment) -> dict[str, Any]:
        """See the base."""
        if given.trial is not None:
            log = given.logs.resolve() / "acks"  # gone when the trial is stored
            own: dict[str, Any] = {"acks": str(log), "result": str(given.result.resolve())}
            own |= {"source": job.source} if job.copies else {}
            return engine_job(job.engine_format, job.as_engine_json(), given) | own
        own = {"layout_rate_bytes_per_s": given.layout_rate_bytes_per_s}
        return engine_job(job.engine_format, job.as_engine_json(), given) | own

    def forget(self, job: dict[str, Any]) -> None:
        """Pages of the streams' files; what a library reaches is in no page cache."""
        if not job["direct"] and uses_storage(job["engine"]) and not job.get("location"):
            forget_cached(Path(job["directory"]), job["prefix"])

    def run(self, job: dict[str, Any], record: str, meeting: _core.Meeting | None) -> dict[str, Any]:
        """See the base; the log of acknowledgements becomes a table."""
        job = dict(job)
        if job["transfer"] == "copy":
            from leadline.workloads.transfer.third_party import copy_files

            if meeting is not None:
                meeting.come()
            return copy_files(job)
        whole = dict(job)
        job.pop("result", None)
        Path(job["acks"]).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        summary = super().run(job, record, meeting)
        if "result" in whole:  # else the log is fetched from this host
            self.taken(whole, summary)
        return summary

    def taken(self, job: dict[str, Any], summary: dict[str, Any]) -> None:
        """See the base; the table of acknowledgements."""
        from leadline.store.own import read_ack_log, write_acks

        if summary["state"] == "complete":
            log = read_ack_log(Path(job["acks"]), int(summary.get("acks_lost", 0)))
            write_acks(Path(job["result"]), job["trial"], log)

    def gather(self, trial: str, into: Path, hosts: Mapping[str, Path]) -> None:
        """The acknowledgements of all hosts in one table."""
        from leadline.store.own import join_acks

        join_acks(into, trial, hosts)
