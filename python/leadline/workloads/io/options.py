"""The options of a job that moves data, in fio's vocabulary, as a study may write them."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

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
    TimeBasedOption,
)
from leadline.study.kind.sizes import Split
from leadline.workloads.io.distribution import Distribution
from leadline.workloads.io.job import Arrival, Generator, Pattern, Shared
from leadline.yamlio.fields import Duration, Iops, Size, Truth, TruthOrOther, Whole


class IoOptions(Options):
    """What is read and written, in which pattern, at what pace."""

    rw: Pattern | None = Field(None, description="what is done: sequential or random, read, write or both")
    rwmixread: Annotated[int, Whole(0, 100)] | None = Field(
        None, description="share of reads in percent; only with rw and randrw; 50 when not said"
    )
    bs: BlockSizeOption = None
    bssplit: Split | None = Field(
        None, description="sizes with their shares in percent, 4k/60:64k/40, or reads,writes"
    )
    size: SizeOption = None
    nrfiles: Annotated[int, Whole(1, 65_536)] | None = Field(None, description="files per numjob; 1")
    numjobs: NumjobsOption = None
    iodepth: Annotated[int, Whole(1, 4_096)] | None = Field(
        None, description="operations in flight per numjob; 1"
    )
    engine: EngineOption = None
    direct: DirectOption = None
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
        None, description="bytes that each numjob moves, going round in its files; size when not said"
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
