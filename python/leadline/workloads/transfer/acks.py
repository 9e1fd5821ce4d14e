"""What acknowledgements of a trial did, and its other figures: rates, latencies, costs.

Outstanding bytes, silences, stalls, ends and bursts are pure functions of arrays. A stream is one of a
client's, so that on many hosts it is a pair (host, stream). Times are seconds since the trial's start. When
something is called a stall or together is in `thresholds.yaml`, with the reasons.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from leadline.analysis.metrics import Measured, add_costs, add_latency, cpu_per_operation, nothing_done
from leadline.knowledge.tables import numbers
from leadline.store.own import Acks, read_acks
from leadline.store.tables import LatencyRow, TrialRow
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


Seconds = NDArray[np.float64]
_ROTATIONS = 199  # of a randomisation test; with none beyond, chance has less than 1 in 200


def thresholds() -> Mapping[str, float]:
    """The table of `thresholds.yaml`."""
    return numbers(__package__)


@dataclass(frozen=True)
class StreamAcks:
    """The acknowledged requests of one stream, in the order of their acknowledgements.

    `starts_s` and `silences_s` are of each acknowledgement's silence: the time before it without another one
    and with requests outstanding. The first one's is that from the first request on.
    """

    host: str | None
    number: int
    submitted_s: Seconds
    acked_s: Seconds
    lengths: NDArray[np.int64]
    starts_s: Seconds
    silences_s: Seconds

    @property
    def name(self) -> str:
        """How it is called."""
        return f"stream {self.number}" if self.host is None else f"stream {self.number} of {self.host}"

    @property
    def first_s(self) -> float:
        """When its first request was submitted."""
        return float(self.submitted_s.min())

    @property
    def last_submitted_s(self) -> float:
        """When its last request was."""
        return float(self.submitted_s.max())

    @property
    def ended_s(self) -> float:
        """When the last one was acknowledged."""
        return float(self.acked_s[-1])

    @property
    def drain_s(self) -> float:
        """From the last request to the last acknowledgement."""
        return self.ended_s - self.last_submitted_s

    @property
    def longest_s(self) -> float:
        """Its longest silence, the first one left out: a request must have the time that it takes."""
        return float(self.silences_s[1:].max(initial=0.0))

    @property
    def usual_s(self) -> float:
        """The silence below which a quarter of its silent time lies."""
        ranked = np.sort(self.silences_s[1:])
        if not len(ranked):
            return 0.0
        passed = np.cumsum(ranked)
        return float(ranked[min(np.searchsorted(passed, passed[-1] / 4), len(ranked) - 1)])


@dataclass(frozen=True)
class Stall:
    """A time in which streams that had requests outstanding had no acknowledgement.

    `start_s` to `end_s` is when all of them were silent; `under_way` is how many streams had requests
    outstanding then.
    """

    start_s: float
    end_s: float
    streams: tuple[StreamAcks, ...]
    under_way: int

    @property
    def seconds(self) -> float:
        """How long."""
        return self.end_s - self.start_s

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts whose streams they are; none where there is one host."""
        return tuple(sorted({one.host for one in self.streams if one.host is not None}))


@dataclass(frozen=True)
class Ends:
    """When the files of some streams ended: within `within_s`; their own pace would have needed `paced_s`.

    `chance` is the probability that as many independent streams end so close together; None: not tested.
    """

    streams: int
    within_s: float
    paced_s: float | None
    chance: float | None
    together: bool


@dataclass(frozen=True)
class Bursts:
    """How much more the number of acknowledgements varies than that of independent streams, in bins."""

    streams: int
    bin_s: float
    times: float
    together: bool


@dataclass(frozen=True)
class Late:
    """Acknowledgements after the last request of all: the last came `drain_s` later.

    Half of these `after` requests took `half_s` or longer, nine of ten before them at most `usual_s`.
    """

    drain_s: float
    usual_s: float
    half_s: float
    after: int
    late: bool


def streams_of(acks: Acks) -> tuple[StreamAcks, ...]:
    """The streams of a trial, in order of host and number."""
    order = np.lexsort((acks.acked_ns, acks.stream, acks.host))
    host, stream = acks.host[order], acks.stream[order]
    if not len(order):
        return ()
    edges = np.flatnonzero((np.diff(host) != 0) | (np.diff(stream) != 0)) + 1
    found = []
    for own in np.split(order, edges):
        submitted, acked = acks.submitted_ns[own] / 1e9, acks.acked_ns[own] / 1e9
        starts = _silent_from(submitted, acked)
        host_name = acks.hosts[int(acks.host[own[0]])]
        found.append(
            StreamAcks(
                host_name,
                int(acks.stream[own[0]]),
                submitted,
                acked,
                acks.length[own],
                starts,
                np.maximum(acked - starts, 0.0),
            )
        )
    return tuple(found)


