"""What study and plan ask of a kind of work: its face `Planned`, its job, and the values that pass between.

A kind's own job is a frozen model in its folder below `workloads`; what never changes is an attribute of its
class. Who wears the face is in `workloads.planner`, a line for each kind.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from pydantic import BaseModel, ConfigDict

from leadline import units
from leadline.errors import SpecError
from leadline.study.kind.options import Options
from leadline.study.target import Target, TargetFacts

BS_MIN_BYTES = 512
BS_MAX_BYTES = units.GIB
BS_DEFAULT_BYTES = 4096  # fio's default


class JobModel(BaseModel):
    """What the job of every kind is: frozen, and plain values as JSON."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    def as_json(self) -> dict[str, Any]:
        """Plain values, one per field, as a worker and the manifest take them."""
        return self.model_dump(mode="json")


class UnpacedJob(JobModel):
    """A job that goes at its own pace from its start, and whose data nobody checks."""

    verify: ClassVar[bool] = False
    incompressible: ClassVar[bool] = True
    ramp_time_ns: ClassVar[int] = 0
    rate_bytes_per_s: ClassVar[int | None] = None
    rate_iops: ClassVar[float | None] = None


@dataclass(frozen=True)
class Problem:
    """`key` is the option that is at fault."""

    key: str
    message: str
    remedy: str


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


class AnyJob(Protocol):
    """One trial's work with nothing left open. Sizes are bytes, times nanoseconds, rates totals."""

    @property
    def kind(self) -> str:
        """The kind of work: its folder below `workloads`."""

    @property
    def engine_format(self) -> str:
        """The format of its JSON, by which a worker knows who does it."""

    @property
    def engine(self) -> str:
        """What does the I/O."""

    @property
    def direct(self) -> bool:
        """True where it goes past the page cache."""

    @property
    def verify(self) -> bool:
        """True where every block that is read is checked."""

    @property
    def incompressible(self) -> bool:
        """True where no two blocks of its data are equal."""

    @property
    def time_based(self) -> bool:
        """True where it goes on until its time is over."""

    @property
    def ramp_time_ns(self) -> int:
        """Time before the measured interval."""

    @property
    def runtime_ns(self) -> int:
        """How long it is measured, or the longest that it may take; 0 where its size ends it."""

    @property
    def rate_bytes_per_s(self) -> int | None:
        """The rate that it keeps to, None for as fast as it goes."""

    @property
    def rate_iops(self) -> float | None:
        """The same in operations per second."""

    @property
    def reads(self) -> bool:
        """True where data is read that was there before."""

    @property
    def writes(self) -> bool:
        """True where files get data."""

    @property
    def reads_only(self) -> bool:
        """True where nothing is changed."""

    @property
    def data_set_bytes(self) -> int:
        """The most that its files take."""

    def as_json(self) -> dict[str, Any]:
        """Plain values, one per field, as a worker and the manifest take them."""


# What the time estimate assumes where a job ends with its size, and for laying files out. Nominal on purpose:
# nothing is measured before the plan is shown.
NOMINAL_BYTES_PER_S = 200 * units.MIB
NOMINAL_REMOTE_BYTES_PER_S = 30 * units.MIB  # for laying files out on other hosts: all copies, synced
NOMINAL_OPERATIONS_PER_S = 5_000

_Lookup = TypeVar("_Lookup")
_Options = TypeVar("_Options", bound=Options)
_Job = TypeVar("_Job", bound=AnyJob)


@dataclass(frozen=True)
class Layout:
    """Files that are written in full before the first cell of a target that needs them, and shared."""

    key: str
    numjobs: int
    nrfiles: int
    file_bytes: int
    incompressible: bool = True

    @property
    def total_bytes(self) -> int:
        """What the files take on the target."""
        return self.numjobs * self.nrfiles * self.file_bytes


def files_layout(
    owners: int, nrfiles: int, file_bytes: int, content: str = "", *, incompressible: bool = True
) -> Layout:
    """The layout of the engine's own files; its key says what they are, `content` what their data is like."""
    key = f"{owners}x{nrfiles}x{units.exact_size(file_bytes)}{content}"
    return Layout(key, owners, nrfiles, file_bytes, incompressible)


@dataclass(frozen=True)
class Surroundings:
    """What a job is resolved against, besides the target: this host and the limits of the study.

    `auto_bytes` is the data set that `size: auto` stands for; `unavailable` gives the reason for each
    engine that does not work on this host; `lookups` find out more about it for kinds that ask, each a value
    of a type that the kind knows.
    """

    memory_bytes: int
    auto_bytes: int
    max_rate_bytes_per_s: int | None
    unavailable: Mapping[str, str]
    lookups: tuple[object, ...] = ()

    def lookup(self, wanted: type[_Lookup]) -> _Lookup | None:
        """The lookup of that type; None where nobody may look."""
        return next((one for one in self.lookups if isinstance(one, wanted)), None)


@dataclass(frozen=True)
class Resolved:
    """A job, the reasons of what was chosen, and whether a cache may serve it."""

    job: AnyJob
    measures_caches: bool
    notes: tuple[str, ...]


