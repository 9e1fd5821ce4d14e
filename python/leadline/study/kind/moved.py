"""What one client of a work moves, as far as the study says it: for who asks what many of them need."""

from __future__ import annotations

from dataclasses import dataclass

from leadline import units


@dataclass(frozen=True)
class WorkBytes:
    """Of one client, on one host.

    `read_share` is a share of bytes. `moved_bytes` is all that it moves until it ends by itself, None where a
    clock ends it or the host decides; `pace_bytes_s` None where it runs as fast as it can. `requests` are its
    operations in words, `at_once` how many of them it has in flight.
    """

    read_share: float
    moved_bytes: float | None
    pace_bytes_s: float | None
    requests: str
    at_once: float


def size_words(sizes: tuple[int, ...]) -> str:
    """`4 KiB`, or `4 KiB to 64 KiB`; ascending."""
    ends = dict.fromkeys((sizes[0], sizes[-1]))
    return " to ".join(units.format_size(size) for size in ends)
