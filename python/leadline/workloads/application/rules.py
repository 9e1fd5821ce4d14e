"""Contradictions in a work that runs a command: foreign options, and places without an input."""

from __future__ import annotations

from collections.abc import Iterator

from leadline.study.rule import Problem
from leadline.workloads.application.job import INPUT
from leadline.workloads.application.options import ApplicationOptions


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
