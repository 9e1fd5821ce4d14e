"""What a trace allows one to say, as frozen values: the part of `Findings` that reports of traces read.

None is "not known": the source did not record it. Times count from the trial's start.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from leadline.tracing.figures import Share, Speeds, Unseen
from leadline.tracing.files import FileCost, FileTally
from leadline.tracing.mapped import Mapped
from leadline.tracing.slowest import SlowestProcess
from leadline.tracing.times import CallTotal, OverTime


@dataclass(frozen=True)
class TraceFinding:
    """A rule that held: in how many rows of its view, what it costs at most, and what to change.

    `cost_s` is the sum over the rows in seconds, of all processes or, where `time` is `run`, of the run;
    `saves_s` is the most that the run would be shorter by, None where its length is not known.
    `subjects` are the paths or command lines that the examples name.
    """

    rule: str
    title: str
    count: int
    cost_s: float | None
    how: str
    change: str
    examples: tuple[str, ...]
    subjects: tuple[str, ...] = ()
    saves_s: float | None = None
    time: str = "process"


@dataclass(frozen=True)
class RuleUnasked:
    """A rule that no row could answer, as the source did not record these columns: it is not ruled out."""

    rule: str
    title: str
    lacks: tuple[str, ...]


@dataclass(frozen=True)
class TraceProcess:
    """One process image. `seconds` by kind sum over its threads; `lost` counts records by kind.

    `life` is the number of the first image of the same process, `tracer_s` what recording its calls took.
    """

    copy: int
    process: int
    life: int
    parent: int | None
    pid: int
    executable: str
    command: str
    started_s: float
    ended_s: float | None
    end: str
    status: int | None
    threads: int | None
    bytes_read: int
    bytes_written: int
    calls: Mapping[str, int]
    seconds: Mapping[str, float | None]
    lost: Mapping[str, int]
    notes: tuple[str, ...]
    cpu_s: float | None
    tracer_s: float | None = None


@dataclass(frozen=True)
class TraceCopy:
    """One of the simultaneous runs of the command."""

    copy: int
    run_s: float | None
    ended: str
    share: Share
    bytes_read: int
    bytes_written: int
    cpu_s: float | None = None
    memory_bytes_max: int | None = None
    faults_major: int | None = None


@dataclass(frozen=True)
class TraceView:
    """One trial's trace. `files` are those that took longest, the user's first; `counted` has their number.

    `processes` are images, of which a process has one more for each exec: `processes_count` counts it once.
    `sizes` counts accesses by Darshan's bins, of `read` and of `write`. `run_most_s` is the longest that the
    run can have been where its length is not known; `call_cost_s` what strace itself took of a call, at most.
    `at_once`: there was a moment at which all copies ran. `outlived` processes ran on after the command, to
    the end of what `speeds` has as the run time.
    """

    trial: str
    mode: str
    source: str
    warnings: tuple[str, ...]
    lost: Mapping[str, int]
    notes: Mapping[str, int]
    copies: tuple[TraceCopy, ...]
    whole: Share
    speeds: Speeds
    calls: Mapping[str, int]
    processes: tuple[TraceProcess, ...]
    processes_count: int
    counted: FileTally
    files: tuple[FileCost, ...]
    sizes: Mapping[str, Mapping[str, int]]
    findings: tuple[TraceFinding, ...]
    over_time: OverTime | None
    timed_calls: tuple[CallTotal, ...] = ()
    segments: bool = False
    mapped: Mapped = field(default_factory=Mapped)
    run_most_s: float | None = None
    call_cost_s: float | None = None
    time_doubts: tuple[str, ...] = ()
    unseen: tuple[Unseen, ...] = ()
    unasked: tuple[RuleUnasked, ...] = ()
    outlived: int = 0
    at_once: bool = True
    slowest: SlowestProcess | None = None
