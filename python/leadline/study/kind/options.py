"""What the options of every kind of work have in common; each kind lists its own in its folder.

An option that several kinds have is described here, once, so that it means the same in each.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from leadline.study.kind.sizes import BlockSize
from leadline.written.fields import Duration, Truth, TruthOrAuto, Whole


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
