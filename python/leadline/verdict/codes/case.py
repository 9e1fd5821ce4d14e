"""What the validity rules judge: one cell with everything that was seen of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from leadline.analysis.statistics.drift import TrialShift
from leadline.plan.model import PlannedCell
from leadline.store.tables import TrialRow
from leadline.study.target import TargetFacts
from leadline.verdict.hosts import ONE_HOST, HostsSeen
from leadline.verdict.interface import JudgedWork
from leadline.verdict.kinds import judged
from leadline.verdict.model import Code


@dataclass(frozen=True)
class Case:
    """What the codes of one cell look at. `trials` are all that were stored, `good` the complete ones.

    `emulation` is what showed that the host's processor was emulated; `outran` says that the cell was quicker
    than one that must be quicker than it, as its cluster without a gateway is; `shifts` has the largest step
    of each trial that has intervals enough for one; `hosts` is empty where there was one host;
    `degraded` says that it was to be measured while its cluster is not clean.
    """

    cell: PlannedCell
    facts: TargetFacts
    trials: tuple[TrialRow, ...]
    blocks_planned: int
    memory_bytes: int | None
    not_run_reason: str | None
    max_rate_bytes_per_s: int | None = None
    emulation: str | None = None
    outran: str | None = None
    shifts: Mapping[str, TrialShift] = field(default_factory=dict)
    hosts: HostsSeen = ONE_HOST
    degraded: bool = False

    @property
    def work(self) -> JudgedWork[Any]:
        """How verdicts look at the cell's kind of work."""
        return judged(self.cell.kind)

    @property
    def good(self) -> tuple[TrialRow, ...]:
        """Trials that ran to their end."""
        return tuple(trial for trial in self.trials if trial.state == "complete")


# One validity code, or several of one subject: yields what fires, each with what was seen.
Rule = Callable[[Case], Iterator[Code]]
