"""A job in fio's vocabulary with nothing left open: the engine is given this and nothing else.

`resolve` makes it of what the user wrote (`options`) and a target's facts.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

from leadline.study.kind.sizes import SizeSplit
from leadline.study.schemes import EngineName
from leadline.workloads.io.distribution import MAP

Pattern = Literal["read", "write", "randread", "randwrite", "rw", "randrw"]
Arrival = Literal["constant", "poisson"]
Shared = Literal["none", "segmented", "strided", "whole"]
Generator = Literal["leadline", "fio"]  # the program that makes the load
FIO: Generator = "fio"
ReadBack = Literal["same", "other"]  # by which ways a verified trial is read back

MIXED: tuple[Pattern, ...] = ("rw", "randrw")
READ_ONLY: tuple[Pattern, ...] = ("read", "randread")


class Job(BaseModel):
    """What one trial does, fully explicit: what `leadline plan` prints and what the engine gets.

    `size` is bytes per numjob, spread evenly over `nrfiles` files, or its part of a `shared` one, or all of
    what is `shared` whole; `bs` is the smallest size of an operation. `io_size` is what each numjob moves, 0
    for `size`. `rate_bytes_per_s` and `rate_iops` are totals over all numjobs (open loop), None for "as fast
    as it goes". Times are nanoseconds.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

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

    def as_json(self) -> dict[str, Any]:
        """Plain values, one per field, as the engine and the manifest take them."""
        return self.model_dump(mode="json")
