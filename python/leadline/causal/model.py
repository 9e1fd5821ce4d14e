"""What a causal profile is made of: which calls were delayed by how much in which run, and how long each
run was."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

# The tracer's own words (crates/record/src/trace/classes.rs); a read is small up to 10 KiB, as in Darshan's
# bins.
CLASSES = ("metadata", "small-read", "large-read", "write", "sync")
PLAIN_RUNS = 2  # a block: every slope rests on them
DELAY_NS_MAX = 1_000_000_000

Ended = Literal["whole", "time", "interrupted"]


@dataclass(frozen=True)
class CallSums:
    """Of one class in one run, on the files that are followed: calls, seconds that they took by themselves,
    and seconds that they were made to wait, over all threads and processes."""

    calls: int
    own_s: float
    waited_s: float


@dataclass(frozen=True)
class Condition:
    """Which class is delayed (None: none), and by how much a call."""

    delayed: str | None = None
    delay_ns: int = 0


@dataclass(frozen=True)
class DelayedRun:
    """One run of the program, in its block; classes without calls are not in `sums`."""

    block: int
    condition: Condition
    run_s: float
    sums: Mapping[str, CallSums]


@dataclass(frozen=True)
class CausalProfile:
    """All runs that count, and what they were made with. `first` came before them and is in no figure.

    `below` are the directories whose files are followed; `classes` those that were asked for and have calls.
    """

    program: tuple[str, ...]
    below: tuple[str, ...]
    seed: int
    delays_ns: tuple[int, ...]
    asked: tuple[str, ...]
    classes: tuple[str, ...]
    first: DelayedRun
    runs: tuple[DelayedRun, ...]
    blocks_asked: int
    ended: Ended = "whole"
    cautions: tuple[str, ...] = ()
    details: Mapping[str, str] = field(default_factory=dict)

    @property
    def per_block(self) -> int:
        """Runs that a block has."""
        return PLAIN_RUNS + len(self.classes) * len(self.delays_ns)

    def blocks(self) -> tuple[tuple[DelayedRun, ...], ...]:
        """The whole ones, in order."""
        found: dict[int, list[DelayedRun]] = {}
        for run in self.runs:
            found.setdefault(run.block, []).append(run)
        return tuple(tuple(runs) for _, runs in sorted(found.items()) if len(runs) == self.per_block)

    def plain_sums(self, name: str) -> tuple[CallSums, ...]:
        """A class without delays, block by block: means of its plain runs; nothing waited there."""
        return tuple(
            _mean([_sums(run, name) for run in block if not run.condition.delayed]) for block in self.blocks()
        )

    def calls(self, name: str) -> float:
        """How many calls of a class a run makes, without delays."""
        known = self.plain_sums(name) or (_sums(self.first, name),)
        return math.fsum(one.calls for one in known) / len(known)

    def latency_s(self, name: str) -> float | None:
        """What a call of a class takes here; None without calls."""
        known = self.plain_sums(name) or (_sums(self.first, name),)
        calls = math.fsum(one.calls for one in known)
        return math.fsum(one.own_s for one in known) / calls if calls else None


def _sums(run: DelayedRun, name: str) -> CallSums:
    return run.sums.get(name, CallSums(0, 0.0, 0.0))


def _mean(found: Sequence[CallSums]) -> CallSums:
    count = max(len(found), 1)
    return CallSums(
        round(sum(one.calls for one in found) / count),
        math.fsum(one.own_s for one in found) / count,
        math.fsum(one.waited_s for one in found) / count,
    )
