"""What is computed of a trial of metadata: each operation's rate over its own phases, and its latencies."""

from __future__ import annotations

import json
from collections.abc import Sequence

from leadline.analysis.costs import add_costs
from leadline.analysis.metrics import Measured, add_latency, cpu_per_operation
from leadline.store.tables import LatencyRow, TrialRow
from leadline.workloads.metadata.job import OPERATIONS


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
