"""What is computed of a trial of a transfer: rates, latencies, costs, and what its acknowledgements did."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from leadline.analysis.costs import add_costs
from leadline.analysis.metrics import Measured, add_latency, cpu_per_operation, nothing_done
from leadline.store.own import read_acks
from leadline.store.tables import LatencyRow, TrialRow
from leadline.workloads.transfer.acks import (
    Bursts,
    Ends,
    Late,
    Stall,
    StreamAcks,
    bursts_of,
    bytes_outstanding,
    ends_of,
    late_of,
    stalls_of,
    streams_of,
)
from leadline.workloads.transfer.job import TransferJob

if TYPE_CHECKING:
    from leadline.store.reader import Result

OUTSTANDING_BINS = 200  # of a chart
_BEYOND_MIN = 10  # acknowledgements beyond a percentile that is reported


@dataclass(frozen=True)
class StreamFigures:
    """One stream of one trial; times in seconds. `host` is None of one host."""

    host: str | None
    number: int
    bytes: int
    requests: int
    first_s: float
    last_submitted_s: float
    ended_s: float
    longest_silence_s: float

    @property
    def drain_s(self) -> float:
        """From its last request to its last acknowledgement."""
        return self.ended_s - self.last_submitted_s


@dataclass(frozen=True)
class TrialAcks:
    """What the acknowledgements of one trial did. `outstanding` are mean bytes in bins of `bin_s` seconds."""

    trial: str
    streams: tuple[StreamFigures, ...]
    requests: int
    lost: int
    p99_s: float | None
    stalls: tuple[Stall, ...]
    ends: Ends | None
    bursts: Bursts | None
    late: Late | None
    bin_s: float
    outstanding: tuple[float, ...]

    @property
    def longest_silence_s(self) -> float:
        """Of any stream."""
        return max((one.longest_silence_s for one in self.streams), default=0.0)


AcksByTrial = Mapping[str, TrialAcks]


def read_trial_acks(result: Result) -> AcksByTrial:
    """What the acknowledgements of each trial that has some did, one trial after the other."""
    found = {}
    for row in result.trials():
        acks = read_acks(result, row.trial)
        if acks is None or not len(acks):
            continue
        streams = streams_of(acks)
        job = TransferJob.model_validate(json.loads(row.job))
        by_size = not job.time_based and all(int(one.lengths.sum()) == job.size for one in streams)
        took = (acks.acked_ns - acks.submitted_ns) / 1e9
        bin_s, outstanding = bytes_outstanding(acks, OUTSTANDING_BINS)
        found[row.trial] = TrialAcks(
            trial=row.trial,
            streams=tuple(map(_figures, streams)),
            requests=len(acks),
            lost=acks.lost,
            p99_s=float(np.quantile(took, 0.99)) if len(took) >= 100 * _BEYOND_MIN else None,
            stalls=stalls_of(streams),
            ends=ends_of(streams, by_size=by_size),
            bursts=bursts_of(streams),
            late=late_of(streams),
            bin_s=bin_s,
            outstanding=tuple(map(float, outstanding)),
        )
    return found


def _figures(stream: StreamAcks) -> StreamFigures:
    return StreamFigures(
        stream.host,
        stream.number,
        int(stream.lengths.sum()),
        len(stream.lengths),
        stream.first_s,
        stream.last_submitted_s,
        stream.ended_s,
        stream.longest_s,
    )


def transfer_metrics(
    trial: TrialRow, latency: Sequence[LatencyRow], acks: TrialAcks | None, *, open_loop: bool
) -> Measured:
    """Every metric of one trial. Of an open loop, latencies count from when a request was to begin."""
    seconds = trial.measured_ns / 1e9
    moved = {
        "read": (trial.read_bytes, trial.read_operations),
        "write": (trial.write_bytes, trial.write_operations),
    }
    used = [name for name, (size, operations) in moved.items() if size or operations]
    if seconds <= 0 or not used:
        return nothing_done(("bandwidth",), "no request was acknowledged in the measured interval")
    values: dict[str, float] = {"bandwidth": sum(moved[name][0] for name in used) / seconds}
    reasons: dict[str, str] = {}
    operations = sum(moved[name][1] for name in used)
    if operations:
        values["iops"] = operations / seconds
    for name in used:
        prefix = f"{name}_" if len(used) > 1 else ""
        if prefix:
            values[f"{name}_bandwidth"] = moved[name][0] / seconds
        clock = "intended" if open_loop else "total"
        add_latency(values, reasons, latency, name, clock, prefix=prefix)
    total = json.loads(trial.summary).get("total") or {}
    every = sum(total.get(name, {}).get("operations", 0) for name in ("read", "write")) or operations
    values |= cpu_per_operation(trial, every)
    add_costs(values, reasons, trial, every)
    job = TransferJob.model_validate(json.loads(trial.job))
    if not job.copies:
        values["bytes_in_flight"] = float(job.bytes_in_flight * (trial.hosts or 1))
    _add_acks(values, reasons, acks)
    return Measured(values, reasons)


def _add_acks(values: dict[str, float], reasons: dict[str, str], acks: TrialAcks | None) -> None:
    if acks is None or acks.late is None:
        reasons |= dict.fromkeys(
            ("drain", "ack_p99", "ack_longest_silence", "ended_within"), "no acknowledgement was kept"
        )
        return
    values["drain"] = acks.late.drain_s
    if acks.p99_s is None:
        reasons["ack_p99"] = (
            f"{acks.requests} acknowledgements are too few: fewer than {_BEYOND_MIN} lie beyond"
        )
    else:
        values["ack_p99"] = acks.p99_s
    if acks.longest_silence_s > 0:
        values["ack_longest_silence"] = acks.longest_silence_s
    else:
        reasons["ack_longest_silence"] = "no stream had a second acknowledgement"
    if acks.ends is not None:
        values["ended_within"] = acks.ends.within_s
    else:
        reasons["ended_within"] = "there is one stream"
