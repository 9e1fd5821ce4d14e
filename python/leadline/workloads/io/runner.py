"""The runner of I/O: the engine does it by itself. What a verified trial wrote is read back afterwards.

The trial's own reads count with what is found afterwards: each block once.
"""

from __future__ import annotations

import errno
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leadline import _core
from leadline.run.child import Answer
from leadline.run.interface import (
    SLOWEST_BYTES_PER_S,
    Assignment,
    Command,
    Conducted,
    JobFiles,
    ReadingBack,
    Say,
)
from leadline.run.workspace import forget_cached
from leadline.study.schemes import uses_storage
from leadline.workloads.io.job import WRONG, Job

if TYPE_CHECKING:
    from leadline.run.child import Answer
    from leadline.workloads.io.job import Job


_ABSENT = ("lost", "torn", "zeroed")  # where the right data turns up elsewhere or later, a cache was stale
_EXAMPLES = 10


def read_back(job: Job, answer: Answer, reading: ReadingBack) -> Answer:
    """The trial's answer with `verification`: blocks by what they turned out to be, and each look at them.

    A trial with any wrong block has failed, of kind `verify`; what could not be read back has failed too.
    """
    summary = answer.value
    verify_failed = (summary.get("error") or {}).get("kind") == "verify"
    if summary["state"] != "complete" and not verify_failed:
        return answer
    found = Counter[str](summary["wrong_blocks"])
    looks: list[dict[str, Any]] = []
    if job.writes or found.total():
        own = reading.check(READ_BACK, reading.target)
        if own.outcome != "done":
            return _not_read_back(answer, own, reading.target)
        _add(found, own.value)
        looks.append(_look(reading.target, own.value))
    if job.read_back == "other":
        shown = False
        for target in reading.others:
            other = reading.check(READ_BACK, target)
            if other.outcome == "failed" and other.errno == errno.ENOENT:
                continue  # another directory, which has no such file
            if other.outcome != "done":
                return _not_read_back(answer, other, target)
            _add(found, other.value, by_another_way=True)
            looks.append(_look(target, other.value))
            shown = True
        if not shown:
            words = "none of the others shows its files"
            remedy = "name a target that is the same directory by another way, or write verify: true"
            return _not_read_back(answer, Answer("failed", message=words, remedy=remedy), reading.target)
    return replace(answer, value=_with_findings(summary, found, looks))


def _add(found: Counter[str], checked: Mapping[str, Any], *, by_another_way: bool = False) -> None:
    """Count what a look has found; what is absent by another way alone is in a cache on that way."""
    for kind, blocks in checked["wrong_blocks"].items():
        found["stale" if by_another_way and kind in _ABSENT else kind] += blocks
    found["stale"] += checked["stale_blocks"]
    for kind in _ABSENT:
        found["stale"] += checked["recovered_blocks"][kind]
        found[kind] -= checked["recovered_blocks"][kind]


def _look(target: str, checked: Mapping[str, Any]) -> dict[str, Any]:
    kept = ("blocks", "good_blocks", "unwritten_blocks", "past", "elapsed_ns")
    return {
        "target": target,
        **{key: checked[key] for key in kept},
        "examples": checked["mismatches"][:_EXAMPLES],
    }


def _with_findings(
    summary: Mapping[str, Any], found: Counter[str], looks: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """The summary with what was found; with any wrong block its trial has failed."""
    counts = {kind: found[kind] for kind in WRONG}
    read = sum(look["good_blocks"] for look in looks)
    judged = {
        **summary,
        "verified_blocks": summary["verified_blocks"] + read,
        "verification": {**counts, "looks": list(looks)},
    }
    if not any(counts.values()):
        return judged | {"state": "complete", "error": None}
    error = summary.get("error") or _first(looks)
    words = "; ".join(f"{blocks:,} {kind} ({WRONG[kind]})" for kind, blocks in counts.items() if blocks)
    first = f"; the first: {error['message']}" if error.get("message") else ""
    message = f"blocks of 4 KiB that are not what was written: {words}{first}"
    return judged | {"state": "error", "error": {**error, "message": message}}


def _first(looks: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """An error of the engine's kind, at the first place that a look names."""
    example = next((one for look in looks for one in look["examples"]), None)
    error = {"kind": "verify", "operation": "verify", "file": "", "offset": 0, "errno": None, "message": ""}
    if example is None:
        return error
    return {**error, "file": example["file"], "offset": example["offset"], "message": example["reason"]}


def _not_read_back(answer: Answer, failed: Answer, target: str) -> Answer:
    """The trial's own figures are known; whether they stand for anything is not."""
    words = f"what was written could not be read back through {target}: {failed.message}"
    return replace(
        failed,
        value={**answer.value, "state": "error"},
        message=words,
        remedy=failed.remedy or "see the target",
    )


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

    carried = JobFiles(kept=("ledger",))

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
        from leadline.workloads.io.fio import run_fio

        return run_fio(job, record, meeting)

    def recorded(self, job: Job, answer: Answer, record: dict[str, Any]) -> tuple[Answer, dict[str, Any]]:
        """fio writes no record of the engine's; its bins stand in the answer."""
        if job.generator != _FIO or not answer.value:
            return answer, record
        from leadline.workloads.io.fio import record_of

        summary = dict(answer.value)
        made = record_of(summary)
        return replace(answer, value=summary), made

    def read_back(self, job: Job, answer: Answer, reading: ReadingBack) -> Answer:
        """See the base; where it is verified."""
        if not job.verify or answer.outcome != "done":
            return answer
        from leadline.workloads.io.runner import read_back

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