class Planned(Generic[_Options, _Job]):
    """A kind of work as it is asked for and planned. Every method is pure; None and () are "nothing".

    `told_by` is the option that chooses the kind, and the key by which a stored job of an older version
    tells it. A kind without `options` is not chosen by a study: it has a verb of its own.
    """

    kind: str
    job: type[Any]
    told_by: str
    options: type[Options] | None = None
    # How a study says it, for who has forgotten to: `operations: [create, stat, unlink]`.
    example: str = ""
    # What is said of options of other kinds beside `told_by`, which is named after it.
    foreign: str = "means nothing with"
    # How it is called where it has no rate that could settle or be searched for; None where it has one.
    no_rate: str | None = None
    # Why it cannot be one of several jobs of a work; None where it can.
    alone: str | None = None
    # The options that set a pace: what a search of rates sets is the last.
    rates: tuple[str, ...] = ()  # its metrics that a sweep can be of
    paces: tuple[str, ...] = ()
    # Options whose levels say what they are without the option's name beside them.
    plain_levels: tuple[str, ...] = ()
    # Options that an option of the command line takes the place of, by that one's name.
    replaced_by: Mapping[str, tuple[str, ...]] = {}
    # The keys of options that are mappings themselves, by section.
    sections: Mapping[str, tuple[str, ...]] = {}
    # Fields of the job that are sizes, for who prints it.
    byte_fields: tuple[str, ...] = ()
    # Fields of the job that no metric depends on: places of this host, and limits that a trial stays below.
    indifferent: frozenset[str] = frozenset()
    # What a trial writes that nobody can size beforehand; None where `data_set_bytes` says it.
    unsized: str | None = None

    def needs_leadline(self, options: _Options) -> str:
        """What of it runs in Python on each host, in words; "" where the engine alone does it."""
        del options
        return ""

    def problems(self, options: _Options, foreign: Iterator[Problem]) -> Iterator[Problem]:
        """Contradictions in the options of a work; `foreign` are those with options of other kinds."""
        del options
        yield from foreign

    def level_words(self, option: str, value: Any) -> Any:
        """A factor's level of an option of its own as a name can hold it; as it is where that will do."""
        del option
        return value

    def resolve(
        self, work: str, options: _Options, target: Target, facts: TargetFacts, around: Surroundings
    ) -> Resolved:
        """The job of a work on a target. Raises SpecError for what this target cannot do."""
        raise NotImplementedError

    def work_bytes(self, options: _Options) -> WorkBytes:
        """What one client moves, by the study alone. Raises SpecError where the study cannot say it."""
        del options
        raise SpecError(
            "what such a workload reads and writes is not in a study",
            "trace a program that does it (leadline trace -o DIR -- COMMAND), and write work: {trace: DIR}",
        )

    def told_engine(self, job: _Job) -> Mapping[str, Any] | None:
        """The fields of the job that the engine is told, where it runs it; None: it has no part in it."""
        return job.as_json()

    def hosts_wanted(self, job: _Job) -> int | None:
        """How many hosts take part in a trial of it, where a study has several; None: all of them."""
        del job
        return None

    def check_search(self, job: _Job, rate: float, source: str, around: Surroundings) -> None:
        """Raise SpecError where a search may not go up to that rate."""

    def check_steady(self, job: _Job, source: str) -> None:
        """Raise SpecError where a trial of it cannot be ended once it is steady."""

    def spread(self, job: _Job, targets: Sequence[str]) -> Sequence[tuple[str, _Job]]:
        """The jobs that one becomes where `targets` can do it on the same files, if any can.

        Each has the ending of its work's name.
        """
        del targets
        return (("", job),)

    def needs(self, job: _Job, target: str) -> tuple[str, ...]:
        """Every target that a trial of it touches."""
        del job
        return (target,)

    def layout(self, job: _Job) -> Layout | None:
        """The files that must be there before the job; None where it makes its own or does no I/O."""
        del job
        return None

    def layout_words(self, layout: Layout) -> str:
        """What its layout writes, for who reads the plan."""
        files = layout.numjobs * layout.nrfiles
        size = units.format_size(layout.file_bytes)
        return f"{files} file{'s' if files > 1 else ''} of {size}, prefilled once"

    def seconds(self, job: _Job) -> float:
        """The expected time of a trial without its layout."""
        if job.time_based:
            return (job.ramp_time_ns + job.runtime_ns) / units.NS_PER_S
        return self.untimed_seconds(job)

    def untimed_seconds(self, job: _Job) -> float:
        """The same for a job that ends with what it has to do."""
        return job.runtime_ns / units.NS_PER_S

    def assumption(self, job: _Job) -> str | None:
        """What the expected time takes for granted, said once in a plan."""
        if job.time_based:
            return None
        return (
            f"jobs that end with their size are taken to run at {units.format_rate(NOMINAL_BYTES_PER_S)} or "
            f"{NOMINAL_OPERATIONS_PER_S:,} operations per second, whichever is less"
        )

    def to_make(self, job: _Job) -> object | None:
        """What has to be made on this host before the job, for who can make things of that type."""
        del job
        return None

    def compared(self, job: _Job) -> Mapping[str, Any]:
        """The fields that two jobs must have alike for a ratio of their metrics to mean anything."""
        return {name: value for name, value in job.as_json().items() if name not in self.indifferent}

    def option_words(self, job: _Job, name: str, value: Any) -> str | None:
        """A field of the job as a study would write it; None where it is like those of other kinds."""
        del job, name, value
        return None
