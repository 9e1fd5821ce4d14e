"""What a run is given and what it hands back. Frozen values, and the two callbacks of the caller."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from leadline.plan.model import Plan, PlannedCell, Trial
from leadline.store.tables import LatencyRow, TrialRow
from leadline.study.target import TargetFacts
from leadline.study.work import Search


@dataclass(frozen=True)
class RunOptions:
    """How a plan is executed.

    `grace_s` is how long a trial may last beyond its planned time; `reserve_bytes` is the free
    space to keep on each target; `layout_rate_bytes_per_s` caps laying out files. With `until` (0.03:
    within 3 %) or `budget_s` blocks are added to the plan until intervals are narrow or time is over.
    Without `ceph` nothing of Ceph is observed; without `clusters` its clients on this host are, and its
    daemons are not: of many hosts one asks those.
    `labs` are the directories of labs that the targets are on, whose faults are watched for; `under_fault`
    says that it is meant to be measured under those; `degraded`, that the cluster is not to be clean.
    `host_number` is this host's among those of the study:
    its data and its random offsets are its own.
    """

    drop_caches: bool = False
    ignore_health: bool = False
    grace_s: float = 60.0
    interval_s: float = 1.0
    reserve_bytes: Mapping[str, int] = field(default_factory=dict)
    layout_rate_bytes_per_s: int | None = None
    ceph: bool = True
    clusters: bool = True
    until: float | None = None
    budget_s: float | None = None
    labs: tuple[str, ...] = ()
    under_fault: bool = False
    degraded: bool = False
    host_number: int = 0


@dataclass(frozen=True)
class RunRequest:
    """A plan with the facts of its targets and the identity of its result."""

    id: str
    plan: Plan
    facts: Mapping[str, TargetFacts]
    options: RunOptions


@dataclass(frozen=True)
class Outcome:
    """How a run ended. `stopped` says why it ended early; `not_run` names cells with the reason."""

    trials_run: int
    failed_trials: tuple[str, ...] = ()
    not_run: Mapping[str, str] = field(default_factory=dict)
    stopped: str | None = None
    interrupted: bool = False
    left_behind: tuple[str, ...] = ()


class Display(Protocol):
    """What the caller shows while a run goes on."""

    def begin(self, plan: Plan, remaining: int) -> None:
        """The study begins, or goes on with `remaining` trials."""

    def trial(self, trial: Trial, cell: PlannedCell) -> None:
        """A trial begins."""

    def grown(self, trials: Sequence[Trial]) -> None:
        """The plan has these trials more."""

    def progress(self, message: Mapping[str, Any]) -> None:
        """The engine's progress line: phase, elapsed_ns, bytes, operations, share; or share and words."""

    def finished(self, row: TrialRow) -> None:
        """A trial is stored."""

    def say(self, text: str) -> None:
        """Something worth a line."""


class Pilot(Protocol):
    """Chooses the rate of a search's next probe; running trials knows nothing of what they mean."""

    def __call__(
        self, search: Search, probes: Sequence[tuple[TrialRow, Sequence[LatencyRow]]]
    ) -> float | None:
        """Operations per second, or None for as fast as it goes. `probes` are those of the block so far."""


class Stopping(Protocol):
    """Asked often: has the user, or the system, asked to end?"""

    def __call__(self) -> bool:
        """True once a stop was requested."""


class Growth(Protocol):
    """Asked after each block of a plan that may grow: which cells make the next block?"""

    def __call__(self, plan: Plan, options: RunOptions) -> Sequence[str]:
        """Ids of cells; none ends the run."""


class States(Protocol):
    """Brings settings into the state that a slot is to be measured in. What they are, runs do not know."""

    def enter(self, state: str) -> None:
        """Change what differs, and wait until it is in force. Raises LeadlineError where it does not come."""

    def look(self, state: str) -> Mapping[str, Any]:
        """What is in force now of the settings that states differ in, as it is stored; see `store.tables`."""

    def leave(self) -> tuple[str, ...]:
        """Put everything back; what could not be, in words."""


@dataclass(frozen=True)
class Steering:
    """What a run asks of its caller while it goes on: rates, further blocks, the states of its targets."""

    pilot: Pilot
    growth: Growth = field(default_factory=lambda: no_growth)
    states: States | None = None


def no_growth(plan: Plan, options: RunOptions) -> Sequence[str]:
    """The plan is all there is."""
    del plan, options
    return ()


def no_progress(message: Mapping[str, Any]) -> None:
    """Of several jobs at the same time one is shown."""
    del message
