"""The planner of a pipeline: its source, stages, programs and tracer, what contradicts, and what it costs.

As it is planned, a pipeline is a kind of application.
"""

from __future__ import annotations

import contextlib
import difflib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple
from typing import Any

from leadline import units
from leadline.errors import SpecError
from leadline.interpreter import executable
from leadline.study.kind.interface import (
    NOMINAL_BYTES_PER_S,
    Problem,
    Resolved,
    Surroundings,
    WorkBytes,
)
from leadline.study.kind.lookups import ApplicationFacts, Film, Look, Scout, SourceFacts
from leadline.study.kind.resolving import fail
from leadline.study.target import Target, TargetFacts
from leadline.units import NS_PER_S
from leadline.workloads.application.job import INPUT, LIMIT_DEFAULT_NS
from leadline.workloads.application.planner import PlannedPrograms, check_words, choose_tracer, with_program
from leadline.workloads.pipeline.job import (
    BUFFER_DEFAULT_BYTES,
    SOURCE,
    STEPS_OF_ONE_FILE,
    TIMEOUT_DEFAULT_NS,
    Action,
    ActionOptions,
    FilmToMake,
    PipelineJob,
    PipelineOptions,
    Stage,
    StageOptions,
    enlarges,
)

FILM = ("resolution", "duration", "frame_rate")
_PLACE = re.compile(r"\{([A-Za-z][A-Za-z0-9_-]*)\}")
_NEAR = 0.75
_CLIENTS_MAX = 128  # each is a process of this host
_BESIDE = ("workspace", "output", "input", "client", "widest", SOURCE)
# Options that mean something with some steps only.
_OF_STEPS: dict[str, tuple[str, ...]] = {
    "buffer": ("download", "ingest", "copy", "link_or_copy", "checksum", "publish"),
    "digest": ("ingest", "checksum"),
    "how": ("link_or_copy", "publish"),
    "url": ("download",),
    "timeout": ("download",),
    "seen_from": ("link_or_copy",),
}


def stages_of(options: PipelineOptions) -> tuple[StageOptions, ...]:
    """The stages that the work's variant has, in order."""
    return tuple(
        stage for stage in options.pipeline or () if stage.variant is None or stage.variant == options.variant
    )


def pipeline_rules(options: PipelineOptions) -> Iterator[Problem]:
    """All that can be wrong with a pipeline."""
    if options.runtime == 0:
        yield Problem("runtime", "is the longest that a trial may take, and cannot be 0", "write 1h, or more")
    if (options.clients or 1) > _CLIENTS_MAX:
        message = f"{options.clients} processes at once are more than {_CLIENTS_MAX}"
        yield Problem("clients", message, f"write a number from 1 to {_CLIENTS_MAX}")
    if options.buffer == 0:
        yield Problem("buffer", "of no byte moves nothing", "write 8k, or more")
    yield from _source_problems(options)
    yield from _variant_problems(options)
    yield from _stage_problems(stages_of(options))


def _source_problems(options: PipelineOptions) -> Iterator[Problem]:
    said = [key for key in FILM if getattr(options, key) is not None]
    if options.input is not None and said:
        remedy = f"leave {said[0]} out, or the source"
        yield Problem(said[0], "is of a film that is made, but a source is named", remedy)
    if said and options.resolution is None:
        yield Problem(
            said[0], "is of a film that is made, which needs a resolution", "add resolution: 1920x1080"
        )
    if options.duration == 0:
        yield Problem("duration", "a film of no length is none", "write 1s, or more")


def _variant_problems(options: PipelineOptions) -> Iterator[Problem]:
    known = {stage.variant for stage in options.pipeline or () if stage.variant is not None}
    if options.variant is not None and options.variant not in known:
        named = f"use one of: {', '.join(sorted(known))}" if known else "leave it out"
        yield Problem("variant", f"no stage is of variant {options.variant!r}", named)
    if options.variant is None and known:
        remedy = f"add variant: {min(known)}, or factors: {{variant: [{', '.join(sorted(known))}]}}"
        yield Problem("variant", "some stages are of a variant, and none is chosen", remedy)


