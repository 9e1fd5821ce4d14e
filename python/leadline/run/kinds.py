"""Every kind of work as it is run: a line each. A run and its workers know kinds through this table only.

A kind is imported when it is asked for: what forks the workers of a study has those of that study.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from leadline.run.interface import Conducted
    from leadline.study.kind.interface import AnyJob

# By kind: the format of the JSON that its worker is handed, and the face in `workloads/<kind>/runner.py`.
CONDUCTED: Mapping[str, tuple[str, str]] = {
    "io": ("leadline.job/1", "IoConducted"),
    "metadata": ("leadline.metadata/1", "MetadataConducted"),
    "application": ("leadline.application/1", "ApplicationConducted"),
    "coherence": ("leadline.coherence/1", "CoherenceConducted"),
    "pipeline": ("leadline.pipeline/1", "PipelineConducted"),
    "replay": ("leadline.replay/1", "ReplayConducted"),
    "transfer": ("leadline.transfer/1", "TransferConducted"),
    "imported": ("leadline.imported/1", "ImportedConducted"),
}
_BY_FORMAT: Mapping[str, str] = {job_format: kind for kind, (job_format, _) in CONDUCTED.items()}


@functools.cache
def conducted_kind(kind: str) -> Conducted[Any]:
    """The face of a kind."""
    module = importlib.import_module(f"leadline.workloads.{kind}.runner")
    face: Conducted[Any] = getattr(module, CONDUCTED[kind][1])()
    return face


def conducted(job: AnyJob) -> Conducted[Any]:
    """The face of a job's kind."""
    return conducted_kind(job.kind)


def handed(job: Mapping[str, Any]) -> Conducted[Any]:
    """The same for the JSON that a worker is handed."""
    return conducted_kind(_BY_FORMAT[job["format"]])
