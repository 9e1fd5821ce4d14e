"""What is computed of a trial that another program made: its own sums, and what it kept of latencies."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from leadline.analysis.metrics import (
    LATENCY_METRICS,
    PERCENTILES,
    Measured,
    add_latency,
    cpu_per_operation,
    nothing_done,
)
from leadline.store.tables import LatencyRow, TrialRow

# Of the clocks that were kept the first of these: what all else here counts latencies by.
_CLOCKS = ("total", "completion")
_BEYOND_MIN = 10  # as for latencies of our own


def imported_metrics(trial: TrialRow, latency: Sequence[LatencyRow]) -> Measured:
    """Every metric of one trial."""
    said: Mapping[str, Any] = json.loads(trial.summary).get("imported") or {}
    found = {name: one for name, one in said.get("directions", {}).items() if one["operations"]}
    if not found:
        return nothing_done(("bandwidth", "iops"), "no operation is in what was imported")
    untimed = [name for name, one in found.items() if not one["runtime_ns"]]
    if untimed or trial.measured_ns <= 0:
        why = f"it says that its {' and '.join(untimed) or 'job'} took no time at all"
        return nothing_done(("bandwidth", "iops"), why)
    values: dict[str, float] = {}
    reasons: dict[str, str] = {}
    seconds = trial.measured_ns / 1e9
    for name, one in found.items() if len(found) > 1 else ():
        values[f"{name}_bandwidth"] = one["bytes"] / (one["runtime_ns"] / 1e9)
        values[f"{name}_iops"] = one["operations"] / (one["runtime_ns"] / 1e9)
    operations = sum(one["operations"] for one in found.values())
    values["bandwidth"] = sum(one["bytes"] for one in found.values()) / seconds
    values["iops"] = operations / seconds
    for name, one in found.items():
        _add_latency(values, reasons, latency, name, one, prefix=f"{name}_" if len(found) > 1 else "")
    if said.get("sync"):
        _add_latency(values, reasons, latency, "sync", said["sync"], prefix="sync_")
    values |= cpu_per_operation(trial, operations)
    return Measured({name: value for name, value in values.items() if value > 0}, reasons)


def clock_of(latency: Sequence[LatencyRow], direction: str) -> str | None:
    """The clock of which there are histograms in that direction."""
    kept = {row.clock for row in latency if row.direction == direction}
    return next((clock for clock in _CLOCKS if clock in kept), None)


def _add_latency(
    values: dict[str, float],
    reasons: dict[str, str],
    latency: Sequence[LatencyRow],
    direction: str,
    said: Mapping[str, Any],
    *,
    prefix: str,
) -> None:
    """From histograms; without them what the program itself printed, where that is of one job."""
    clock = clock_of(latency, direction)
    if clock is not None:
        add_latency(values, reasons, latency, direction, clock, prefix=prefix)
        return
    kept = said.get("latency")
    if not kept:
        reasons |= dict.fromkeys((f"{prefix}{name}" for name in LATENCY_METRICS), said["latency_reason"])
        return
    values[f"{prefix}latency_mean"], values[f"{prefix}latency_max"] = kept["mean_ns"], float(kept["max_ns"])
    for name, value, why in _percentiles(kept):
        if value is None:
            reasons[f"{prefix}latency_{name}"] = why
        else:
            values[f"{prefix}latency_{name}"] = value


def _percentiles(kept: Mapping[str, Any]) -> Iterator[tuple[str, float | None, str]]:
    printed = {float(percent): value for percent, value in kept["percentiles"].items()}
    for name, percent in PERCENTILES.items():
        beyond = kept["operations"] * (100 - percent) / 100
        if percent not in printed:
            yield name, None, kept["reason"] or f"{name} is not among the percentiles that were printed"
        elif beyond < _BEYOND_MIN and percent > 50:
            yield name, None, f"{kept['operations']} operations are too few for {name}"
        else:
            yield name, float(printed[percent]), ""
