"""The planned face of coherence: what one way to a storage writes, when does another way see it?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from leadline.study.kind.face import Planned, Resolved, Surroundings
from leadline.study.kind.rule import Problem
from leadline.study.target import Target, TargetFacts
from leadline.workloads.coherence.job import CoherenceJob
from leadline.workloads.coherence.options import CoherenceOptions
from leadline.workloads.coherence.resolve import resolve_coherence
from leadline.workloads.coherence.rules import coherence_rules

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
