"""What is computed of a replay: times of the whole, and rates and latencies of each class of calls."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from leadline.analysis.metrics import Measured, add_latency, cpu_per_operation, nothing_done
from leadline.store.tables import LatencyRow, TrialRow

CLASSES = ("read", "write", "meta", "sync")


def replay_metrics(trial: TrialRow, latency: Sequence[LatencyRow]) -> Measured:
    """Every metric of one trial."""
    classes: Mapping[str, Mapping[str, int]] = json.loads(trial.summary).get("directions", {})
    seconds = trial.measured_ns / 1e9
    calls = sum(found["operations"] for found in classes.values())
    if seconds <= 0 or not calls:
        return nothing_done(("run_time", "io_time"), "no call was completed")
    values: dict[str, float] = {}
    reasons: dict[str, str] = {}
    values["run_time"] = seconds
    values["io_time"] = sum(found["io_ns"] for found in classes.values()) / 1e9
    values["bandwidth"] = sum(found["bytes"] for found in classes.values()) / seconds
    values["iops"] = calls / seconds
    for name, found in classes.items():
        if name in ("read", "write"):
            values[f"{name}_bandwidth"] = found["bytes"] / seconds
        values[f"{name}_iops"] = found["operations"] / seconds
        add_latency(values, reasons, latency, name, "total", prefix=f"{name}_")
    values |= cpu_per_operation(trial, calls)
    # A mean of nothing is no figure: where nothing was moved there is no bandwidth.
    return Measured({name: value for name, value in values.items() if value > 0}, reasons)


def share_otherwise(trial: TrialRow) -> float | None:
    """The share of a replay's calls that did not go as in the trace."""
    found = json.loads(trial.summary).get("replay") or {}
    return (found["differed"] + found["short"]) / found["calls"] if found.get("calls") else None
