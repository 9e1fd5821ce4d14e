"""The options of a work that runs a command, as a study may write them, and where they contradict."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from leadline.study.kind.options import InputOption, Options, RuntimeOption
from leadline.study.kind.rule import Problem
from leadline.workloads.application.job import INPUT
from leadline.yamlio.fields import Command, Whole

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
