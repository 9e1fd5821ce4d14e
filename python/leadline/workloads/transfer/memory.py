"""What a transfer takes of a host's memory, and what a host has: found out before the plan, asked by it."""

from __future__ import annotations

from dataclasses import dataclass

from leadline import _core, units
from leadline.workloads.transfer.job import TransferJob

BESIDE_BYTES = 100 * units.MIB  # what a trial takes besides its buffers, at most


@dataclass(frozen=True)
class HostRoom:
    """What a process can still take of a host's memory; `hosts` is how many take part in the study.

    Of several hosts it is that of the one with the least. `words` says what bounds it.
    """

    available_bytes: int
    words: str = "memory that is available"
    hosts: int = 1


def needed_bytes(job: TransferJob) -> int:
    """The most that it takes: buffers of all requests in flight, what the engine's library keeps besides, and
    what a process takes."""
    if job.copies:
        return BESIDE_BYTES
    return _core.transfer_memory(job.engine, job.writers, job.readers, job.buffer, job.in_flight)


def memory_problem(job: TransferJob, available_bytes: int, words: str) -> str | None:
    """Why it does not fit, with the figures; None where it does."""
    needed = needed_bytes(job)
    if needed <= available_bytes:
        return None
    return f"{memory_words(job)}, and there are {units.format_size(available_bytes)} of {words}"


def memory_words(job: TransferJob) -> str:
    """`streams x buffer x in_flight, 16 x 64m x 4, take 4 GiB, and 8.1 GiB in all as …`."""
    parts = f"{job.streams} x {units.exact_size(job.buffer)} x {job.in_flight}"
    buffers, needed = units.format_size(job.bytes_in_flight), units.format_size(needed_bytes(job))
    return (
        f"streams x buffer x in_flight, {parts}, are {buffers} in flight, which take {needed} of memory with"
        f" engine {job.engine}"
    )
