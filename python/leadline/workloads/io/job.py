"""A job in fio's vocabulary: as the user wrote it (`JobOptions`) and with nothing left open (`Job`).

`plan` makes a Job of JobOptions and a target's facts; the engine is given a Job and nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

from leadline.study import schemes
from leadline.study.fields import (
    AUTO,
    Command,
    Duration,
    Iops,
    Rate,
    Resolution,
    Size,
    SizeOrAuto,
    Truth,
    TruthOrAuto,
    Whole,
)
from leadline.workloads.io.distribution import MAP, Distribution
from leadline.workloads.io.sizes import BlockSize, SizeSplit, Split
from leadline.workloads.pipeline.job import STAGES_MAX, StageOptions

Pattern = Literal["read", "write", "randread", "randwrite", "rw", "randrw"]
Arrival = Literal["constant", "poisson"]
Shared = Literal["none", "segmented", "strided"]
if TYPE_CHECKING:
    Engine = str
    ChosenEngine = str
else:  # the words are the table's; whatever is none of them is refused
    Engine = Literal[schemes.engine_names()]
    ChosenEngine = Literal[(AUTO, *schemes.chosen_names())]

MetadataOperation = Literal[
    "create", "open", "stat", "readdir", "rename", "unlink", "mkdir", "rmdir", "first_byte"
]

Question = Literal[
    "name",
    "size_written",
    "size_closed",
    "bytes_written",
    "bytes_closed",
    "bytes_held",
    "rename",
    "unlink",
    "link",
    "lock_fcntl",
    "lock_flock",
    "shared_file",
]

MIXED: tuple[Pattern, ...] = ("rw", "randrw")
READ_ONLY: tuple[Pattern, ...] = ("read", "randread")


class Job(BaseModel):
    """What one trial does, fully explicit: what `leadline plan` prints and what the engine gets.

    `size` is bytes per numjob, spread evenly over `nrfiles` files, or its part of a `shared` one; `bs` is the
    smallest size of an operation. `rate_bytes_per_s` and `rate_iops`
    are totals over all numjobs (open loop), None for "as fast as it goes". Times are nanoseconds.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    rw: Pattern
    rwmixread: int = Field(ge=0, le=100)
    bs: int = Field(gt=0)
    size: int = Field(gt=0)
    nrfiles: int = Field(gt=0)
    numjobs: int = Field(gt=0)
    iodepth: int = Field(gt=0)
    engine: Engine
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
        return self.size * self.numjobs

    def as_json(self) -> dict[str, Any]:
        """Plain values, one per field, as the engine and the manifest take them."""
        return self.model_dump(mode="json")


