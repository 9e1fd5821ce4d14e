"""The planner of coherence: which targets it can be asked of, its defaults, and what contradicts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from leadline import units
from leadline.study.kind.interface import Planned, Problem, Resolved, Surroundings
from leadline.study.kind.resolving import fail
from leadline.study.schemes import scheme_of
from leadline.study.target import Target, TargetFacts
from leadline.workloads.coherence.job import (
    FILE_BYTES,
    GIVE_UP_DEFAULT_NS,
    POLL_NS,
    REPETITIONS_DEFAULT,
    SHARED_BLOCK_BYTES,
    SHARED_BLOCKS,
    CoherenceJob,
    CoherenceOptions,
)


def coherence_rules(options: CoherenceOptions) -> Iterator[Problem]:
    """All that can be wrong with a work that asks what another way sees."""
    names = options.questions or []
    if not names:
        yield Problem("questions", "asks nothing", "write for example [name, size_closed, bytes_closed]")
    for place, name in enumerate(names):
        if name in names[:place]:
            yield Problem("questions", f"{name} is given twice", "keep one")
    if options.give_up == 0:
        yield Problem("give_up", "no time to look at all", "write for example give_up: 30s")


_OF_FILES = {"create", "rename", "unlink"}  # what a scheme of a file system can do by name


def _has_files(target: Target) -> bool:
    scheme = scheme_of(target.url)
    return scheme is not None and set(scheme.operations) >= _OF_FILES


def resolve_coherence(work: str, options: CoherenceOptions, target: Target, facts: TargetFacts) -> Resolved:
    """The job of a target as the writer; its readers are added by the plan. Raises SpecError."""
    if not target.is_path and not _has_files(target):
        words = f"{facts.words}: no file system that another way could look at"
        fail(work, target, "questions", words, "leave this target out")
    notes = [
        f"a reader looks every {units.exact_duration(POLL_NS)}, which is the resolution",
        "what was not seen within give_up has no number",
    ]
    if not target.is_path:
        notes.append("through a library: whole files by name, rename and unlink; no open file, link or lock")
    job = CoherenceJob(
        questions=tuple(options.questions or ()),
        reader=target.name,
        repetitions=options.repetitions or REPETITIONS_DEFAULT,
        give_up_ns=options.give_up or GIVE_UP_DEFAULT_NS,
        poll_ns=POLL_NS,
        file_bytes=FILE_BYTES,
        shared_block_bytes=SHARED_BLOCK_BYTES,
        shared_blocks=SHARED_BLOCKS,
    )
    return Resolved(job, False, tuple(notes))


# Files made, looked at, changed and looked at again; of some ways a lease of seconds runs out in between.
# Six repetitions of twelve questions took 3 to 36 s on the 25 pairs of a lab.
_NOMINAL_QUESTION_S = 0.2


class CoherencePlanned(Planned[CoherenceOptions, CoherenceJob]):
    """Questions of a writer's target that a reader's answers: a cell for each pair."""

    kind = "coherence"
    job = CoherenceJob
    told_by = "questions"
    options = CoherenceOptions
    example = "questions: [name, bytes_closed]"
    foreign = "is of other kinds of work, and means nothing with"
    no_rate = "questions"
    alone = "cannot be of one of several jobs"

    def needs_leadline(self, options: CoherenceOptions) -> str:
        """See the base."""
        del options
        return "the questions that it asks"

    def problems(self, options: CoherenceOptions, foreign: Iterator[Problem]) -> Iterator[Problem]:
        """See the base."""
        yield from foreign
        yield from coherence_rules(options)

    def resolve(
        self, work: str, options: CoherenceOptions, target: Target, facts: TargetFacts, around: Surroundings
    ) -> Resolved:
        """The target writes; who reads is known once every target was resolved."""
        del around
        return resolve_coherence(work, options, target, facts)

    def spread(self, job: CoherenceJob, targets: Sequence[str]) -> Sequence[tuple[str, CoherenceJob]]:
        """One for each reader: every target that can do the same work, the writer's own among them."""
        return [(f"_to_{reader}", job.model_copy(update={"reader": reader})) for reader in targets]

    def needs(self, job: CoherenceJob, target: str) -> tuple[str, ...]:
        """The writer's and the reader's."""
        return (target, job.reader)

    def untimed_seconds(self, job: CoherenceJob) -> float:
        """See the base."""
        return _NOMINAL_QUESTION_S * job.repetitions * len(job.questions)
