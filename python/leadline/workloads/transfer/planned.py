"""The planned face of transfers: streams to a target or from it, with buffers in flight."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from leadline import units
from leadline.errors import SpecError
from leadline.study.kind.face import (
    NOMINAL_BYTES_PER_S,
    Layout,
    Planned,
    Resolved,
    Surroundings,
    files_layout,
)
from leadline.study.kind.moved import WorkBytes, size_words
from leadline.study.kind.rule import Problem
from leadline.study.schemes import uses_storage
from leadline.study.target import Target, TargetFacts
from leadline.workloads.transfer.job import TransferJob
from leadline.workloads.transfer.options import TransferOptions
from leadline.workloads.transfer.resolve import resolve_transfer
from leadline.workloads.transfer.rules import (
    BUFFER_DEFAULT_BYTES,
    IN_FLIGHT_DEFAULT,
    streams_of,
    transfer_rules,
)


class TransferPlanned(Planned[TransferOptions, TransferJob]):
    """Streams, a file each."""

    kind = "transfer"
    job = TransferJob
    told_by = "transfer"
    options = TransferOptions
    example = "transfer: write, read, duplex or copy"
    no_rate = "transfers"
    plain_levels = ("buffer", "size")
    rates = ("bandwidth", "iops")
    byte_fields = ("buffer", "size", "rate_bytes_per_s")

    def problems(self, options: TransferOptions, foreign: Iterator[Problem]) -> Iterator[Problem]:
        """See the base."""
        yield from foreign
        yield from transfer_rules(options)

    def resolve(
        self, work: str, options: TransferOptions, target: Target, facts: TargetFacts, around: Surroundings
    ) -> Resolved:
        """See the base."""
        return resolve_transfer(work, options, target, facts, around)

    def work_bytes(self, options: TransferOptions) -> WorkBytes:
        """See the base. A rate is of all clients together, a size of each of a client's streams."""
        if options.transfer == "copy":
            raise SpecError(
                "two servers move the data, and not these clients", "write read: or write: with a figure"
            )
        streams, readers = streams_of(options)
        known = isinstance(options.size, int) and not options.time_based
        return WorkBytes(
            readers / streams,
            float(options.size) * streams if known and options.size is not None else None,
            None if options.rate is None else options.rate / (options.clients or 1),
            f"{options.transfer} in buffers of {size_words((options.buffer or BUFFER_DEFAULT_BYTES,))}",
            streams * (options.in_flight or IN_FLIGHT_DEFAULT),
        )

    def told_engine(self, job: TransferJob) -> Mapping[str, Any] | None:
        """Nothing of a copy between two servers."""
        return None if job.copies else job.as_engine_json()

    def hosts_wanted(self, job: TransferJob) -> int | None:
        """Its clients."""
        return job.clients

    def layout(self, job: TransferJob) -> Layout | None:
        """The files that are read. Those that a duplex writes are among them, so that nobody shares them."""
        if not job.reads or not uses_storage(job.engine):
            return None
        content = "" if job.incompressible else "-compressible"
        content += f"-duplex{job.readers}" if job.writes else ""
        return files_layout(job.streams, 1, job.size, content, incompressible=job.incompressible)

    def untimed_seconds(self, job: TransferJob) -> float:
        """By size, at the pace that was asked for, and no longer than its runtime."""
        speed = min(float(NOMINAL_BYTES_PER_S), float(job.rate_bytes_per_s or NOMINAL_BYTES_PER_S))
        by_size_s, limit_s = job.data_set_bytes / speed, job.runtime_ns / units.NS_PER_S
        return min(by_size_s, limit_s) if limit_s else by_size_s

    def option_words(self, job: TransferJob, name: str, value: Any) -> str | None:
        """Files that are sent by how many they are."""
        del value
        return f"{len(job.sources)} files" if name == "sources" and job.sources else None
