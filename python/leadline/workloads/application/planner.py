"""The planner of an application: its program, its input, its tracer, and what they are taken to cost."""

from __future__ import annotations

import re
import shlex
import zlib
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from leadline import units
from leadline.study.kind.interface import (
    NOMINAL_BYTES_PER_S,
    Layout,
    Planned,
    Problem,
    Resolved,
    Surroundings,
)
from leadline.study.kind.lookups import ApplicationFacts, Look, Tracer
from leadline.study.kind.options import Options
from leadline.study.kind.resolving import fail
from leadline.study.target import Target, TargetFacts
from leadline.workloads.application.job import (
    LIMIT_DEFAULT_NS,
    ApplicationJob,
    ApplicationOptions,
    AskedTracer,
    application_rules,
)

_INTERPRETER = re.compile(r"(python|perl|ruby|node|Rscript|bash|sh|dash|zsh|ksh|lua|php|tclsh|julia)[0-9.]*")
_CODE = re.compile(
    r"-[A-Za-z]*[ceEmrs]"
)  # what follows such an option is no script: python -c, perl -e, php -r


def resolve_application(
    work: str, options: ApplicationOptions, target: Target, facts: TargetFacts, around: Surroundings
) -> Resolved:
    """The job of one command on one target. Raises SpecError where it cannot be started."""
    command = tuple(options.command or ())
    if not command:
        remedy = f"write: leadline run STUDY --target {target.name}={target.url} -- PROGRAM WORDS"
        fail(work, target, "command", "names no program", remedy)
    if not facts.has_storage:
        fail(work, target, "command", "null:// has no files", "leave this target out")
    if not target.is_path:
        remedy = "mount it, or leave this target out"
        fail(work, target, "command", f"a program cannot open files of {target.url}", remedy)
    if around.max_rate_bytes_per_s is not None:
        words = "a program sets its own pace, which limits.max_rate cannot hold"
        fail(work, target, "command", words, "leave limits.max_rate (--max-rate) out")
    look = around.lookup(Look)
    found = look.find(command, options.input) if look else ApplicationFacts(command[0])
    if found.executable is None:
        fail(work, target, "command", found.missing, "give the program's name on PATH, or its absolute path")
    notes: list[str] = []
    check_words(work, "command", command, target, found, notes)
    job = ApplicationJob(
        command=with_program(command, found),
        copies=options.copies or 1,
        input=None if found.input is None else found.input.path,
        input_files=found.input.files if found.input else 0,
        input_bytes=found.input.bytes if found.input else 0,
        cache=options.cache or "cold",
        trace=choose_tracer(work, options.trace, target, found, notes),
        runtime_ns=LIMIT_DEFAULT_NS if options.runtime is None else options.runtime,
    )
    _say(job, facts, notes)
    return Resolved(job, False, tuple(notes))


def with_program(command: Sequence[str], found: ApplicationFacts) -> tuple[str, ...]:
    """A program named by a relative path would not be found from a copy's own directory."""
    first = found.executable if found.executable is not None and "/" in command[0] else command[0]
    return (first, *command[1:])


def check_words(
    work: str, key: str, command: Sequence[str], target: Target, found: ApplicationFacts, notes: list[str]
) -> None:
    """Words that name files here, which are none in a copy's own directory: a script cannot be read then.

    Raises SpecError of a script, as all of its trials would fail alike; `notes` hear of any other word.
    """
    script = _script_of(command)
    for word in found.here:
        if found.input and word.removeprefix("./").split("/", 1)[0] in found.input.names:
            continue  # each copy's directory has a link to it
        if word == script:
            why = f"{word} is a file here, but each copy runs in a directory of its own and would not find it"
            fail(work, target, key, why, f"write the absolute path of {word}")
        notes.append(
            f"{word} is a file here, but each copy runs in a directory of its own: if it is meant, write"
            " its absolute path"
        )


def _script_of(command: Sequence[str]) -> str | None:
    """The script that an interpreter is to read; None where there is none, or code instead."""
    if not _INTERPRETER.fullmatch(command[0].rpartition("/")[2]):
        return None
    for word in command[1:]:
        if not word.startswith("-"):
            return word
        if _CODE.fullmatch(word):
            return None
    return None


