"""What the options of every kind of work have in common; each kind lists its own in its folder.

An option that several kinds have is described here, once, so that it means the same in each.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from leadline.study.kind.sizes import BlockSize
from leadline.study.schemes import ChosenEngine
from leadline.yamlio.fields import Duration, Rate, Size, SizeOrAuto, Truth, TruthOrAuto, Whole


class Options(BaseModel):
    """The options of one kind of work; None is "not said"."""

    model_config = ConfigDict(frozen=True, extra="forbid")


BlockSizeOption = Annotated[
    BlockSize | None,
    Field(description="bytes of one operation, or of reads,writes; 4k when not said"),
]
DirectOption = Annotated[
    TruthOrAuto | None,
    Field(description="past the page cache (O_DIRECT); auto: where the target can"),
]
NumjobsOption = Annotated[
    Annotated[int, Whole(1, 1_024)] | None, Field(description="threads at the same time; 1")
]
RuntimeOption = Annotated[Duration | None, Field(description="how long is measured; 0 is until size is done")]
TimeBasedOption = Annotated[
    Truth | None,
    Field(
        description="go on until runtime is over, from the start of the files again where needed",
    ),
]
SizeOption = Annotated[
    SizeOrAuto | None,
    Field(description="bytes per numjob or stream, or auto: follows the memory of the host"),
]
EngineOption = Annotated[
    ChosenEngine | None, Field(description="how the system is called; auto chooses by target")
]
RampTimeOption = Annotated[Duration | None, Field(description="time before the measured interval")]
RateOption = Annotated[
    Rate | None, Field(description="bytes per second over all numjobs or streams (open loop)")
]
IncompressibleOption = Annotated[Truth | None, Field(description="no two blocks of 4 KiB equal; true")]
BufferOption = Annotated[
    Size | None,
    Field(description="with pipeline or transfer: bytes of one read or write, of one request; 1m"),
]
ClientsOption = Annotated[
    Annotated[int, Whole(1, 4_096)] | None,
    Field(
        description="with pipeline: how many go through it at once, 1; with transfer: hosts that take part"
    ),
]
InputOption = Annotated[
    str | None,
    Field(
        min_length=1,
        description="with command or pipeline: directory or file that it reads, staged into each target;"
        " with transfer: what is sent",
    ),
]
