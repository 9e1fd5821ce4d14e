"""Operations on files and directories themselves as verdicts see them: each is a work of its own.

What is computed of a trial of metadata: each operation's rate over its own phases, and its latencies.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from leadline import units
from leadline.analysis.metrics import (
    COST_METRICS,
    LARGE_BLOCK_BYTES,
    LATENCY_METRICS,
    Measured,
    add_costs,
    add_latency,
    cpu_per_operation,
)
from leadline.store.tables import LatencyRow, TrialRow
from leadline.verdict.interface import JudgedWork, Limits
from leadline.verdict.model import CellShown
from leadline.workloads.metadata.job import FIRST_BYTE, OPERATIONS, MetadataJob

if TYPE_CHECKING:
    from leadline.verdict.codes.case import Case


def operation_phases(trial: TrialRow) -> dict[str, dict[str, int]]:
    """The phases of a trial: operations, bytes, elapsed_ns of each."""
    found: dict[str, dict[str, int]] = json.loads(trial.summary).get("directions", {})
    return {name: phase for name, phase in found.items() if name in OPERATIONS}


def operation_metrics(trial: TrialRow, latency: Sequence[LatencyRow]) -> Measured:
    """Every metric of one trial, without a rate over all operations: that would say how they were mixed."""
    values: dict[str, float] = {}
    reasons: dict[str, str] = {}
    phases = operation_phases(trial)
    for name, phase in phases.items():
        if not phase["operations"] or phase.get("elapsed_ns", 0) <= 0:
            reasons[f"{name}_iops"] = "its phase was not completed"
            continue
        values[f"{name}_iops"] = phase["operations"] / (phase["elapsed_ns"] / 1e9)
        add_latency(values, reasons, latency, name, "total", prefix=f"{name}_")
    operations = sum(phase["operations"] for phase in phases.values())
    values |= cpu_per_operation(trial, operations)
    add_costs(values, reasons, trial, operations)
    return Measured(values, reasons)


_FIRST_BYTE_NOTE = "Of first bytes it is the median wait: less is better."


class JudgedMetadata(JudgedWork[MetadataJob]):
    """Each operation has its rate; a rate over all of them would say how they were mixed.

    Servers journal what is done to files, and write as much more as they like: no bound on it is known.
    """

    kind = MetadataJob.kind
    metric_kinds = COST_METRICS
    directions = OPERATIONS
    parts = OPERATIONS
    series = ("iops", "1/s")
    unbounded_writes = True

    def known_metrics(self) -> tuple[str, ...]:
        """All names that a cell can have."""
        return tuple(f"{name}_{metric}" for name in OPERATIONS for metric in ("iops", *LATENCY_METRICS))

    def metrics(
        self,
        trial: TrialRow,
        latency: Sequence[LatencyRow],
        *,
        open_loop: bool,
        extra: Any,
    ) -> Measured:
        """Rates and latencies, operation by operation."""
        return operation_metrics(trial, latency)

    def default_metrics(self, job: MetadataJob) -> tuple[str, ...]:
        """Of each operation a rate, then of each a tail latency."""
        rates = (f"{name}_iops" for name in job.operations)
        return (*rates, *(f"{name}_latency_p99" for name in job.operations))

    def trial_values(self, trial: TrialRow) -> Mapping[str, float]:
        """Operations and seconds of each phase."""
        values: dict[str, float] = {}
        for name, phase in operation_phases(trial).items():
            values |= {f"{name}_operations": phase["operations"], f"{name}_s": phase["elapsed_ns"] / 1e9}
        return values

    def progress(self, trial: TrialRow) -> str | None:
        """Each operation's rate."""
        return ", ".join(
            f"{name} {units.format_iops(phase['operations'] * 1e9 / max(phase['elapsed_ns'], 1))}"
            for name, phase in operation_phases(trial).items()
        )

    def shown(self, job: MetadataJob) -> CellShown:
        """An operation a row."""
        small = job.bs < LARGE_BLOCK_BYTES
        return CellShown(
            leading=("iops", "bandwidth") if small else ("bandwidth", "iops"),
            parts=job.operations,
            asked=tuple((name, _asked(name)) for name in job.operations),
            note=_FIRST_BYTE_NOTE if FIRST_BYTE in job.operations else "",
        )

    def too_short(self, case: Case, limits: Limits) -> tuple[str, bool] | None:
        """Phases end when their files are done: many operations make up for a short time."""
        for trial in case.good:
            for name, phase in operation_phases(trial).items():
                seconds = phase["elapsed_ns"] / 1e9
                if phase["operations"] < limits["operations"] or seconds < limits["phase_seconds"]:
                    return f"{phase['operations']} x {name} in {seconds:.3g} s in {trial.trial}", False
        return None

    def write_sizes(self, job: MetadataJob) -> tuple[tuple[int, float], ...]:
        """Whole files."""
        return ((job.file_size, 1.0),) if job.file_size else ()

    def sent_one_by_one(self, job: MetadataJob) -> bool:
        """A file each."""
        return True


def _asked(operation: str) -> str:
    return f"{operation}_latency_p50" if operation == FIRST_BYTE else f"{operation}_iops"