def _silent_from(submitted_s: Seconds, acked_s: Seconds) -> Seconds:
    """From when on each acknowledgement was waited for: the one before it, or the next request where nothing
    was outstanding after that."""
    ranked = np.sort(submitted_s)
    before = acked_s[:-1]
    sent = np.searchsorted(ranked, before, side="right")
    idle = sent <= np.arange(1, len(acked_s))
    following = ranked[np.minimum(sent, len(ranked) - 1)]
    return np.concatenate(([ranked[0]], np.where(idle, np.maximum(following, before), before)))


def bytes_outstanding(acks: Acks, bins: int) -> tuple[float, Seconds]:
    """Seconds of a bin, and the mean bytes outstanding in each, from 0 to the last acknowledgement."""
    end_s = float(acks.acked_ns.max(initial=0)) / 1e9
    if end_s <= 0:
        return 0.0, np.zeros(0)
    times = np.concatenate((acks.submitted_ns, acks.acked_ns)) / 1e9
    order = np.argsort(times, kind="stable")
    changes = np.concatenate((acks.length, -acks.length))[order].astype(np.float64)
    times = np.concatenate(([0.0], times[order]))
    level = np.concatenate(([0.0], np.cumsum(changes)))
    area = np.concatenate(([0.0], np.cumsum(level[:-1] * np.diff(times))))
    edges = np.linspace(0.0, end_s, bins + 1)
    return end_s / bins, np.diff(np.interp(edges, times, area)) / (end_s / bins)


def stalls_of(streams: Sequence[StreamAcks]) -> tuple[Stall, ...]:
    """The stalls of a trial in order of time, those of streams at once as one."""
    limit = thresholds()
    known = [one for one in streams if len(one.acked_s) >= limit["acks_min"]]
    silences: list[tuple[float, float, StreamAcks, bool]] = []
    for one in known:
        median_s = float(np.median(one.acked_s - one.submitted_s))
        usual_s = one.usual_s
        least_s = max(limit["stall_s"], limit["stall_times"] * usual_s, limit["stall_latencies"] * median_s)
        long = (one.silences_s >= least_s) & (one.starts_s < one.last_submitted_s)
        long[0] = False
        silences += [
            (
                float(one.starts_s[place]),
                float(one.acked_s[place]),
                one,
                bool(one.silences_s[place] >= limit["stall_times_alone"] * usual_s),
            )
            for place in np.flatnonzero(long)
        ]
    found = []
    for group in _overlapping(sorted(silences, key=lambda silence: silence[:2]), limit["together_share"]):
        members = {id(silence[2]): silence[2] for silence in group}
        start_s, end_s = max(silence[0] for silence in group), min(silence[1] for silence in group)
        under_way = sum(one.first_s <= start_s and one.ended_s >= end_s for one in streams)
        several = len(members) >= 2 and len(members) >= limit["together_streams"] * under_way
        if several or any(silence[3] for silence in group):
            own = tuple(one for one in streams if id(one) in members)
            found.append(Stall(start_s, end_s, own, max(under_way, len(own))))
    return tuple(found)


def _overlapping(
    silences: Sequence[tuple[float, float, StreamAcks, bool]], share: float
) -> list[list[tuple[float, float, StreamAcks, bool]]]:
    """Silences in groups of which all are silent at once for that share of the shortest of them."""
    groups: list[list[tuple[float, float, StreamAcks, bool]]] = []
    going_on: list[list[tuple[float, float, StreamAcks, bool]]] = []  # what is sorted by start may still join
    for silence in silences:
        going_on = [group for group in going_on if min(one[1] for one in group) > silence[0]]
        fitting = next((group for group in reversed(going_on) if _fits(group, silence, share)), None)
        if fitting is None:
            going_on.append([silence])
            groups.append(going_on[-1])
        else:
            fitting.append(silence)
    return groups


def _fits(
    group: Sequence[tuple[float, float, StreamAcks, bool]],
    silence: tuple[float, float, StreamAcks, bool],
    share: float,
) -> bool:
    members = (*group, silence)
    start_s, end_s = max(one[0] for one in members), min(one[1] for one in members)
    other = all(one[2] is not silence[2] for one in group)
    return other and end_s - start_s >= share * min(one[1] - one[0] for one in members)


