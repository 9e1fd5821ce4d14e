"""An application as a work, an unchanged command in N copies: its options, and the job made of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from leadline import units
from leadline.study.kind.interface import Problem, UnpacedJob
from leadline.study.kind.lookups import Tracer
from leadline.study.kind.options import InputOption, Options, RuntimeOption
from leadline.yamlio.fields import Command, Whole

Cache = Literal["cold", "warm"]
LIMIT_DEFAULT_NS = 3600 * units.NS_PER_S
# What stands in a command for a place that differs from copy to copy.
INPUT, OUTPUT, COPY = "{input}", "{output}", "{copy}"


class ApplicationJob(UnpacedJob):
    """What one trial does. `runtime_ns` is the longest that it may take; sizes are bytes.

    `command` may hold the places INPUT, OUTPUT and COPY. `input_bytes` are staged once on each target.
    """

    command: tuple[str, ...] = Field(min_length=1)
    copies: int = Field(gt=0)
    input: str | None
    input_files: int = Field(ge=0)
    input_bytes: int = Field(ge=0)
    cache: Cache
    trace: Tracer
    runtime_ns: int = Field(gt=0)

    # What a plan, an executor and a verdict ask of every job.
    kind: ClassVar[str] = "application"
    engine_format: ClassVar[str] = "leadline.application/1"
    engine: ClassVar[str] = "application"
    direct: ClassVar[bool] = False
    time_based: ClassVar[bool] = False
    # The rules on reads and writes are of jobs whose every byte is known; an application has its own.
    reads: ClassVar[bool] = False
    writes: ClassVar[bool] = False
    reads_only: ClassVar[bool] = False

    @property
    def data_set_bytes(self) -> int:
        """The input, which all copies share."""
        return self.input_bytes

    @property
    def runs(self) -> int:
        """Times that the command runs after one another in a trial: the one that warms caches counts."""
        return 2 if self.cache == "warm" else 1


AskedTracer = Literal["auto", "preload", "bpf", "off"]


CacheOption = Annotated[
    Literal["cold", "warm"] | None,
    Field(description="with command or pipeline: its input dropped from caches, or not; cold"),
]


TraceOption = Annotated[
    AskedTracer | None,
    Field(description="with command or pipeline: how its I/O is followed; auto chooses by program"),
]


class ApplicationOptions(Options):
    """Which command, how many of it, and what it reads."""

    command: Command | None = Field(
        None, description="instead of rw: a program and its words, run unchanged; {input}, {output}, {copy}"
    )
    copies: Annotated[int, Whole(1, 128)] | None = Field(
        None, description="with command: how many of it run at once; 1"
    )
    input: InputOption = None
    cache: CacheOption = None
    trace: TraceOption = None
    runtime: RuntimeOption = None


def application_rules(options: ApplicationOptions) -> Iterator[Problem]:
    """All that can be wrong with a work that runs a command."""
    if options.runtime == 0:
        yield Problem("runtime", "is the longest that a trial may take, and cannot be 0", "write 1h, or more")
    words = options.command or ()
    if words and not words[0].strip():
        yield Problem("command", "begins with an empty word", "begin it with the program's name")
    if any("\0" in word for word in words):
        yield Problem("command", "holds a zero byte, which no program can be given", "take it out")
    if options.input is None and any(INPUT in word for word in words):
        yield Problem("command", f"has {INPUT}, and no input is named", "add input: DIR, or use --input DIR")