def _stage_problems(stages: Sequence[StageOptions]) -> Iterator[Problem]:
    if not stages:
        yield Problem("pipeline", "has no stage", "add one: {stage: NAME, command: [program, word]}")
    known = [SOURCE]
    for stage in stages:
        where = f"stage {stage.stage}"
        if stage.stage in known or stage.stage in _BESIDE:
            yield Problem("pipeline", f"{where}: the name is taken", "give each stage a name of its own")
        if stage.output is not None and ("/" in stage.output or stage.output in (".", "..")):
            remedy = "write a plain name: each stage has a directory of its own"
            yield Problem("pipeline", f"{where}: output {stage.output!r} is no plain name", remedy)
        for name in stage.input or ():
            if name not in known:
                remedy = f"name some of: {', '.join(known)}"
                yield Problem("pipeline", f"{where}: input {name!r} is no stage before it", remedy)
        if (stage.do is not None and stage.step is not None) or (stage.do is not None and stage.command):
            remedy = "put it into do as well"
            yield Problem("pipeline", f"{where}: has do and also a step or command", remedy)
        for action in stage.actions:
            yield from _action_problems(where, stage, action, known)
        known.append(stage.stage)


def _action_problems(
    where: str, stage: StageOptions, action: ActionOptions, known: Sequence[str]
) -> Iterator[Problem]:
    if (action.step is None) == (action.command is None):
        what = "does nothing" if action.step is None else "has both a step and a command"
        remedy = "write step: NAME or command: [program, word]"
        yield Problem("pipeline", f"{where}: {what}", remedy)
    for option, steps in _OF_STEPS.items():
        if getattr(action, option) is not None and action.step not in steps:
            remedy = f"it is of {' and '.join(steps)}"
            yield Problem("pipeline", f"{where}: {option} means nothing here", remedy)
    if action.buffer == 0:
        yield Problem("pipeline", f"{where}: a buffer of no byte moves nothing", "write 8k, or more")
    several = len(stage.input or ()) > 1
    if several and action.step in (*STEPS_OF_ONE_FILE, "checksum"):
        yield Problem("pipeline", f"{where}: {action.step} takes one input", "name one, or use publish")
    if action.step == "download" and known != [SOURCE]:
        yield Problem("pipeline", f"{where}: download begins a pipeline", "make it the first stage")
    if action.command is not None and not (action.command and action.command[0].strip()):
        yield Problem("pipeline", f"{where}: names no program", "begin its command with the program's name")
    yield from _word_problems(where, action, known)


def _word_problems(where: str, action: ActionOptions, known: Sequence[str]) -> Iterator[Problem]:
    """Words that no program can be given, and places that look like a slip of the pen."""
    for word in action.command or ():
        if "\0" in word:
            yield Problem("pipeline", f"{where}: a word holds a zero byte", "take it out")
        for name in _PLACE.findall(word):
            places = (*_BESIDE, *known)
            near = difflib.get_close_matches(name, places, n=1, cutoff=_NEAR)
            if name not in places and near:  # anything else is the program's own, such as awk's {print}
                yield Problem(
                    "pipeline", f"{where}: {{{name}}} stands for nothing", f"did you mean {{{near[0]}}}?"
                )


def within(
    stages: Sequence[StageOptions], source_width: int | None, *, enlarge: bool
) -> tuple[tuple[StageOptions, ...], tuple[StageOptions, ...]]:
    """The stages whose picture is no wider than the source's, and those that are left out: the wider ones,
    and what takes nothing but them. Where all are wider the narrowest stays: something has to come of it.

    Those that stay name their inputs.
    """
    named = [
        stage.model_copy(update={"input": stage.input or (stages[place - 1].stage if place else SOURCE,)})
        for place, stage in enumerate(stages)
    ]
    if enlarge or source_width is None:
        return tuple(named), ()
    rungs = [stage for stage in named if len(stage.widths) == 1]
    wide = {stage.stage for stage in rungs if stage.widths[0] > source_width}
    if rungs and len(wide) == len(rungs):
        wide.discard(min(rungs, key=lambda stage: stage.widths[0]).stage)
    gone: set[str] = set()
    kept = []
    for stage in named:
        left = tuple(name for name in stage.input or () if name not in gone)
        words = [word for action in stage.actions for word in action.command or ()]
        asked = {name for word in words for name in _PLACE.findall(word)}
        if stage.stage in wide or not left or asked & gone:
            gone.add(stage.stage)
        else:
            kept.append(stage.model_copy(update={"input": left}))
    return tuple(kept), tuple(stage for stage in named if stage.stage in gone)


FILM_DURATION_NS = 10 * units.NS_PER_S
FILM_RATE = 25
# Bytes of a picture element in the films that are made, as measured of them: for space, before one is there.
FILM_BYTES_PER_ELEMENT = 0.66