def choose_tracer(
    work: str, asked: AskedTracer | None, target: Target, found: ApplicationFacts, notes: list[str]
) -> Tracer:
    """The tracer that was asked for, or the first that can follow all of it; `notes` hear why."""
    wanted = asked or "auto"
    if wanted == "off":
        notes.append("trace off: shares of reading, writing and computing are not known")
        return "off"
    if wanted != "auto":
        reason = found.reason(wanted)
        if reason is not None:
            fail(work, target, "trace", f"{wanted} cannot follow this program: {reason}", "write trace: auto")
        return wanted
    reasons: list[str] = []
    tracers: tuple[Tracer, ...] = ("preload", "bpf")
    for tracer in tracers:
        reason = found.reason(tracer)
        if reason is None:
            notes.append(f"trace {tracer}: auto" + (f", as {'; '.join(reasons)}" if reasons else ""))
            return tracer
        reasons.append(f"{tracer} cannot follow it ({reason})")
    notes.append(f"trace off: {'; '.join(reasons)}")
    return "off"


def _say(job: ApplicationJob, facts: TargetFacts, notes: list[str]) -> None:
    if facts.in_memory:
        notes.append(f"measures memory: {facts.file_system} keeps its files there")
    if job.input is None:
        notes.append("no input is staged: what the command reads by its own paths is not on the target")
    else:
        size = units.format_size(job.input_bytes)
        notes.append(
            f"input {job.input}: {job.input_files} files, {size}, copied to the target once, and checked"
        )
    if job.cache == "warm":
        notes.append("cache warm: each trial begins with a run of one copy that is not measured")
    elif job.input is not None:
        notes.append("cache cold: pages of the input are dropped before each trial; more with --drop-caches")
    limit = units.exact_duration(job.runtime_ns)
    notes.append(f"runtime {limit}: a trial that takes longer is ended and counts as failed")


NOMINAL_PROGRAM_S = 10.0  # what an application is taken to compute
_ProgramOptions = TypeVar("_ProgramOptions", bound=Options)
_ProgramJob = TypeVar("_ProgramJob", bound=ApplicationJob)


class PlannedPrograms(Planned[_ProgramOptions, _ProgramJob]):
    """Programs in copies at once, each to its own end, alone in their trial; their input is staged."""

    alone = "cannot be one of several jobs"

    def needs_leadline(self, options: _ProgramOptions) -> str:
        """See the base."""
        del options
        return f"the {'command' if self.kind == 'application' else self.kind} that it starts"

    def layout(self, job: _ProgramJob) -> Layout | None:
        """The staged input, whose key tells inputs of other places and sizes apart."""
        if job.input is None:
            return None
        words = f"{job.input}:{job.input_files}:{job.input_bytes}"
        return Layout(f"input-{zlib.crc32(words.encode('utf-8', 'replace')):08x}", 1, 1, job.input_bytes)

    def layout_words(self, layout: Layout) -> str:
        """What staging writes."""
        return f"the input, {units.format_size(layout.total_bytes)}, copied once"

    def seconds(self, job: _ProgramJob) -> float:
        """Some computing and one reading of the input by each copy, within its limit."""
        once_s = NOMINAL_PROGRAM_S + job.copies * job.input_bytes / NOMINAL_BYTES_PER_S
        return min(once_s, job.runtime_ns / units.NS_PER_S) * job.runs

    def assumption(self, job: _ProgramJob) -> str | None:
        """What that takes for granted."""
        del job
        return (
            f"a program is taken to compute for {NOMINAL_PROGRAM_S:g} s and to read its input at"
            f" {units.format_rate(NOMINAL_BYTES_PER_S)}; what it writes is not known beforehand"
        )

    def option_words(self, job: _ProgramJob, name: str, value: Any) -> str | None:
        """The command as a shell would read it."""
        del job
        return shlex.join(value) if name == "command" else None


class ApplicationPlanned(PlannedPrograms[ApplicationOptions, ApplicationJob]):
    """Copies of a command."""

    kind = "application"
    job = ApplicationJob
    told_by = "command"
    indifferent = frozenset({"input", "runtime_ns"})
    options = ApplicationOptions
    example = "command: [program, word]"
    foreign = "is of jobs that leadline does itself, and means nothing with"
    no_rate = "a command"
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
