"""Ratios of interleaved runs: the median, and an interval for it that assumes no distribution."""

from __future__ import annotations

import math
import os
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from sides import Sample, Side


@dataclass(frozen=True)
class Spread:
    """A median with the interval that holds the true one with 95 %, or all values where there are too few."""

    median: float
    low: float
    high: float

    def words(self, digits: int = 3) -> str:
        return f"{self.median:.{digits}f} ({self.low:.{digits}f} to {self.high:.{digits}f})"


def spread(values: Sequence[float]) -> Spread:
    """The median's interval by order statistics (Conover 1999, 3.2): ranks from the binomial distribution."""
    ordered = sorted(values)
    count = len(ordered)
    below = 0
    while sum(math.comb(count, k) for k in range(below + 1)) / 2**count <= 0.025:
        below += 1
    rank = max(below - 1, 0)
    return Spread(statistics.median(ordered), ordered[rank], ordered[count - 1 - rank])


def interleaved(sides: Sequence[Side], rounds: int, clean: Path | None = None) -> list[tuple[Sample, ...]]:
    """A B C, B C A, C A B, …: each round all sides, each time another one first.

    Before each the file `clean` is put on storage and dropped from the page cache: no side meets what the one
    before it left.
    """
    found = []
    for index in range(rounds):
        order = [(index + step) % len(sides) for step in range(len(sides))]
        samples = {}
        for which in order:
            if clean is not None:
                forget(clean)
            samples[which] = sides[which].run()
        found.append(tuple(samples[which] for which in range(len(sides))))
    return found


def forget(path: Path) -> None:
    """Syncs a file and drops its pages from the cache."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(descriptor)


def ratio(rounds: list[tuple[Sample, ...]], of: int, to: int, value: Callable[[Sample], float]) -> Spread:
    """Of the values of two sides, round by round."""
    return spread([value(samples[of]) / value(samples[to]) for samples in rounds])


def cpu_per_operation_ns(sample: Sample) -> float:
    return sample.cpu_ns / sample.operations


def cpu_per_gib_ms(sample: Sample) -> float:
    return sample.cpu_ns / 1e6 / (sample.bytes / 2**30)


def bandwidth(sample: Sample) -> float:
    return sample.bytes / sample.elapsed_ns
