"""What the hosts of a study and its parent say to each other. Frozen values.

Times are ns. A host's clock is its CLOCK_REALTIME; `offset_ns` is added to the parent's time of day to have
the host's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from leadline.store.tables import LatencyRow, SeriesRow, TrialRow

AttemptState = Literal["finished", "refused", "skipped", "interrupted", "lost"]


@dataclass(frozen=True)
class StudyHost:
    """A machine of the study: `name` stands in tables and files, `address` is its Dask worker's.

    `targets` says where a target is on this host, by its name, where that differs from the study's.
    """

    name: str
    address: str
    targets: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ClockOffset:
    """By how much a host's time of day is ahead of the parent's, and how far off that may be at most.

    `error_ns` is half the shortest round trip of several (Cristian 1989).
    """

    offset_ns: int
    error_ns: int
    measured_unix_ns: int


@dataclass(frozen=True)
class Attempt:
    """One try at a slot of trials. `id` is new with every try: a host executes none twice.

    `rates` are those that a search chose for this host, by trial. `grown` are the cells of each block that
    was added to the study's plan so far: who knows them knows the trials.
    """

    id: str
    trials: Sequence[str]
    blocks: Mapping[str, int] = field(default_factory=dict)
    rates: Mapping[str, float] = field(default_factory=dict)
    grown: Sequence[Sequence[str]] = ()


@dataclass(frozen=True)
class AttemptEnd:
    """How an attempt ended on one host. `reason` says why it was not finished; `target` is the one to blame.

    `files` are what the host keeps of it until it is told to forget: paths in its result, and their bytes.
    `trouble` is why the study must not go on, as what its cluster is in.
    """

    host: str
    attempt: str
    state: AttemptState
    reason: str = ""
    target: str | None = None
    target_gone: bool = False
    files: Mapping[str, int] = field(default_factory=dict)
    trouble: str = ""


@dataclass(frozen=True)
class HostTrial:
    """One trial of one host, as its own result has it; `clock` is what its times are corrected by.

    Hosts of one `machine` (its machine-id; "" where it is not known) share its devices and processors.
    """

    host: str
    row: TrialRow
    latency: Sequence[LatencyRow]
    series: Sequence[SeriesRow]
    clock: ClockOffset
    machine: str = ""


def as_json(value: Any) -> dict[str, Any]:
    """Plain values of one of these classes, for a message."""
    found: dict[str, Any] = dict(vars(value))
    return {name: dict(part) if isinstance(part, Mapping) else part for name, part in found.items()}
