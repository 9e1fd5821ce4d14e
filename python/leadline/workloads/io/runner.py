"""The runner of I/O: the engine does it by itself."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leadline import _core
from leadline.run.interface import SLOWEST_BYTES_PER_S, Assignment, Command, Conducted, ReadingBack, Say
from leadline.run.workspace import forget_cached
from leadline.study.schemes import uses_storage

if TYPE_CHECKING:
    from leadline.run.child import Answer
    from leadline.workloads.io.job import Job


_FIO = "fio"
READ_BACK = "io_read_back"


def check_files(command: dict[str, Any]) -> dict[str, Any]:
    """Read every block of a job's files past the caches, one at a time whatever the job does."""
    job = {**command["job"], "iodepth": 1, "direct": False, "sqthread_poll": False}
    if job.get("location") is None:
        job.pop("location", None)
    found: dict[str, Any] = _core.check(json.dumps(job))
    return found


class IoConducted(Conducted["Job"]):
    """One job that moves data."""

    kind = "io"

    def deadline_s(self, job: Job) -> float:
        """By its time, or by its size at a pace below which it counts as hung."""
        planned_s = super().deadline_s(job)
        return planned_s if job.time_based else max(planned_s, job.moved_bytes / SLOWEST_BYTES_PER_S)

    def as_worker_job(self, job: Job, given: Assignment) -> dict[str, Any]:
        """See the base; its layout keeps to a rate."""
        own: dict[str, Any] = {"layout_rate_bytes_per_s": given.layout_rate_bytes_per_s}
        if job.verify:
            own["ledger"] = str(given.ledger)
        return super().as_worker_job(job, given) | own

    def run(self, job: dict[str, Any], record: str, meeting: _core.Meeting | None) -> dict[str, Any]:
        """By our engine, or by the fio of this host."""
        if job.get("generator") != _FIO:  # the engine measures itself by a job without
            return super().run(job, record, meeting)
        from leadline.workloads.io.fio.trial import run_fio

        return run_fio(job, record, meeting)

    def recorded(self, job: Job, answer: Answer, record: dict[str, Any]) -> tuple[Answer, dict[str, Any]]:
        """fio writes no record of the engine's; its bins stand in the answer."""
        if job.generator != _FIO or not answer.value:
            return answer, record
        from leadline.workloads.io.fio.output import record_of

        summary = dict(answer.value)
        made = record_of(summary)
        return replace(answer, value=summary), made

    def read_back(self, job: Job, answer: Answer, reading: ReadingBack) -> Answer:
        """See the base; where it is verified."""
        if not job.verify or answer.outcome != "done":
            return answer
        from leadline.workloads.io.verification import read_back

        return read_back(job, answer, reading)

    def commands(self, say: Say) -> Mapping[str, Command]:
        """ReadingBack back, by whatever way the job names."""
        del say
        return {READ_BACK: check_files}

    def at_rate(self, job: Job, rate_iops: float) -> Job:
        """See the base."""
        return job.model_copy(update={"rate_iops": rate_iops, "rate_bytes_per_s": None})

    def forget(self, job: dict[str, Any]) -> None:
        """Pages of the job's files; what a library reaches is in no page cache."""
        if not job["direct"] and uses_storage(job["engine"]) and not job.get("location"):
            forget_cached(Path(job["directory"]), job["prefix"])
