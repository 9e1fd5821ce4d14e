"""The planned face of I/O: reading and writing in fio's vocabulary."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from leadline import units
from leadline.errors import SpecError
from leadline.study.kind.face import (
    NOMINAL_BYTES_PER_S,
    NOMINAL_OPERATIONS_PER_S,
    Layout,
    Planned,
    Resolved,
    Surroundings,
    files_layout,
)
from leadline.study.kind.moved import WorkBytes, size_words
from leadline.study.kind.rule import Problem
from leadline.study.kind.sizes import SizeSplit, as_split
from leadline.study.schemes import uses_storage
from leadline.study.target import Target, TargetFacts
from leadline.workloads.io.job import Job
from leadline.workloads.io.options import IoOptions
from leadline.workloads.io.resolve import read_share, resolve_io
from leadline.workloads.io.rules import io_problems
from leadline.workloads.io.rules_data import sizes_of


class IoPlanned(Planned[IoOptions, Job]):
    """One job that moves data."""

    kind = "io"
    job = Job
    told_by = "rw"
    options = IoOptions
    example = "rw: read, write, randread, randwrite, rw or randrw"
    rates = ("bandwidth", "iops")
    paces = ("rate", "rate_iops")
    plain_levels = ("bs", "size", "io_size", "rate", "offset", "offset_increment", "rw", "engine", "direct")
    byte_fields = ("bs", "size", "io_size", "rate_bytes_per_s", "offset", "offset_increment")

    def problems(self, options: IoOptions, foreign: Iterator[Problem]) -> Iterator[Problem]:
        """See the base."""
        return io_problems(options, foreign)

    def resolve(
        self, work: str, options: IoOptions, target: Target, facts: TargetFacts, around: Surroundings
    ) -> Resolved:
        """See the base."""
        return resolve_io(work, options, target, facts, around)

    def work_bytes(self, options: IoOptions) -> WorkBytes:
        """See the base. A share of operations is none of bytes where reads and writes differ in size."""
        sizes, share = sizes_of(options), read_share(options) / 100
        split = as_split(options.bs, options.bssplit) or SizeSplit(
            read=((sizes[0], 100),), write=((sizes[0], 100),)
        )
        mean = split.mean_bytes(share)
        each = options.io_size or options.size
        known = isinstance(each, int) and not options.time_based
        pace = options.rate if options.rate_iops is None else options.rate_iops * mean
        return WorkBytes(
            split.mean_bytes(1) * share / mean,
            float(each) * (options.numjobs or 1) if known and each is not None else None,
            None if pace is None else float(pace),
            f"{options.rw} of {size_words(sizes)}",
            (options.iodepth or 1) * (options.numjobs or 1),
        )

    def check_search(self, job: Job, rate: float, source: str, around: Surroundings) -> None:
        """See the base."""
        limit = around.max_rate_bytes_per_s
        if limit is not None and rate * job.bs > limit:
            raise SpecError(
                f"{rate:g} operations of {units.exact_size(job.bs)} a second are above limits.max_rate,"
                f" {units.format_rate(limit)}",
                "search lower rates, or raise limits.max_rate",
                source=source,
                key="search",
            )

    def check_steady(self, job: Job, source: str) -> None:
        """See the base."""
        if job.generator != "leadline":
            raise SpecError(
                f"cannot be done by generator: {job.generator}, whose record is made at its end",
                "leave it out, or write generator: leadline",
                source=source,
                key="steady_state",
            )

    def layout(self, job: Job) -> Layout | None:
        """Files in full, one for each of a numjob's or the one that all share."""
        if not uses_storage(job.engine) or job.fresh_files:
            return None
        file_bytes = job.size * job.parts // job.nrfiles
        return files_layout(
            job.owners, job.nrfiles, file_bytes, _content(job), incompressible=job.incompressible
        )

    def spread(self, job: Job, targets: Sequence[str]) -> Sequence[tuple[str, Job]]:
        """As it is; what is read back by another way needs one."""
        if job.read_back == "other" and len(targets) == 1:
            raise SpecError(
                "verify: other reads back through other targets, and there is this one alone",
                "add a target that is the same directory by another way, or write verify: true",
                source=f"target {targets[0]}",
                key="verify",
            )
        return super().spread(job, targets)

    def seconds(self, job: Job) -> float:
        """With the time in which what was written is read back."""
        looks = {"same": 1, "other": 2}[job.read_back] if job.verify and job.writes else 0
        return super().seconds(job) + looks * job.data_set_bytes / NOMINAL_BYTES_PER_S

    def untimed_seconds(self, job: Job) -> float:
        """By size, at the pace that was asked for, and no longer than its runtime."""
        speed = float(min(NOMINAL_BYTES_PER_S, NOMINAL_OPERATIONS_PER_S * job.mean_bs))
        if job.rate_bytes_per_s is not None:
            speed = min(speed, float(job.rate_bytes_per_s))
        if job.rate_iops is not None:
            speed = min(speed, job.rate_iops * job.mean_bs)
        by_size_s, limit_s = job.moved_bytes / speed, job.runtime_ns / units.NS_PER_S
        return min(by_size_s, limit_s) if limit_s else by_size_s

    def option_words(self, job: Job, name: str, value: Any) -> str | None:
        """Sizes with their shares in fio's notation."""
        del value
        return job.bssplit.as_text() if name == "bssplit" and job.bssplit is not None else None


def _content(job: Job) -> str:
    """What tells files apart: data that is not incompressible, and what only verified works write to."""
    verified = "-verified" if job.verify else ""
    if job.incompressible:
        return verified
    compressed, equal = job.buffer_compress_percentage, job.dedupe_percentage
    kind = f"-compressible{compressed or ''}" if compressed or not equal else ""
    return kind + (f"-dedupe{equal}x{units.exact_size(job.bs)}" if equal else "") + verified