def resolve_pipeline(
    work: str, options: PipelineOptions, target: Target, facts: TargetFacts, around: Surroundings
) -> Resolved:
    """The job of one pipeline on one target. Raises SpecError where it cannot be started."""
    _check_target(work, target, facts, around)
    asked = stages_of(options)
    notes: list[str] = []
    _check_programs(work, options, target, around)
    source = _source(work, options, asked, target, around)
    stages, left_out = within(asked, source.width, enlarge=bool(options.enlarge))
    programs = _programs(work, stages, target, around, notes)
    served = _served(stages)
    buffer = options.buffer or BUFFER_DEFAULT_BYTES
    staged = None if served or source.path is None else source.path
    untraceable = {name: why for found in programs.values() for name, why in found.untraceable}
    whole = ApplicationFacts("", untraceable=tuple(untraceable.items()))
    film = film_of(options)
    job = PipelineJob(
        pipeline=tuple(
            _stage(stage, stages, place, buffer, target, programs) for place, stage in enumerate(stages)
        ),
        copies=options.clients or 1,
        source=source.path,
        source_bytes=source.bytes,
        source_width=source.width,
        source_elements=source.elements,
        widest=None if options.enlarge else source.width,
        film=None if film is None else astuple(film),
        served=served,
        input=staged,
        input_files=0 if staged is None else 1,
        input_bytes=0 if staged is None else source.bytes,
        buffer=buffer,
        variant=options.variant,
        cache=options.cache or "cold",
        trace=choose_tracer(work, options.trace, target, whole, notes),
        runtime_ns=LIMIT_DEFAULT_NS if options.runtime is None else options.runtime,
    )
    _say(job, source, facts, notes)
    _say_left_out(job, left_out, notes)
    return Resolved(job, False, tuple(notes))


def film_of(options: PipelineOptions) -> Film | None:
    """The film that a pipeline asks for; None where it has a source of its own, or needs none."""
    if options.resolution is None:
        return None
    width, height = (int(part) for part in options.resolution.split("x"))
    return Film(width, height, options.frame_rate or FILM_RATE, options.duration or FILM_DURATION_NS)


def film_bytes(film: Film) -> int:
    """About as large as a film becomes."""
    pictures = film.duration_ns / units.NS_PER_S * film.frame_rate
    return round(pictures * film.width * film.height * FILM_BYTES_PER_ELEMENT)


def _check_target(work: str, target: Target, facts: TargetFacts, around: Surroundings) -> None:
    if not facts.has_storage:
        fail(work, target, "pipeline", "null:// has no files", "leave this target out")
    if not target.is_path:
        remedy = "mount it, or leave this target out"
        fail(work, target, "pipeline", f"a program cannot open files of {target.url}", remedy)
    if around.max_rate_bytes_per_s is not None:
        words = "programs set their own pace, which limits.max_rate cannot hold"
        fail(work, target, "pipeline", words, "leave limits.max_rate (--max-rate) out")


def _served(stages: tuple[StageOptions, ...]) -> bool:
    """True where a server of our own sends the source: a download that names no address."""
    return any(action.step == "download" and action.url is None for s in stages for action in s.actions)


def _check_programs(work: str, options: PipelineOptions, target: Target, around: Surroundings) -> None:
    """The versions in `needs`."""
    for program, least in (options.needs or {}).items():
        _program(work, (program,), target, around)
        scout = around.lookup(Scout)
        found = scout.version(program) if scout else None
        wanted = tuple(int(part) for part in least.split(".") if part.isdigit())
        if found is not None and found.numbers is not None and found.numbers < wanted:
            words = f"{program} is version {found.words} here, and {least} is the oldest that will do"
            fail(work, target, "needs", words, f"install a newer {program}")


def _programs(
    work: str,
    stages: tuple[StageOptions, ...],
    target: Target,
    around: Surroundings,
    notes: list[str],
) -> dict[str, ApplicationFacts]:
    """What is known of every program that the stages start, our own for built-in steps among them."""
    actions = [action for stage in stages for action in stage.actions]
    found: dict[str, ApplicationFacts] = {}
    for command in dict.fromkeys(tuple(action.command) for action in actions if action.command):
        found[command[0]] = _program(work, command, target, around)
        check_words(work, "pipeline", command, target, found[command[0]], notes)
    if any(action.step is not None for action in actions):
        python = executable()
        found.setdefault(python, _program(work, (python,), target, around))
    return found


