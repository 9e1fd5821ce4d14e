"""The planner of an application: an unchanged command, run in copies."""

from __future__ import annotations

import shlex
import zlib
from collections.abc import Iterator
from typing import Any

from leadline import units
from leadline.study.kind.interface import NOMINAL_BYTES_PER_S, Layout, Planned, Resolved, Surroundings
from leadline.study.kind.rule import Problem
from leadline.study.target import Target, TargetFacts
from leadline.workloads.application.job import ApplicationJob
from leadline.workloads.application.options import ApplicationOptions, application_rules
from leadline.workloads.application.resolve import resolve_application

NOMINAL_PROGRAM_S = 10.0  # what an application is taken to compute


def staged_input(job: ApplicationJob) -> Layout | None:
    """The staged input, whose key tells inputs of other places and sizes apart."""
    if job.input is None:
        return None
    words = f"{job.input}:{job.input_files}:{job.input_bytes}"
    return Layout(f"input-{zlib.crc32(words.encode('utf-8', 'replace')):08x}", 1, 1, job.input_bytes)


def staged_words(layout: Layout) -> str:
    """What staging writes."""
    return f"the input, {units.format_size(layout.total_bytes)}, copied once"


def program_seconds(job: ApplicationJob) -> float:
    """Some computing and one reading of the input by each copy, within its limit."""
    once_s = NOMINAL_PROGRAM_S + job.copies * job.input_bytes / NOMINAL_BYTES_PER_S
    return min(once_s, job.runtime_ns / units.NS_PER_S) * job.runs


def program_assumption() -> str:
    """What that takes for granted."""
    return (
        f"a program is taken to compute for {NOMINAL_PROGRAM_S:g} s and to read its input at"
        f" {units.format_rate(NOMINAL_BYTES_PER_S)}; what it writes is not known beforehand"
    )


class ApplicationPlanned(Planned[ApplicationOptions, ApplicationJob]):
    """Copies of a command at once, each to its own end, alone in its trial."""

    kind = "application"
    job = ApplicationJob
    told_by = "command"
    indifferent = frozenset({"input", "runtime_ns"})
    options = ApplicationOptions
    example = "command: [program, word]"
    foreign = "is of jobs that leadline does itself, and means nothing with"
    no_rate = "a command"
    alone = "cannot be one of several jobs"
    byte_fields = ("input_bytes",)
    unsized = "what the command writes, in a directory of its own for each copy"

    def problems(self, options: ApplicationOptions, foreign: Iterator[Problem]) -> Iterator[Problem]:
        """See the base."""
        yield from foreign
        yield from application_rules(options)

    def level_words(self, option: str, value: Any) -> Any:
        """A command as a shell would read it."""
        return shlex.join(value) if option == "command" else value

    def resolve(
        self, work: str, options: ApplicationOptions, target: Target, facts: TargetFacts, around: Surroundings
    ) -> Resolved:
        """See the base."""
        return resolve_application(work, options, target, facts, around)

    def layout(self, job: ApplicationJob) -> Layout | None:
        """See the base."""
        return staged_input(job)

    def layout_words(self, layout: Layout) -> str:
        """See the base."""
        return staged_words(layout)

    def seconds(self, job: ApplicationJob) -> float:
        """See the base."""
        return program_seconds(job)

    def assumption(self, job: ApplicationJob) -> str | None:
        """See the base."""
        del job
        return program_assumption()

    def option_words(self, job: ApplicationJob, name: str, value: Any) -> str | None:
        """The command as a shell would read it."""
        del job
        return shlex.join(value) if name == "command" else None
