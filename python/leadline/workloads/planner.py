"""Every kind of work as it is planned: a line each. Studies ask for them by `leadline.study.kinds`."""

from __future__ import annotations

from typing import Any

from leadline.study.kind.interface import Planned
from leadline.workloads.application.planner import ApplicationPlanned
from leadline.workloads.coherence.planner import CoherencePlanned
from leadline.workloads.imported.planner import ImportedPlanned
from leadline.workloads.io.planner import IoPlanned
from leadline.workloads.metadata.planner import MetadataPlanned
from leadline.workloads.pipeline.planner import PipelinePlanned
from leadline.workloads.replay.planner import ReplayPlanned
from leadline.workloads.transfer.planner import TransferPlanned

# Where two kinds claim a work or a stored job, the later one has it: it is the more special.
PLANNERS: tuple[Planned[Any, Any], ...] = (
    IoPlanned(),
    MetadataPlanned(),
    ApplicationPlanned(),
    CoherencePlanned(),
    PipelinePlanned(),
    ReplayPlanned(),
    TransferPlanned(),
    ImportedPlanned(),
)
