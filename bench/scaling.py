"""Whether costs grow as is said: CPU time per operation with jobs, operations in flight and files.

An exponent of 0 says that an operation costs the same however many there are. All runs are on one processor,
long less short, and in turns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from cost import CACHED_BYTES, Places
from growth import exponent
from ratios import cpu_per_operation_ns, interleaved, spread
from sides import Side, lay_out, metadata_trial, timed

LENGTHS_S = (0.6, 0.1)
JOBS, DEPTHS, FILES = (1, 4, 16, 64), (1, 8, 64, 256), (1_000, 10_000, 100_000, 1_000_000)


def scaling(places: Places) -> list[str]:
    """The section of results.md."""
    lines = [
        "## How costs grow",
        "",
        "CPU time of an operation, and the exponent by which it grows with the number (a line through the",
        "logarithms of the medians, by least squares); 0 is no growth.",
        "",
        "| with | of | ns of CPU per operation | exponent |",
        "|---|---|---|--:|",
    ]
    rows: tuple[tuple[str, Sequence[int], Callable[[int], Side]], ...] = (
        ("jobs, no storage", JOBS, lambda count: _trial(places, engine="null", numjobs=count)),
        (
            "operations in flight, no storage",
            DEPTHS,
            lambda count: _trial(places, engine="null", iodepth=count),
        ),
        ("jobs, 4 KiB reads of a file on tmpfs each", JOBS, lambda count: _trial(places, numjobs=count)),
        (
            "files made, looked at and removed on tmpfs",
            FILES[: 3 if places.quick else None],
            lambda count: metadata_trial(places.cpu, places.memory, count),
        ),
    )
    for what, counts, side in rows:
        lines.append(_row(places, what, counts, [replace(side(count), name=str(count)) for count in counts]))
    return [*lines, ""]


def _trial(places: Places, **changes: Any) -> Side:
    lay_out(places.memory, size=CACHED_BYTES, **changes)
    return timed(places.cpu, places.memory, LENGTHS_S, size=CACHED_BYTES, **changes)


def _row(places: Places, what: str, counts: Sequence[int], sides: Sequence[Side]) -> str:
    rounds = interleaved(sides, places.rounds(6))
    costs = [spread([cpu_per_operation_ns(one[index]) for one in rounds]) for index in range(len(sides))]
    shown = ", ".join(f"{count:,}: {cost.words(0)}" for count, cost in zip(counts, costs, strict=True))
    grows = exponent(counts, [cost.median for cost in costs])
    return f"| {what} | {len(counts)} sizes | {shown} | {grows:.2f} |"
