"""What the work did, by its own counts."""

from __future__ import annotations

from collections.abc import Sequence

from leadline.store.tables import LatencyRow, TrialRow
from leadline.verdict.diagnosed.seen.values import Figures, ratio

_NO_ROOM = ("No space left", "quota exceeded", "ENOSPC", "EDQUOT")


def of_load(trial: TrialRow, latency: Sequence[LatencyRow], asked: int | None) -> Figures:
    """The figures of its operations. A trial without reads and writes has those of metadata operations."""
    seconds = trial.measured_ns / 1e9
    operations = trial.read_operations + trial.write_operations
    moved = trial.read_bytes + trial.write_bytes
    whole = [row for row in latency if row.interval == -1]
    means = {
        clock: mean_of([row for row in whole if row.clock == clock and row.direction in ("read", "write")])
        for clock in ("submission", "total")
    }
    mean_s = means["total"]
    rate = operations / seconds if seconds > 0 else None
    metadata = [] if operations else [row for row in whole if row.clock == "total"]
    named = sum(row.operations for row in metadata)
    return {
        "seconds": seconds,
        "operations_per_s": rate,
        "bytes_per_s": moved / seconds if seconds > 0 else None,
        "request_bytes": moved / operations if operations else None,
        "write_share": trial.write_operations / operations if operations else None,
        "syncs_per_write": trial.sync_operations / max(trial.write_operations, 1) if operations else None,
        "latency_s": mean_s,
        "submission_share": ratio(means["submission"], mean_s),
        "sync_latency_s": mean_of([row for row in whole if row.direction == "sync" and row.clock == "total"]),
        "metadata_latency_s": mean_of(metadata),
        "metadata_operations_per_s": named / seconds if named and seconds > 0 else None,
        "asked": None if asked is None else float(asked),
        "in_flight": None if mean_s is None or rate is None else mean_s * rate,
        "engine_share": trial.busy_share_max,
        "no_room": float(any(words in (trial.error or "") for words in _NO_ROOM)),
        "unfinished": float(trial.state in ("hung", "error")),
    }


def mean_of(rows: Sequence[LatencyRow]) -> float | None:
    """Seconds, over all operations of these histograms."""
    operations = sum(row.operations for row in rows)
    return sum(row.mean_ns * row.operations for row in rows) / operations / 1e9 if operations else None
