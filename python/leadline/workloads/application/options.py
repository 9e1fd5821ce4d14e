"""The options of a work that runs a command, as a study may write them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from leadline.study.fields import Command, Whole
from leadline.study.options import Options, RuntimeOption

AskedTracer = Literal["auto", "preload", "bpf", "off"]
InputOption = Annotated[
    str | None,
    Field(
        min_length=1,
        description="with command or pipeline: directory or file that it reads; staged into each target",
    ),
]
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
