"""The planner of a pipeline: stages over one source. As it is planned, it is a kind of application."""

from __future__ import annotations

import contextlib
import os
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from leadline import units
from leadline.errors import SpecError
from leadline.study.kind.interface import (
    NOMINAL_BYTES_PER_S,
    Layout,
    Planned,
    Problem,
    Resolved,
    Surroundings,
    WorkBytes,
)
from leadline.study.kind.lookups import Film
from leadline.study.target import Target, TargetFacts
from leadline.units import NS_PER_S
from leadline.workloads.application.planner import (
    program_assumption,
    program_seconds,
    staged_input,
    staged_words,
)
from leadline.workloads.pipeline.job import (
    ActionOptions,
    FilmToMake,
    PipelineJob,
    PipelineOptions,
    StageOptions,
)
from leadline.workloads.pipeline.resolve import FILM, pipeline_rules, resolve_pipeline

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


def pipeline_seconds(job: PipelineJob) -> float:
    """Programs as of any application; of a film, its pictures as often as stages read and make them.

    Each program reads them once, and makes them in each of its widths; each step moves the source's bytes.
    """
    if not job.source_elements or not job.source_width:
        return program_seconds(job)
    programs = [stage for stage in job.pipeline if any(action.command for action in stage.actions)]
    made = [min(w, job.widest or w) if len(s.widths) > 1 else w for s in programs for w in s.widths]
    passes = len(programs) + sum((width / job.source_width) ** 2 for width in made)
    computed_s = passes * job.source_elements / NOMINAL_ELEMENTS_PER_S / free_cpus()
    steps = sum(action.step is not None for stage in job.pipeline for action in stage.actions)
    moved_s = steps * job.source_bytes / NOMINAL_BYTES_PER_S
    once_s = NOMINAL_STAGE_S * len(job.pipeline) + job.copies * (computed_s + moved_s)
    return min(once_s, job.runtime_ns / NS_PER_S) * job.runs


class PipelinePlanned(Planned[PipelineOptions, PipelineJob]):
    """Clients that go through all stages at once, each to its own end, alone in their trial."""

    kind = "pipeline"
    job = PipelineJob
    told_by = "pipeline"
    indifferent = frozenset({"input", "runtime_ns", "source", "film"})
    options = PipelineOptions
    example = "pipeline: [{stage: …}]"
    no_rate = "a pipeline"
    alone = "cannot be one of several jobs"
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

    def layout(self, job: PipelineJob) -> Layout | None:
        """See the base."""
        return staged_input(job)

    def layout_words(self, layout: Layout) -> str:
        """See the base."""
        return staged_words(layout)

    def seconds(self, job: PipelineJob) -> float:
        """See the base."""
        return pipeline_seconds(job)

    def assumption(self, job: PipelineJob) -> str | None:
        """See the base."""
        if not job.source_elements:
            return program_assumption()
        rate = f"{NOMINAL_ELEMENTS_PER_S / 1e6:.0f} million picture elements a second on each of the"
        rate += f" {units.format_number(free_cpus(), 2)} CPUs that the load leaves"
        moved = units.format_rate(NOMINAL_BYTES_PER_S)
        return f"programs read and make {rate}, steps move {moved}, as on a local disk; the first trials tell"

    def to_make(self, job: PipelineJob) -> FilmToMake | None:
        """The film that it begins with, where no source was named."""
        return None if job.film is None or job.source is None else FilmToMake(Film(*job.film), job.source)

    def option_words(self, job: PipelineJob, name: str, value: Any) -> str | None:
        """Stages by their names; its command is none."""
        del job
        if name == "pipeline":
            return ",".join(stage["stage"] for stage in value)
        return shlex.join(value) if name == "command" else None
