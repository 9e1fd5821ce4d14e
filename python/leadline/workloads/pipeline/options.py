"""The options of a work that is a pipeline, as a study may write them; a stage's are in `job`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from leadline.study.kind.options import BufferOption, ClientsOption, InputOption, Options, RuntimeOption
from leadline.workloads.application.options import CacheOption, TraceOption
from leadline.workloads.pipeline.job import STAGES_MAX, StageOptions
from leadline.yamlio.fields import Duration, Resolution, Whole


class PipelineOptions(Options):
    """Which stages over which source, and how many clients go through them."""

    pipeline: list[StageOptions] | None = Field(
        None, min_length=1, max_length=STAGES_MAX, description="instead of rw: stages over one source"
    )
    clients: ClientsOption = None
    buffer: BufferOption = None
    variant: str | None = Field(
        None, min_length=1, description="with pipeline: which of its stages with a variant are done"
    )
    expects: Literal["video"] | None = Field(
        None, description="with pipeline: what its source must be; anything"
    )
    needs: dict[str, str] | None = Field(
        None, description="with pipeline: program: the oldest version that will do"
    )
    enlarge: bool | None = Field(
        None, description="with pipeline: also make pictures that are wider than the source's; no"
    )
    resolution: Resolution | None = Field(
        None, description="with pipeline and no input: a film of this picture is made, 3840x2160"
    )
    duration: Duration | None = Field(None, description="of the film that is made; 10s")
    frame_rate: Annotated[int, Whole(1, 240)] | None = Field(
        None, description="of the film that is made, pictures a second; 25"
    )
    input: InputOption = None
    cache: CacheOption = None
    trace: TraceOption = None
    runtime: RuntimeOption = None
