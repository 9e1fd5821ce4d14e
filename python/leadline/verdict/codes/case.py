"""What the validity rules judge: one cell with everything that was seen of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from leadline.analysis.statistics.level_shift import TrialShift
from leadline.plan.model import PlannedCell
from leadline.store.tables import TrialRow
from leadline.study.target import TargetFacts


@dataclass(frozen=True)
class Case:
    """What the codes of one cell look at. `trials` are all that were stored, `good` the complete ones.

    `emulation` is what showed that the host's processor was emulated; `outran` says that the cell was quicker
    than one that must be quicker than it; `shifts` has the largest step of each trial that has intervals
    enough for one.
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

    @property
    def good(self) -> tuple[TrialRow, ...]:
        """Trials that ran to their end."""
        return tuple(trial for trial in self.trials if trial.state == "complete")


def worst_trial(trials: Sequence[TrialRow], value: Callable[[TrialRow], float | None]) -> tuple[float, str]:
    """The largest of some trials' values, and which trial has it; 0.0 where none has one."""
    found = [(v, trial.trial) for trial in trials if (v := value(trial)) is not None]
    return max(found, default=(0.0, ""))
