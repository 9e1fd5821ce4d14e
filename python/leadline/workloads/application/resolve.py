"""From the options of a command to a job with nothing left open: its program, its input, its tracer."""

from __future__ import annotations

from leadline import units
from leadline.study.kind.face import Resolved, Surroundings
from leadline.study.kind.resolving import fail
from leadline.study.target import Target, TargetFacts
from leadline.workloads.application.job import (
    INPUT,
    LIMIT_DEFAULT_NS,
    OUTPUT,
    ApplicationFacts,
    ApplicationJob,
    Look,
    Tracer,
)
from leadline.workloads.application.options import ApplicationOptions, AskedTracer


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
    job = ApplicationJob(
        command=(_program(command[0], found.executable), *command[1:]),
        copies=options.copies or 1,
        input=None if found.input is None else found.input.path,
        input_files=found.input.files if found.input else 0,
        input_bytes=found.input.bytes if found.input else 0,
        cache=options.cache or "cold",
        trace=choose_tracer(work, options.trace, target, found, notes),
        runtime_ns=LIMIT_DEFAULT_NS if options.runtime is None else options.runtime,
    )
    _say(job, found, facts, notes)
    return Resolved(job, False, tuple(notes))


def _program(word: str, executable: str) -> str:
    """A program named by a relative path would not be found from a copy's own directory."""
    return executable if "/" in word else word


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


def _say(job: ApplicationJob, found: ApplicationFacts, facts: TargetFacts, notes: list[str]) -> None:
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
    placed = any(place in word for word in job.command for place in (INPUT, OUTPUT))
    for word in found.here:
        if not placed and not (found.input and word.split("/", 1)[0] in found.input.names):
            notes.append(
                f"{word} is a file here, but each copy runs in a directory of its own: if it is meant, write"
                " its absolute path"
            )
