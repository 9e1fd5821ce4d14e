"""The runner of coherence: the parent leads a conversation of a writer's worker and a reader's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from leadline.run.interface import Command, Conducted, Preparing, Say, Scene

if TYPE_CHECKING:
    from leadline.run.child import Answer
    from leadline.workloads.coherence.job import CoherenceJob


class CoherenceConducted(Conducted["CoherenceJob"]):
    """Question after question, the cell's target writing and the job's reader looking."""

    kind = "coherence"

    def deadline_s(self, job: CoherenceJob) -> float:
        """See the base."""
        return job.seconds_max

    def prepare(self, job: CoherenceJob, target: str, preparing: Preparing) -> Answer | None:
        """The reader's way too; one that hangs is left alone, and not the writer's."""
        return preparing.reach(job.reader) if job.reader != target else None

    def conduct(self, job: CoherenceJob, scene: Scene) -> Answer:
        """The reader has a worker of its own."""
        from leadline.workloads.coherence.conversation import converse

        places = scene.places[scene.target], scene.places[job.reader]
        answer, reader_gone = converse(scene.worker, job, scene.prefix, places, scene.stopping)
        if reader_gone:
            scene.lose(job.reader, answer.message)
        return answer

    def commands(self, say: Say) -> Mapping[str, Command]:
        """One side's steps; both sides know all of them."""
        from leadline.workloads.coherence.side import CoherenceSide

        return CoherenceSide(say).commands
