"""What a trial cost its client: CPU of engine and client daemon, and bytes on the wire. Pure functions."""

from __future__ import annotations

import json
from collections.abc import Mapping

from leadline.store.tables import TrialRow

_WIRE = ("wire_sent_bytes", "wire_received_bytes")


def add_costs(values: dict[str, float], reasons: dict[str, str], trial: TrialRow, operations: int) -> None:
    """Adds the metrics of `metrics.COST_METRICS`, or the reason of each that is not known.

    All of them are of the whole trial, its ramp included. What jobs that ran together cost is not told apart.
    """
    cpu_ns = trial.cpu_user_ns + trial.cpu_system_ns
    if trial.group is not None or not operations or cpu_ns <= 0:
        return
    values["client_cpu_per_operation"] = (cpu_ns + (trial.client_cpu_ns or 0)) / operations
    moved = trial.total_read_bytes + trial.total_write_bytes
    by_socket = "TCP sockets of process" in str(json.loads(trial.sources).get(_WIRE[0], ""))
    name = "wire_per_byte" if moved else "wire_per_operation"
    wire, reason = wire_bytes(trial)
    if wire is None:
        reasons[name] = reason
    elif wire == 0 and by_socket:
        reasons[name] = "the trial was over before its connections were seen"
    else:
        values[name] = wire / (moved or operations)


def wire_bytes(trial: TrialRow) -> tuple[int | None, str]:
    """Bytes between client and servers in both directions, or why they are not known."""
    if trial.wire_sent_bytes is None or trial.wire_received_bytes is None:
        why = json.loads(trial.reasons)
        return None, next((str(why[name]) for name in _WIRE if name in why), "not observable")
    sources: Mapping[str, str] = json.loads(trial.sources)
    if "both directions in each figure" in sources.get(_WIRE[0], ""):
        return None, "servers are on this host: loopback carries what they send each other, too"
    return trial.wire_sent_bytes + trial.wire_received_bytes, ""
