"""Every kind of work as verdicts see it: a line each. Verdicts ask for them by `leadline.verdict.kinds`."""

from __future__ import annotations

from typing import Any

from leadline.verdict.interface import JudgedWork
from leadline.workloads.application.judge import JudgedApplication
from leadline.workloads.coherence.judge import JudgedCoherence
from leadline.workloads.imported.judge import JudgedImported
from leadline.workloads.io.judge import JudgedIo
from leadline.workloads.metadata.judge import JudgedMetadata
from leadline.workloads.pipeline.judge import JudgedPipeline
from leadline.workloads.replay.judge import JudgedReplay
from leadline.workloads.transfer.judge import JudgedTransfer

# In the order in which they say something.
KINDS: tuple[JudgedWork[Any], ...] = (
    JudgedIo(),
    JudgedTransfer(),
    JudgedMetadata(),
    JudgedCoherence(),
    JudgedReplay(),
    JudgedApplication(),
    JudgedPipeline(),
    JudgedImported(),
)
