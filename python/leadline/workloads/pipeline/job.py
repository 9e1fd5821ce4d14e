"""A pipeline as a work: stages, each of commands or built-in steps, over one source, and its options.

What a user may write is `PipelineOptions` with its `StageOptions`; what one trial does is `PipelineJob`. A
pipeline is a kind of application: its clients are the copies, and what is done with copies is done with
clients.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from leadline import units
from leadline.study.kind.lookups import Film
from leadline.study.kind.options import BufferOption, ClientsOption, InputOption, Options, RuntimeOption
from leadline.workloads.application.job import ApplicationJob, CacheOption, TraceOption
from leadline.yamlio.fields import Command, Duration, Resolution, Size, Whole

Step = Literal["download", "ingest", "copy", "link_or_copy", "checksum", "publish"]
Digest = Literal["md5", "sha1", "sha256"]
How = Literal["auto", "link", "copy"]
SOURCE = "source"  # the name of what the pipeline begins with
WORKSPACE, OUTPUT_PLACE, INPUT_PLACE, CLIENT = "{workspace}", "{output}", "{input}", "{client}"
WIDEST = "{widest}"  # the most pixels across that a picture may have
WIDEST_MAX = 16_384  # where nothing bounds it: as wide as encoders go
STAGES_MAX = 64
BUFFER_DEFAULT_BYTES = units.MIB
TIMEOUT_DEFAULT_NS = 30 * units.NS_PER_S
STEPS_OF_ONE_FILE: tuple[Step, ...] = ("download", "ingest", "copy", "link_or_copy")  # they make a file


def _words(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


_Names = Annotated[
    tuple[str, ...],
    BeforeValidator(_words),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}),
]


class _PipelinePart(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ActionOptions(_PipelinePart):
    """One thing that a stage does: a command, or a step with its options."""

    step: Step | None = Field(None, description="a built-in step")
    command: Command | None = Field(None, description="a program and its words; see docs/pipelines.md")
    buffer: Size | None = Field(
        None, description="bytes of one read or write of a step; the workload's buffer"
    )
    digest: Digest | None = Field(None, description="of ingest and checksum; md5")
    how: How | None = Field(None, description="of link_or_copy and publish; auto: link where links work")
    url: str | None = Field(None, min_length=1, description="of download: instead of a server of our own")
    timeout: Duration | None = Field(None, description="of download: longest wait for a byte; 30s")
    seen_from: dict[str, str] | None = Field(
        None, description="of link_or_copy: target: the same directory as a second client sees it"
    )


class StageOptions(ActionOptions):
    """One stage, as it is written in a study."""

    stage: str = Field(pattern=r"^[A-Za-z][A-Za-z0-9_-]{0,39}$", description="its name in reports")
    do: list[ActionOptions] | None = Field(
        None, min_length=2, max_length=16, description="several commands and steps, one after the other"
    )
    input: _Names | None = Field(
        None, min_length=1, description="names of stages, or source; the stage before"
    )
    output: str | None = Field(None, min_length=1, max_length=200, description="the file that it makes")
    variant: str | None = Field(None, min_length=1, description="only where the workload names this variant")
    width: Annotated[int, Field(gt=0)] | list[Annotated[int, Field(gt=0)]] | None = Field(
        None,
        description="pixels across of the picture that it makes, or of several; one that is wider than the"
        " source is left out",
    )

    @property
    def widths(self) -> tuple[int, ...]:
        """Of all pictures that it makes."""
        return tuple(self.width) if isinstance(self.width, list) else (self.width,) if self.width else ()

    @property
    def actions(self) -> tuple[ActionOptions, ...]:
        """What it does, one after the other."""
        if self.do is not None:
            return tuple(self.do)
        # They were read already: reading them again would take nanoseconds for seconds.
        own = {name: getattr(self, name) for name in ActionOptions.model_fields}
        return (ActionOptions.model_construct(**own),)


class Action(_PipelinePart):
    """One thing that a stage does, with nothing left open."""

    step: Step | None
    command: tuple[str, ...]
    buffer: int = Field(gt=0)
    digest: Digest
    how: How
    url: str | None
    timeout_ns: int = Field(gt=0)
    seen_from: str | None


class Stage(_PipelinePart):
    """A stage of a job. `output` is a name in the stage's own directory, None for the directory itself.

    `width` is that of the widest picture that it makes, `widths` are those of all.
    """

    stage: str
    actions: tuple[Action, ...] = Field(min_length=1)
    inputs: tuple[str, ...] = Field(min_length=1)
    output: str | None
    width: int | None
    widths: tuple[int, ...] = ()


@dataclass(frozen=True)
class FilmToMake:
    """A film that is not there yet, and the path where a pipeline looks for it."""

    film: Film
    path: str


class PipelineJob(ApplicationJob):
    """What one trial does. `copies` clients do all stages at once, each in a directory of its own.

    Where `served` the source stays where it is and a server of our own sends it; else it is staged on each
    target as `input`. `source_width` is that of its picture, `source_elements` counts the elements of all its
    pictures; None where it has none or nobody looked. `widest` bounds the pictures that are made of it.
    """

    command: tuple[str, ...] = ()
    pipeline: tuple[Stage, ...] = Field(min_length=1)
    source: str | None
    source_bytes: int = Field(ge=0)
    source_width: int | None
    source_elements: int | None = None
    widest: int | None = None
    film: tuple[int, int, int, int] | None  # the fields of Film, where it is to be made
    served: bool
    buffer: int = Field(gt=0)
    variant: str | None

    kind: ClassVar[str] = "pipeline"
    engine_format: ClassVar[str] = "leadline.pipeline/1"
    engine: ClassVar[str] = "pipeline"

    @property
    def data_set_bytes(self) -> int:
        """What stages that copy the source take, or the staged input. What programs write is not known."""
        if self.input is not None:
            return self.input_bytes
        steps = [action.step for stage in self.pipeline for action in stage.actions]
        whole = sum(step in ("download", "ingest", "copy") for step in steps)
        return self.source_bytes * whole * self.copies


def enlarges(widths: Sequence[int], source_width: int | None, widest: int | None) -> bool:
    """True where a stage makes a picture larger than its source: one of several is bounded by `widest`."""
    if source_width is None or not widths:
        return False
    most = max(widths) if len(widths) == 1 else min(max(widths), widest or WIDEST_MAX)
    return most > source_width


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