def ends_of(streams: Sequence[StreamAcks], *, by_size: bool) -> Ends | None:
    """When streams ended, against what their own pace lets expect; None of one stream.

    With `by_size` each sends its file once and ends by itself. Then the pace of three quarters of its bytes
    says when it would have ended. That n independent ends lie within the share r of their range has chance
    n r^(n-1) - (n-1) r^n (the distribution of the range of n uniform values). Streams that a time ends are
    not tested.
    """
    if len(streams) < 2:
        return None
    ends = np.array([one.ended_s for one in streams])
    within_s = float(np.ptp(ends))
    limit, count = thresholds(), len(streams)
    if not by_size or any(len(one.acked_s) < limit["acks_min"] for one in streams):
        return Ends(count, within_s, None, None, together=False)
    paced_s = float(np.ptp([_paced_end(one) for one in streams]))
    share = within_s / paced_s if paced_s > 0 else 1.0
    chance = min(1.0, count * share ** (count - 1) - (count - 1) * share**count) if share < 1 else 1.0
    together = (
        count >= limit["ends_streams"]
        and paced_s >= limit["ends_s"]
        and share <= limit["ends_share"]
        and chance <= limit["ends_chance"]
    )
    return Ends(count, within_s, paced_s, chance, together)


def _paced_end(stream: StreamAcks) -> float:
    """When it would have ended at the pace of its first three quarters."""
    done = np.cumsum(stream.lengths)
    place = int(np.searchsorted(done, 0.75 * done[-1]))
    first_s = stream.first_s
    return first_s + (float(stream.acked_s[place]) - first_s) * float(done[-1]) / float(done[place])


def bursts_of(streams: Sequence[StreamAcks]) -> Bursts | None:
    """Whether acknowledgements of streams come at the same moments; None where there are too few to say.

    Of independent streams the variance of the sum is the sum of the variances. Each stream's counts are
    turned round by chance, by itself, to see what independence gives (a randomisation test). Only the time
    in which all streams were under way counts, and no stall: those are named by themselves.
    """
    limit = thresholds()
    known = [one for one in streams if len(one.acked_s) >= limit["acks_min"]]
    if len(known) < 2:
        return None
    start_s = max(float(one.acked_s[0]) for one in known)
    end_s = min(one.last_submitted_s for one in known)
    bin_s = max(limit["bursts_bin_s"], float(np.median([one.usual_s for one in known])) / 2)
    bins = int((end_s - start_s) / bin_s) if end_s > start_s else 0
    if bins < limit["bursts_bins_min"]:
        return None
    edges = start_s + bin_s * np.arange(bins + 1)
    counts = np.array([np.histogram(one.acked_s, edges)[0] for one in known], dtype=np.float64)
    quiet = np.ones(bins, dtype=bool)
    for stall in stalls_of(streams):
        first, last = np.searchsorted(edges, (stall.start_s, stall.end_s))
        quiet[max(first - 2, 0) : last + 2] = False
    counts = counts[:, quiet]
    if counts.shape[1] < limit["bursts_bins_min"]:
        return None
    times = _together(counts)
    chance = np.random.default_rng(counts.shape[1])
    turned = max(
        _together(np.array([np.roll(row, chance.integers(len(row))) for row in counts]))
        for _ in range(_ROTATIONS)
    )
    together = bool(times >= limit["bursts_times"] and times > turned)
    return Bursts(len(known), bin_s, times, together)


def _together(counts: Seconds) -> float:
    """The variance of the sum over the sum of the variances; 1 where nothing varies."""
    alone = float(counts.var(axis=1).sum())
    return float(counts.sum(axis=0).var()) / alone if alone > 0 else 1.0


def late_of(streams: Sequence[StreamAcks]) -> Late | None:
    """How long acknowledgements came after the last request of all; None without a stream.

    One request that takes long is nothing: of those outstanding at a moment many do, as long ones are
    outstanding longest. Late is what half of them do, against what nine of ten did before.
    """
    if not streams:
        return None
    limit = thresholds()
    last_s = max(one.last_submitted_s for one in streams)
    took = np.concatenate([one.acked_s - one.submitted_s for one in streams])
    after = np.concatenate([one.acked_s > last_s for one in streams])
    drain_s = max(one.ended_s for one in streams) - last_s
    if not after.any() or after.all():
        return Late(drain_s, 0.0, 0.0, int(after.sum()), late=False)
    usual_s, half_s = float(np.quantile(took[~after], 0.9)), float(np.median(took[after]))
    late = bool(
        after.sum() >= limit["late_acks_min"]
        and drain_s >= limit["late_s"]
        and half_s >= limit["late_times"] * usual_s
    )
    return Late(drain_s, usual_s, half_s, int(after.sum()), late)