def _program(work: str, command: tuple[str, ...], target: Target, around: Surroundings) -> ApplicationFacts:
    look, name = around.lookup(Look), command[0]
    found = look.find(command, None) if look else ApplicationFacts(name)
    if found.executable is None:
        remedy = f"install {name}, or give the absolute path of a program"
        fail(work, target, "pipeline", found.missing, remedy)
    return found


def _source(
    work: str,
    options: PipelineOptions,
    stages: tuple[StageOptions, ...],
    target: Target,
    around: Surroundings,
) -> SourceFacts:
    film = film_of(options)
    if options.input is None and film is None:
        if _served(stages) or any(_begins_with_source(stages, place) for place in range(len(stages))):
            remedy = "add --source FILE, or --set resolution=1920x1080 for a film that is made"
            fail(work, target, "input", "the pipeline has no source", remedy)
        return SourceFacts(None)
    scout = around.lookup(Scout)
    if scout is None:
        return SourceFacts(options.input or "", film_bytes(film) if film else 0)
    found = scout.source(options.input, film, options.expects == "video")
    if found.problem:
        fail(work, target, "input", f"source {found.path}: {found.problem}", "name another source")
    return found


def _begins_with_source(stages: tuple[StageOptions, ...], place: int) -> bool:
    """True where a stage cannot do without the source."""
    own = stages[place].actions
    words = [word for action in own for word in action.command or ()]
    steps = any(action.step is not None and action.url is None for action in own)
    as_input = SOURCE in _inputs(stages, place) and (steps or any(INPUT in word for word in words))
    return as_input or any(f"{{{SOURCE}}}" in word for word in words)


def _inputs(stages: tuple[StageOptions, ...], place: int) -> tuple[str, ...]:
    """The inputs of a stage: those named, or else the stage before it."""
    return stages[place].input or ((stages[place - 1].stage if place else SOURCE),)


def _stage(
    stage: StageOptions,
    stages: tuple[StageOptions, ...],
    place: int,
    buffer: int,
    target: Target,
    programs: Mapping[str, ApplicationFacts],
) -> Stage:
    return Stage(
        stage=stage.stage,
        actions=tuple(_action(action, buffer, target, programs) for action in stage.actions),
        inputs=_inputs(stages, place),
        output=stage.output,
        width=max(stage.widths, default=None),
        widths=stage.widths,
    )


def _action(
    action: ActionOptions, buffer: int, target: Target, programs: Mapping[str, ApplicationFacts]
) -> Action:
    command = tuple(action.command or ())
    return Action(
        step=action.step,
        command=with_program(command, programs[command[0]]) if command else (),
        buffer=action.buffer or buffer,
        digest=action.digest or "md5",
        how=action.how or "auto",
        url=action.url,
        timeout_ns=action.timeout or TIMEOUT_DEFAULT_NS,
        seen_from=(action.seen_from or {}).get(target.name),
    )


_CLIENT_CACHE_BYTES = 200 << 20  # client_oc_size, Ceph's default: it is not dropped with the page cache


def _say(job: PipelineJob, source: SourceFacts, facts: TargetFacts, notes: list[str]) -> None:
    if facts.in_memory:
        notes.append(f"measures memory: {facts.file_system} keeps its files there")
    if source.path is not None and not source.made:
        notes.append(f"a film is made first, about {units.format_size(source.bytes)}: {source.path}")
    elif source.path is not None:
        how = "sent by a server on loopback" if job.served else "copied to the target once, and checked"
        notes.append(f"source {source.path}: {units.format_size(source.bytes)}, {how}")
    if not source.audio:
        notes.append("the source has no audio: there is none to encode")
    if job.cache == "cold":
        notes.append(
            "cache cold: what a stage wrote is synced and dropped from this host's page cache after it"
        )
    if job.cache == "cold" and facts.through_ceph_fuse and source.bytes <= _CLIENT_CACHE_BYTES:
        notes.append(
            f"warning: the source ({units.format_size(source.bytes)}) fits into ceph-fuse's own cache"
            f" (client_oc_size, {units.format_size(_CLIENT_CACHE_BYTES)} by default), which may answer reads:"
            " such cells are INVALID. Name a larger --source, or a longer film: --set duration=1m"
        )
    limit = units.exact_duration(job.runtime_ns)
    notes.append(f"runtime {limit}: a trial that takes longer is ended and counts as failed")


