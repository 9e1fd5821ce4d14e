"""The planned face of metadata operations: what is done to files and directories themselves."""

from __future__ import annotations

from collections.abc import Iterator

from leadline.errors import SpecError
from leadline.study.kind.face import (
    NOMINAL_OPERATIONS_PER_S,
    Layout,
    Planned,
    Resolved,
    Surroundings,
    files_layout,
)
from leadline.study.kind.moved import WorkBytes
from leadline.study.kind.rule import Problem
from leadline.study.target import Target, TargetFacts
from leadline.workloads.metadata.job import MetadataJob
from leadline.workloads.metadata.options import MetadataOptions
from leadline.workloads.metadata.resolve import resolve_metadata
from leadline.workloads.metadata.rules import metadata_rules


class MetadataPlanned(Planned[MetadataOptions, MetadataJob]):
    """Operations in phases, on trees of files."""

    kind = "metadata"
    job = MetadataJob
    told_by = "operations"
    options = MetadataOptions
    example = "operations: [create, stat, unlink]"
    foreign = "is of jobs that move data, and means nothing with"
    no_rate = "operations"
    plain_levels = ("file_size",)
    byte_fields = ("bs", "file_size")

    def problems(self, options: MetadataOptions, foreign: Iterator[Problem]) -> Iterator[Problem]:
        """See the base."""
        yield from foreign
        yield from metadata_rules(options)

    def resolve(
        self, work: str, options: MetadataOptions, target: Target, facts: TargetFacts, around: Surroundings
    ) -> Resolved:
        """See the base."""
        del around
        return resolve_metadata(work, options, target, facts)

    def work_bytes(self, options: MetadataOptions) -> WorkBytes:
        """None: what it asks of is the metadata servers."""
        del options
        raise SpecError(
            "its operations are of metadata, and how many of them a client needs is not in it",
            "write them: metadata: {create: 5, stat: 40}, operations a second of each client",
        )

    def layout(self, job: MetadataJob) -> Layout | None:
        """The files that `first_byte` reads; everything else makes its own."""
        return None if job.fresh_files else files_layout(job.numjobs, job.files, job.file_size)

    def untimed_seconds(self, job: MetadataJob) -> float:
        """One pass over all phases."""
        return job.pass_operations / NOMINAL_OPERATIONS_PER_S
