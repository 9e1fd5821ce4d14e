"""Contradictions in a work that is a pipeline: foreign options, stages that nothing feeds, steps' options."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence

from leadline.study.kind.rule import Problem
from leadline.workloads.pipeline.job import SOURCE, STEPS_OF_ONE_FILE, ActionOptions, StageOptions
from leadline.workloads.pipeline.options import PipelineOptions

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
    yield from _source(options)
    yield from _variant(options)
    yield from _stages(stages_of(options))


def _source(options: PipelineOptions) -> Iterator[Problem]:
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


def _variant(options: PipelineOptions) -> Iterator[Problem]:
    known = {stage.variant for stage in options.pipeline or () if stage.variant is not None}
    if options.variant is not None and options.variant not in known:
        named = f"use one of: {', '.join(sorted(known))}" if known else "leave it out"
        yield Problem("variant", f"no stage is of variant {options.variant!r}", named)
    if options.variant is None and known:
        remedy = f"add variant: {min(known)}, or factors: {{variant: [{', '.join(sorted(known))}]}}"
        yield Problem("variant", "some stages are of a variant, and none is chosen", remedy)


def _stages(stages: Sequence[StageOptions]) -> Iterator[Problem]:
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
            yield Problem("pipeline", f"{where}: has do and a step or command beside it", remedy)
        for action in stage.actions:
            yield from _action(where, stage, action, known)
        known.append(stage.stage)


def _action(
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
    yield from _words(where, action, known)


def _words(where: str, action: ActionOptions, known: Sequence[str]) -> Iterator[Problem]:
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