def _say_left_out(job: PipelineJob, left_out: Sequence[StageOptions], notes: list[str]) -> None:
    """Which pictures are not made, and which are made larger than the source's."""
    if left_out:
        rungs = [f"{stage.stage} ({stage.widths[0]})" if stage.widths else stage.stage for stage in left_out]
        words = f"left out, wider than the source ({job.source_width}): {', '.join(rungs)}"
        notes.append(f"{words}; --set enlarge=true does them")
    wide = [stage.stage for stage in job.pipeline if enlarges(stage.widths, job.source_width, job.widest)]
    if wide:
        notes.append(f"{', '.join(wide)}: wider than the source ({job.source_width}), so it is enlarged")


# Read and written by ffmpeg with libx264's own preset on one CPU, measured: five sizes of 250 pictures of
# 3840x2160 in 263 s on two CPUs of a virtual machine.
NOMINAL_ELEMENTS_PER_S = 26e6
NOMINAL_STAGE_S = 0.2  # to start a stage's program with its tracer, and to settle what it wrote


def free_cpus() -> float:
    """How many CPUs encodes get: all, or their share of them beside what runs here already."""
    cpus = os.cpu_count() or 1
    with contextlib.suppress(OSError):
        return cpus * cpus / (cpus + os.getloadavg()[0])
    return float(cpus)


class PipelinePlanned(PlannedPrograms[PipelineOptions, PipelineJob]):
    """Clients that go through all stages at once."""

    kind = "pipeline"
    job = PipelineJob
    told_by = "pipeline"
    indifferent = frozenset({"input", "runtime_ns", "source", "film"})
    options = PipelineOptions
    example = "pipeline: [{stage: …}]"
    no_rate = "a pipeline"
    plain_levels = ("buffer",)
    replaced_by: Mapping[str, tuple[str, ...]] = {"input": FILM}
    sections: Mapping[str, tuple[str, ...]] = {
        "pipeline": tuple(StageOptions.model_fields),
        "do": tuple(ActionOptions.model_fields),
    }
    byte_fields = ("input_bytes", "buffer", "source_bytes")

    def problems(self, options: PipelineOptions, foreign: Iterator[Problem]) -> Iterator[Problem]:
        """See the base."""
        yield from foreign
        yield from pipeline_rules(options)

    def resolve(
        self, work: str, options: PipelineOptions, target: Target, facts: TargetFacts, around: Surroundings
    ) -> Resolved:
        """See the base."""
        return resolve_pipeline(work, options, target, facts, around)

    def work_bytes(self, options: PipelineOptions) -> WorkBytes:
        """None: programs decide what they read and write of a film."""
        del options
        raise SpecError(
            "what a pipeline's programs read and write of a film is not in a study",
            "run it first (leadline run media --target NAME=PATH -o DIR), and write work: {result: DIR}",
        )

    def seconds(self, job: PipelineJob) -> float:
        """Programs as of any application; of a film, its pictures as often as stages read and make them.

        Each program reads them once, and makes them in each of its widths; a step moves the source's bytes.
        """
        if not job.source_elements or not job.source_width:
            return super().seconds(job)
        programs = [stage for stage in job.pipeline if any(action.command for action in stage.actions)]
        made = [min(w, job.widest or w) if len(s.widths) > 1 else w for s in programs for w in s.widths]
        passes = len(programs) + sum((width / job.source_width) ** 2 for width in made)
        computed_s = passes * job.source_elements / NOMINAL_ELEMENTS_PER_S / free_cpus()
        steps = sum(action.step is not None for stage in job.pipeline for action in stage.actions)
        moved_s = steps * job.source_bytes / NOMINAL_BYTES_PER_S
        once_s = NOMINAL_STAGE_S * len(job.pipeline) + job.copies * (computed_s + moved_s)
        return min(once_s, job.runtime_ns / NS_PER_S) * job.runs

    def assumption(self, job: PipelineJob) -> str | None:
        """See the base."""
        if not job.source_elements:
            return super().assumption(job)
        rate = f"{NOMINAL_ELEMENTS_PER_S / 1e6:.0f} million picture elements a second on each of the"
        rate += f" {units.format_number(free_cpus(), 2)} CPUs that the load leaves"
        moved = units.format_rate(NOMINAL_BYTES_PER_S)
        return f"programs read and make {rate}, steps move {moved}, as on a local disk; the first trials tell"

    def to_make(self, job: PipelineJob) -> FilmToMake | None:
        """The film that it begins with, where no source was named."""
        return None if job.film is None or job.source is None else FilmToMake(Film(*job.film), job.source)

    def option_words(self, job: PipelineJob, name: str, value: Any) -> str | None:
        """Stages by their names; its command is none."""
        if name == "pipeline":
            return ",".join(stage["stage"] for stage in value)
        return super().option_words(job, name, value)