class JobOptions(BaseModel):
    """The options of a job that were written down; None is "not said"."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    rw: Pattern | None = Field(None, description="what is done: sequential or random, read, write or both")
    rwmixread: Annotated[int, Whole(0, 100)] | None = Field(
        None, description="share of reads in percent; only with rw and randrw; 50 when not said"
    )
    bs: BlockSize | None = Field(
        None, description="bytes of one operation, or of reads,writes; 4k when not said"
    )
    bssplit: Split | None = Field(
        None, description="sizes with their shares in percent, 4k/60:64k/40, or reads,writes"
    )
    size: SizeOrAuto | None = Field(
        None, description="bytes per numjob, or auto: follows the memory of the host"
    )
    nrfiles: Annotated[int, Whole(1, 65_536)] | None = Field(None, description="files per numjob; 1")
    numjobs: Annotated[int, Whole(1, 1_024)] | None = Field(None, description="threads at the same time; 1")
    iodepth: Annotated[int, Whole(1, 4_096)] | None = Field(
        None, description="operations in flight per numjob; 1"
    )
    engine: ChosenEngine | None = Field(None, description="how the system is called; auto chooses by target")
    direct: TruthOrAuto | None = Field(
        None, description="past the page cache (O_DIRECT); auto: where the target can"
    )
    overwrite: Truth | None = Field(
        None, description="sequential writes go over files laid out beforehand; false: to fresh files"
    )
    fsync: Annotated[int, Whole(0, 2**31 - 1)] | None = Field(
        None, description="fsync after so many writes; 0 is never"
    )
    fdatasync: Annotated[int, Whole(0, 2**31 - 1)] | None = Field(
        None, description="fdatasync after so many writes; 0 is never"
    )
    end_fsync: Truth | None = Field(None, description="fsync when a write job ends")
    time_based: Truth | None = Field(
        None, description="go on until runtime is over, from the start of the files again where needed"
    )
    runtime: Duration | None = Field(None, description="how long is measured; 0 is until size is done")
    ramp_time: Duration | None = Field(None, description="time before the measured interval")
    rate: Rate | None = Field(None, description="bytes per second over all numjobs (open loop)")
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
        None, description="all numjobs in one file: segmented (a region each) or strided (blocks alternate)"
    )
    verify: Truth | None = Field(None, description="check every block that is read")
    incompressible: Truth | None = Field(None, description="no two blocks of 4 KiB equal; true")
    buffer_compress_percentage: Annotated[int, Whole(0, 100)] | None = Field(
        None, description="share of each block of 4 KiB that is zeros; 0"
    )
    dedupe_percentage: Annotated[int, Whole(0, 100)] | None = Field(
        None, description="share of blocks that equal one another; 0"
    )
    operations: list[MetadataOperation] | None = Field(
        None, description="instead of rw: what is done to files and directories themselves, in phases"
    )
    files: Annotated[int, Whole(1, 10**9)] | None = Field(
        None, description="with operations: files (and directories) per numjob; 1000"
    )
    branch: Annotated[int, Whole(1, 10_000)] | None = Field(
        None, description="with operations: directories in each directory of the tree; 1"
    )
    depth: Annotated[int, Whole(0, 100)] | None = Field(
        None, description="with operations: levels of the tree below its top; 0"
    )
    private: Truth | None = Field(
        None, description="with operations: a tree for each numjob; false: one for all; true"
    )
    file_size: Size | None = Field(None, description="with operations: bytes of each file; 0")
    sqthread_poll: Truth | None = Field(
        None, description="a thread of the kernel submits (SQPOLL), with engine io_uring; false"
    )
    command: Command | None = Field(
        None, description="instead of rw: a program and its words, run unchanged; {input}, {output}, {copy}"
    )
    copies: Annotated[int, Whole(1, 128)] | None = Field(
        None, description="with command: how many of it run at once; 1"
    )
    input: str | None = Field(
        None,
        min_length=1,
        description="with command or pipeline: directory or file that it reads; staged into each target",
    )
    cache: Literal["cold", "warm"] | None = Field(
        None, description="with command or pipeline: its input dropped from caches, or not; cold"
    )
    trace: Literal["auto", "preload", "bpf", "off"] | None = Field(
        None, description="with command or pipeline: how its I/O is followed; auto chooses by program"
    )

    pipeline: list[StageOptions] | None = Field(
        None, min_length=1, max_length=STAGES_MAX, description="instead of rw: stages over one source"
    )
    clients: Annotated[int, Whole(1, 128)] | None = Field(
        None, description="with pipeline: how many go through it at once; 1"
    )
    buffer: Size | None = Field(
        None, description="with pipeline: bytes of one read or write of its built-in steps; 1m"
    )
    variant: str | None = Field(
        None, min_length=1, description="with pipeline: which of its stages with a variant are done"
    )
    expects: Literal["video"] | None = Field(
        None, description="with pipeline: what its source must be; anything"
    )
    needs: dict[str, str] | None = Field(
        None, description="with pipeline: program: the oldest version that will do"
    )
    resolution: Resolution | None = Field(
        None, description="with pipeline and no input: a film of this picture is made, 3840x2160"
    )
    duration: Duration | None = Field(None, description="of the film that is made; 10s")
    frame_rate: Annotated[int, Whole(1, 240)] | None = Field(
        None, description="of the film that is made, pictures a second; 25"
    )

    questions: list[Question] | None = Field(
        None, description="instead of rw: what a reader on another target is asked of what this one writes"
    )
    repetitions: Annotated[int, Whole(1, 1_000)] | None = Field(
        None, description="with questions: times that each is asked in a trial; 5"
    )
    give_up: Duration | None = Field(
        None, description="with questions: how long a reader looks for what it has not seen; 30s"
    )

    def over(self, other: JobOptions) -> JobOptions:
        """These options; what they do not say is taken from `other`."""
        said = {
            name: getattr(self, name) for name in self.model_fields_set if getattr(self, name) is not None
        }
        return other.model_copy(update=said)

    def said(self) -> dict[str, Any]:
        """The options that were written down, by name."""
        return {name: value for name in JOB_OPTIONS if (value := getattr(self, name)) is not None}


JOB_OPTIONS: tuple[str, ...] = tuple(JobOptions.model_fields)
