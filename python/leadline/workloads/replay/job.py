"""A replay of a trace as a job: what a plan, an executor and a verdict must know of it; nothing left open."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from leadline.study.kind.interface import UnpacedJob

Pace = Literal["recorded", "fast"]


class ReplayJob(UnpacedJob):
    """What one trial does: the calls of `script`, a file in the result's directory.

    `pace` is `recorded` (each call as long after its thread's call before as in the trace, so that a slower
    target stretches the replay) or `fast` (at once). `numjobs` counts threads, `runtime_ns` is what the trace
    took, `layout_bytes` are written before each trial, `cold_bytes` of them are read. `calls_of_trace` and
    `bytes_of_trace` are the trace's, replayed or not. `layout_direct`: its files are written past the caches
    of this host, which would answer the first reads.
    """

    script: str
    pace: Pace
    numjobs: int = Field(gt=0)
    calls: int = Field(gt=0)
    calls_of_trace: int = Field(ge=0)
    read_bytes: int = Field(ge=0)
    write_bytes: int = Field(ge=0)
    bytes_of_trace: int = Field(ge=0)
    files: int = Field(ge=0)
    layout_bytes: int = Field(ge=0)
    cold_bytes: int = Field(ge=0)
    runtime_ns: int = Field(ge=0)
    direct: Literal[False] = False
    layout_direct: bool = False

    # What a plan, an executor and a verdict ask of every job.
    kind: ClassVar[str] = "replay"
    engine_format: ClassVar[str] = "leadline.replay/1"
    engine: ClassVar[str] = "replay"
    time_based: ClassVar[bool] = False
    reads_only: ClassVar[bool] = False

    @property
    def reads(self) -> bool:
        """True where data is read."""
        return self.read_bytes > 0

    @property
    def writes(self) -> bool:
        """True where data is written."""
        return self.write_bytes > 0

    @property
    def moved_bytes(self) -> int:
        """Read, written and laid out."""
        return self.read_bytes + self.write_bytes + self.layout_bytes

    @property
    def data_set_bytes(self) -> int:
        """The most that its files take."""
        return self.layout_bytes + self.write_bytes
