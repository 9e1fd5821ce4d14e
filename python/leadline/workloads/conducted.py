"""Every kind of work as it is run: a line each. A run and its workers know kinds through this table only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from leadline.run.face import Conducted
from leadline.study.job import AnyJob
from leadline.workloads.application.conducted import ApplicationConducted
from leadline.workloads.coherence.conducted import CoherenceConducted
from leadline.workloads.io.conducted import IoConducted
from leadline.workloads.metadata.conducted import MetadataConducted
from leadline.workloads.pipeline.conducted import PipelineConducted
from leadline.workloads.replay.conducted import ReplayConducted

_FACES: tuple[Conducted[Any], ...] = (
    IoConducted(),
    MetadataConducted(),
    ApplicationConducted(),
    CoherenceConducted(),
    PipelineConducted(),
    ReplayConducted(),
)
CONDUCTED: Mapping[str, Conducted[Any]] = {face.kind: face for face in _FACES}
_BY_FORMAT: Mapping[str, Conducted[Any]] = {face.format: face for face in _FACES}


def conducted(job: AnyJob) -> Conducted[Any]:
    """The face of a job's kind."""
    return CONDUCTED[job.kind]


def handed(job: Mapping[str, Any]) -> Conducted[Any]:
    """The same for the JSON that a worker is handed."""
    return _BY_FORMAT[job["format"]]
