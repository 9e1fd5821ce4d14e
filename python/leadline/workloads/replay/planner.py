"""The planner of a replay. No study asks for one: `leadline replay` makes its plan by `plan`."""

from __future__ import annotations

from leadline import units
from leadline.study.kind.interface import NOMINAL_BYTES_PER_S, NOMINAL_OPERATIONS_PER_S, Planned
from leadline.study.kind.options import Options
from leadline.workloads.replay.job import ReplayJob


class ReplayPlanned(Planned[Options, ReplayJob]):
    """The calls of a trace, as recorded or at once."""

    kind = "replay"
    job = ReplayJob
    told_by = "script"
    indifferent = frozenset({"script"})

    def untimed_seconds(self, job: ReplayJob) -> float:
        """As long as the trace took, where its pace is kept, and no less than its calls and bytes take."""
        fast_s = max(job.calls / NOMINAL_OPERATIONS_PER_S, job.moved_bytes / NOMINAL_BYTES_PER_S)
        return max(job.runtime_ns / units.NS_PER_S, fast_s) if job.pace == "recorded" else fast_s
