"""What another program was told to do, as far as it says so: what stands for a job in a result of it."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from leadline.study.kind.interface import JobModel


class ImportedJob(JobModel):
    """One job of another program. None is "it does not say"; `options` are its own words.

    `engine` is what that program calls it. `paced`: it kept to a rate, so that its latencies count from when
    an operation was sent and not from when it was due.
    """

    program: str
    rw: str
    bs: int | None = None
    size: int | None = None
    iodepth: int = Field(1, gt=0)
    numjobs: int = Field(gt=0)
    engine: str
    direct: bool
    reads: bool
    writes: bool
    paced: bool = False
    ramp_time_ns: int = Field(0, ge=0)
    runtime_ns: int = Field(0, ge=0)
    options: dict[str, str] = Field(default_factory=dict)

    # What a plan and a verdict ask of every job.
    kind: ClassVar[str] = "imported"
    engine_format: ClassVar[str] = "leadline.imported/1"
    time_based: ClassVar[bool] = False
    verify: ClassVar[bool] = False
    incompressible: ClassVar[Literal[True]] = True  # nobody said otherwise
    rate_bytes_per_s: ClassVar[int | None] = None
    rate_iops: ClassVar[float | None] = None

    @property
    def reads_only(self) -> bool:
        """True where nothing was changed."""
        return not self.writes

    @property
    def data_set_bytes(self) -> int:
        """The most that its files take, as far as it says so."""
        return (self.size or 0) * self.numjobs
