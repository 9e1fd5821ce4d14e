"""The planned face of a pipeline: stages over one source. As it is planned, it is a kind of application."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from leadline.study.kind.face import Layout, Planned, Resolved, Surroundings
from leadline.study.kind.rule import Problem
from leadline.study.target import Target, TargetFacts
from leadline.units import NS_PER_S
from leadline.workloads.application.planned import (
    program_assumption,
    program_seconds,
    staged_input,
    staged_words,
)
from leadline.workloads.pipeline.job import ActionOptions, Film, FilmToMake, PipelineJob, StageOptions
from leadline.workloads.pipeline.options import PipelineOptions
from leadline.workloads.pipeline.resolve import resolve_pipeline
from leadline.workloads.pipeline.rules import FILM, pipeline_rules

# Read and written by ffmpeg with libx264's own preset on one CPU, measured: five sizes of 250 pictures of
# 3840x2160 in 263 s on two CPUs of a virtual machine.
NOMINAL_ELEMENTS_PER_S = 26e6


def pipeline_seconds(job: PipelineJob) -> float:
    """Programs as of any application; of a film that is made, its pictures read and written by encodes."""
    if job.film is None:
        return program_seconds(job)
    film = Film(*job.film)
    elements = film.duration_ns / NS_PER_S * film.frame_rate * film.width * film.height
    widths = [stage.width / film.width for stage in job.pipeline if stage.width]
    encoded = job.copies * elements * sum(1 + share**2 for share in widths)
    once_s = encoded / NOMINAL_ELEMENTS_PER_S / (os.cpu_count() or 1)
    return min(program_seconds(job) + once_s * job.runs, job.runtime_ns / NS_PER_S * job.runs)


class PipelinePlanned(Planned[PipelineOptions, PipelineJob]):
    """Clients that go through all stages at once, each to its own end, alone in their trial."""

    kind = "pipeline"
    job = PipelineJob
    told_by = "pipeline"
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
        if job.film is None:
            return program_assumption()
        rate = f"{NOMINAL_ELEMENTS_PER_S / 1e6:.0f} million picture elements a second"
        return f"{program_assumption()}; encodes take {rate} on each CPU"

    def to_make(self, job: PipelineJob) -> FilmToMake | None:
        """The film that it begins with, where no source was named."""
        return None if job.film is None or job.source is None else FilmToMake(Film(*job.film), job.source)

    def option_words(self, job: PipelineJob, name: str, value: Any) -> str | None:
        """Stages by their names; its command is none."""
        del job
        if name == "pipeline":
            return ",".join(stage["stage"] for stage in value)
        return shlex.join(value) if name == "command" else None
