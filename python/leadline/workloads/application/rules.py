"""Contradictions in a work that runs a command: foreign options, and places without an input."""

from __future__ import annotations

from collections.abc import Iterator

from leadline.study.rule import Problem
from leadline.workloads.application.job import INPUT
from leadline.workloads.io.job import JOB_OPTIONS, JobOptions

OWN = ("command", "copies", "input", "cache", "trace")
_ALLOWED = (*OWN, "runtime")


def without_command(options: JobOptions) -> Iterator[Problem]:
    """Options that mean something only with a command."""
    for key in OWN:
        if getattr(options, key) is not None:
            yield Problem(key, "means nothing without command", "add command: [program, …], or leave it out")


def application_rules(options: JobOptions) -> Iterator[Problem]:
    """All that can be wrong with a work that runs a command."""
    for key in JOB_OPTIONS:
        if key not in _ALLOWED and getattr(options, key) is not None:
            yield Problem(
                key,
                "is of jobs that leadline does itself, and means nothing with command",
                "leave it out, or make two works of it",
            )
    if options.runtime == 0:
        yield Problem("runtime", "is the longest that a trial may take, and cannot be 0", "write 1h, or more")
    words = options.command or ()
    if words and not words[0].strip():
        yield Problem("command", "begins with an empty word", "begin it with the program's name")
    if any("\0" in word for word in words):
        yield Problem("command", "holds a zero byte, which no program can be given", "take it out")
    if options.input is None and any(INPUT in word for word in words):
        yield Problem("command", f"has {INPUT}, and no input is named", "add input: DIR, or use --input DIR")
