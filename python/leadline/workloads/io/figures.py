"""What is computed of a trial of reads and writes: rates, latencies, and what an operation cost."""

from __future__ import annotations

import json
from collections.abc import Sequence

from leadline.analysis.costs import add_costs
from leadline.analysis.metrics import Measured, add_latency, cpu_per_operation, nothing_done
from leadline.store.tables import LatencyRow, TrialRow

_NOTHING = "no operation was completed in the measured interval"


def io_metrics(trial: TrialRow, latency: Sequence[LatencyRow], *, open_loop: bool) -> Measured:
    """Every metric of one trial. Of an open loop, latencies count from when an operation was to begin."""
    seconds = trial.measured_ns / 1e9
    amounts = {
        "read": (trial.read_bytes, trial.read_operations),
        "write": (trial.write_bytes, trial.write_operations),
    }
    used = [name for name, (_, operations) in amounts.items() if operations]
    if seconds <= 0 or not used:
        return nothing_done(("bandwidth", "iops"), _NOTHING)
    values: dict[str, float] = {}
    reasons: dict[str, str] = {}
    for name in used if len(used) > 1 else ():
        values[f"{name}_bandwidth"] = amounts[name][0] / seconds
        values[f"{name}_iops"] = amounts[name][1] / seconds
    values["bandwidth"] = sum(amounts[name][0] for name in used) / seconds
    operations = sum(amounts[name][1] for name in used)
    values["iops"] = operations / seconds
    clock = "intended" if open_loop else "total"
    for name in (*used, *(("sync",) if trial.sync_operations else ())):
        prefix = f"{name}_" if len(used) > 1 or name == "sync" else ""
        add_latency(values, reasons, latency, name, clock, prefix=prefix)
    every = _all_operations(trial) or operations
    values |= cpu_per_operation(trial, every)
    add_costs(values, reasons, trial, every)
    return Measured(values, reasons)


def _all_operations(trial: TrialRow) -> int:
    """Operations of the whole trial, as CPU time is counted; 0 where the engine did not say."""
    total = json.loads(trial.summary).get("total") or {}
    return sum(sums.get("operations", 0) for name, sums in total.items() if name != "sync")
