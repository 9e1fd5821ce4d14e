"""A job in fio's vocabulary with nothing left open, which the engine is given, and its options."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from leadline.errors import SpecError
from leadline.study.kind.interface import JobModel
from leadline.study.kind.options import (
    BlockSizeOption,
    DirectOption,
    EngineOption,
    IncompressibleOption,
    NumjobsOption,
    Options,
    RampTimeOption,
    RateOption,
    RuntimeOption,
    SizeOption,
    SizeSplit,
    Split,
    TimeBasedOption,
)
from leadline.study.schemes import EngineName
from leadline.yamlio.fields import Duration, Iops, Size, Truth, TruthOrOther, Whole, guarded

WRONG = {
    "lost": "what was there before an acknowledged write is still there",
    "torn": "a part of one write arrived",
    "misplaced": "data of another place in these files is there",
    "foreign": "data that this run never wrote there is there",
    "zeroed": "zeros are there",
    "flipped": "some bytes changed",
    "stale": "a cache showed an old writing; the new one came later, or is there by another way",
}
REMEDIES = {
    "lost": "look for evicted clients, servers that failed over, caches without power protection",
    "torn": "look for what ended in the middle of a write: clients, servers, caches without power protection",
    "misplaced": "suspect firmware, memory or the mapping of blocks; trust nothing there before it is known",
    "foreign": "look whether something else writes to these files; else as for misplaced blocks",
    "zeroed": "look for truncated or sparse objects, discarded blocks and thin volumes without space",
    "flipped": "scrub the storage, and test the memory of this host and of the servers",
    "stale": "expect it where this way promises no more than close-to-open; else shorten its caches",
}


MAP = "map"
_EXAMPLES = "write map, random, zipf:THETA (above 0, at most 10, for example zipf:1.2) or pareto:H (0 to 1)"
_THETA_MAX = 10.0


def parse_distribution(value: object) -> str:
    """`map`, `random`, `zipf:1.2` or `pareto:0.2`. Raises SpecError."""
    name, colon, text = str(value).partition(":")
    if isinstance(value, str) and name in (MAP, "random") and not colon:
        return name
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if (name == "zipf" and 0 < number <= _THETA_MAX) or (name == "pareto" and 0 < number < 1):
        return f"{name}:{number:g}"
    raise SpecError(f"{value!r} is no distribution", _EXAMPLES)


Distribution = Annotated[
    str,
    BeforeValidator(guarded(parse_distribution)),
    WithJsonSchema({"type": "string", "pattern": r"^(map|random|(zipf|pareto):[0-9]*\.?[0-9]+)$"}),
]


Pattern = Literal["read", "write", "randread", "randwrite", "rw", "randrw"]
Arrival = Literal["constant", "poisson"]
Shared = Literal["none", "segmented", "strided", "whole"]
Generator = Literal["leadline", "fio"]  # the program that makes the load
FIO: Generator = "fio"
ReadBack = Literal["same", "other"]  # by which ways a verified trial is read back

MIXED: tuple[Pattern, ...] = ("rw", "randrw")
READ_ONLY: tuple[Pattern, ...] = ("read", "randread")


class Job(JobModel):
    """What one trial does, fully explicit: what `leadline plan` prints and what the engine gets.

    `size` is bytes per numjob, spread evenly over `nrfiles` files, or its part of a `shared` one, or all of
    what is `shared` whole; `bs` is the smallest size of an operation. `io_size` is what each numjob moves, 0
    for `size`. `rate_bytes_per_s` and `rate_iops` are totals over all numjobs (open loop), None for "as fast
    as it goes". Times are nanoseconds.
    """

    rw: Pattern
    rwmixread: int = Field(ge=0, le=100)
    bs: int = Field(gt=0)
    size: int = Field(gt=0)
    nrfiles: int = Field(gt=0)
    numjobs: int = Field(gt=0)
    iodepth: int = Field(gt=0)
    engine: EngineName
    direct: bool
    overwrite: bool
    fsync: int = Field(ge=0)
    end_fsync: bool
    time_based: bool
    runtime_ns: int = Field(ge=0)
    ramp_time_ns: int = Field(ge=0)
    rate_bytes_per_s: int | None
    rate_iops: float | None
    arrival: Arrival
    verify: bool
    incompressible: bool
    # Younger than the first version; a plan that lacks them means what there was before them.
    bssplit: SizeSplit | None = None
    fdatasync: int = Field(0, ge=0)
    thinktime_ns: int = Field(0, ge=0)
    thinktime_blocks: int = Field(1, gt=0)
    offset: int = Field(0, ge=0)
    offset_increment: int = Field(0, ge=0)
    random_distribution: str = MAP
    buffer_compress_percentage: int = Field(0, ge=0, le=100)
    dedupe_percentage: int = Field(0, ge=0, le=100)
    shared: Shared = "none"
    sqthread_poll: bool = False
    iodepth_batch: int = Field(0, ge=0)
    read_back: ReadBack = "same"
    io_size: int = Field(0, ge=0)
    percentage_random: int = Field(100, ge=0, le=100)
    generator: Generator = "leadline"
    invalidate: bool = False
    one_map: bool = False

    kind: ClassVar[str] = "io"
    engine_format: ClassVar[str] = "leadline.job/1"

    @property
    def reads_only(self) -> bool:
        """True where nothing is changed."""
        return self.rw in READ_ONLY

    @property
    def mean_bs(self) -> float:
        """Bytes of a mean operation."""
        return self.bs if self.bssplit is None else self.bssplit.mean_bytes(self.rwmixread / 100)

    @property
    def largest_bs(self) -> int:
        """Bytes of the largest operation."""
        return self.bs if self.bssplit is None else self.bssplit.sizes[-1]

    @property
    def reads(self) -> bool:
        """True where at least one operation may be a read."""
        return self.rw in READ_ONLY or (self.rw in MIXED and self.rwmixread > 0)

    @property
    def writes(self) -> bool:
        """True where at least one operation may be a write."""
        return self.rw not in READ_ONLY and not (self.rw in MIXED and self.rwmixread == 100)

    @property
    def fresh_files(self) -> bool:
        """True where the trial writes new files, so that nothing needs to be laid out before it."""
        return self.rw == "write" and not self.overwrite

    @property
    def data_set_bytes(self) -> int:
        """All files of all numjobs together."""
        return self.size * self.owners * self.parts

    @property
    def owners(self) -> int:
        """How many numjobs have files of their own: all, or one where they share."""
        return self.numjobs if self.shared == "none" else 1

    @property
    def parts(self) -> int:
        """How many parts of `size` bytes a file has: one for each numjob where it is divided among them."""
        return self.numjobs if self.shared in ("segmented", "strided") else 1

    @property
    def moved_bytes(self) -> int:
        """What all numjobs read or write where no clock ends the job."""
        return (self.io_size or self.size) * self.numjobs


class IoOptions(Options):
    """What is read and written, in which pattern, at what pace."""

    rw: Pattern | None = Field(None, description="what is done: sequential or random, read, write or both")
    rwmixread: Annotated[int, Whole(0, 100)] | None = Field(
        None, description="share of reads in percent; only with rw and randrw; default 50"
    )
    bs: BlockSizeOption = None
    bssplit: Split | None = Field(
        None, description="sizes with their shares in percent, 4k/60:64k/40, or reads,writes"
    )
    size: SizeOption = None
    nrfiles: Annotated[int, Whole(1, 65_536)] | None = Field(None, description="files per numjob; 1")
    numjobs: NumjobsOption = None
    iodepth: Annotated[int, Whole(1, 4_096)] | None = Field(None, description="queue depth of each numjob; 1")
    engine: EngineOption = None
    direct: DirectOption = None
    overwrite: Truth | None = Field(
        None, description="sequential writes go over prefilled files; false: to fresh files"
    )
    fsync: Annotated[int, Whole(0, 2**31 - 1)] | None = Field(
        None, description="fsync after so many writes; 0 is never"
    )
    fdatasync: Annotated[int, Whole(0, 2**31 - 1)] | None = Field(
        None, description="fdatasync after so many writes; 0 is never"
    )
    end_fsync: Truth | None = Field(None, description="fsync when a write job ends")
    time_based: TimeBasedOption = None
    runtime: RuntimeOption = None
    ramp_time: RampTimeOption = None
    rate: RateOption = None
    rate_iops: Iops | None = Field(None, description="operations per second over all numjobs (open loop)")
    arrival: Arrival | None = Field(None, description="how an open loop's operations are spaced; constant")
    thinktime: Duration | None = Field(None, description="pause of a numjob between operations; 0")
    thinktime_blocks: Annotated[int, Whole(1, 2**31 - 1)] | None = Field(
        None, description="operations between two pauses; 1"
    )
    offset: Size | None = Field(None, description="bytes at the start of each file that are not touched; 0")
    offset_increment: Size | None = Field(
        None, description="added to offset once for each numjob before this one; 0"
    )
    random_distribution: Distribution | None = Field(
        None, description="map (no repeats), random (uniform), zipf:THETA or pareto:H; map"
    )
    shared: Shared | None = Field(
        None,
        description="all numjobs in one file: segmented (a region each) or strided (blocks alternate);"
        " whole: each works on all of the same files",
    )
    io_size: Size | None = Field(
        None, description="bytes that each numjob moves, cycling through its files; default size"
    )
    percentage_random: Annotated[int, Whole(0, 100)] | None = Field(
        None, description="share of random operations in percent, the others go on behind the last; 100"
    )
    one_map: Truth | None = Field(
        None,
        description="random operations of several sizes move every byte of a pass once, as fio's do: what"
        " meets a byte that was moved ends there; false",
    )
    invalidate: Truth | None = Field(
        None, description="drop cached pages whenever a numjob begins its bytes anew, as fio does; false"
    )
    generator: Generator | None = Field(
        None, description="the program that makes the load: leadline, or fio, which must be installed"
    )
    verify: TruthOrOther | None = Field(
        None,
        description="hold every block against what is known to have been written, and read back what a trial"
        " wrote; other: through other targets of the same directory too",
    )
    incompressible: IncompressibleOption = None
    buffer_compress_percentage: Annotated[int, Whole(0, 100)] | None = Field(
        None, description="share of each block of 4 KiB that is zeros; 0"
    )
    dedupe_percentage: Annotated[int, Whole(0, 100)] | None = Field(
        None, description="share of blocks that equal one another; 0"
    )
    iodepth_batch: Annotated[int, Whole(1, 2**31 - 1)] | None = Field(
        None,
        description="operations handed over together at most; 1: each by itself; a quarter of iodepth",
    )
    sqthread_poll: Truth | None = Field(
        None, description="a thread of the kernel submits (SQPOLL), with engine io_uring; false"
    )
