"""The code `other_load`: somebody else used this host, the device, the network or the cluster.

Everybody's counters are held against what the run itself can have caused at most; what may be its own (dirty
pages from before, a journal, protocol headers) is never held against others.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from leadline.store.tables import TrialRow
from leadline.units import format_rate
from leadline.verdict.codes.case import Case, Rule
from leadline.verdict.codes.catalogue import catalogue
from leadline.verdict.model import Code

_Limits = Mapping[str, float]


@dataclass(frozen=True)
class _Seen:
    """Bytes that everybody moved in a trial, and of these what the run can have caused at most."""

    everybody: int
    own: float
    words: str

    @property
    def others(self) -> float:
        return max(self.everybody - self.own, 0.0)


def other_load(case: Case) -> Iterator[Code]:
    """One code, with the worst trial's evidence for each of CPU, device, network and cluster."""
    if not case.good:
        return
    kind = catalogue()["other_load"]
    said = [
        text
        for find in (_cpu, _device, _network, _cluster)
        if (text := _worst(case, kind.thresholds, find)) is not None
    ]
    if said:
        yield kind.fire("; ".join(said))


_Find = Callable[[Case, TrialRow, _Limits], Iterator[tuple[float, str]]]


def _worst(case: Case, limits: _Limits, find: _Find) -> str | None:
    """The evidence of the trial where others' share was largest, and in how many trials there was one."""
    found = []
    for trial in case.good:
        worst = max(find(case, trial, limits), default=None)
        if worst is not None:
            found.append((worst[0], trial.trial, worst[1]))
    if not found:
        return None
    _, trial_id, words = max(found)
    return f"{words} in {trial_id} ({len(found)} of {len(case.good)} trials)"


def _cpu(_case: Case, trial: TrialRow, limits: _Limits) -> Iterator[tuple[float, str]]:
    share = trial.other_cpu_share
    if share is not None and share >= limits["cpu_share"]:
        busiest = json.loads(trial.sources).get("busiest_other")
        yield (
            share,
            f"others used {share:.0%} of this host's CPUs{f', most of it {busiest}' if busiest else ''}",
        )


def _device(case: Case, trial: TrialRow, limits: _Limits) -> Iterator[tuple[float, str]]:
    own_read, own_written = trial.own_read_bytes, trial.own_written_bytes
    if trial.device_read_bytes is not None and own_read is not None:
        seen = _Seen(trial.device_read_bytes, own_read, "read from the device")
        yield from _judge(trial, seen, limits)
    if case.work.unbounded_writes:
        return  # a file system's journal of operations on files has no known bound
    if trial.device_written_bytes is not None and own_written is not None:
        before = trial.dirty_at_start_bytes
        if before is None:
            return
        journal = _whole(trial, trial.sync_operations) * limits["sync_bytes"]
        own = own_written * limits["write_factor"] + before + journal
        yield from _judge(trial, _Seen(trial.device_written_bytes, own, "written to the device"), limits)


def _network(case: Case, trial: TrialRow, limits: _Limits) -> Iterator[tuple[float, str]]:
    own = _own_wire(case, trial)
    if own is None:
        return
    sent, received = own
    operations = trial.read_operations + trial.write_operations + trial.sync_operations
    headers = _whole(trial, operations) * limits["operation_bytes"]
    for everybody, mine, back, words in (
        (trial.interface_received_bytes, received, sent, "received by the network interface"),
        (trial.interface_sent_bytes, sent, received, "sent by the network interface"),
    ):
        if everybody is not None:
            allowed = (mine + limits["acknowledged"] * back) * (1 + limits["overhead"]) + headers
            yield from _judge(trial, _Seen(everybody, allowed, words), limits)


def _cluster(case: Case, trial: TrialRow, limits: _Limits) -> Iterator[tuple[float, str]]:
    own = _own_wire(case, trial)
    if own is None or case.work.unbounded_writes or case.facts.behind_server:
        return  # metadata servers write their journal to the same OSDs, and a gateway reads ahead
    sent, received = own
    for everybody, mine, words in (
        (trial.osd_read_bytes, received, "read from the OSDs"),
        (trial.osd_written_bytes, sent, "written to the OSDs"),
    ):
        if everybody is not None:
            yield from _judge(trial, _Seen(everybody, mine * (1 + limits["overhead"]), words), limits)


def _own_wire(case: Case, trial: TrialRow) -> tuple[float, float] | None:
    """Bytes (sent, received) of the run: the client daemon's own count, or of direct I/O what it moved."""
    source = json.loads(trial.sources).get("wire_received_bytes", "")
    if source.startswith("messengers of"):
        if trial.wire_sent_bytes is None or trial.wire_received_bytes is None:
            return None
        return float(trial.wire_sent_bytes), float(trial.wire_received_bytes)
    if not case.facts.is_remote or case.work.unbounded_writes or not case.cell.job.direct:
        return None
    if trial.group_read_bytes is not None:
        return None  # the job beside it may be buffered
    return float(trial.total_write_bytes), float(trial.total_read_bytes)


def _whole(trial: TrialRow, measured: int) -> float:
    """A count of the measured interval, for the whole trial with its ramp, which observers saw."""
    moved = trial.read_bytes + trial.write_bytes
    return (
        measured * max((trial.total_read_bytes + trial.total_write_bytes) / moved, 1.0) if moved else measured
    )


def _judge(trial: TrialRow, seen: _Seen, limits: _Limits) -> Iterator[tuple[float, str]]:
    seconds = max(trial.last_done_ns, trial.ramp_ns + trial.measured_ns, 1) / 1e9
    share = seen.others / seen.everybody if seen.everybody else 0.0
    if share < limits["share"] or seen.others < max(limits["bytes"], limits["bytes_per_s"] * seconds):
        return
    yield (
        share,
        f"{share:.0%} of what was {seen.words} was not this run's ({format_rate(seen.others / seconds)})",
    )


RULES: tuple[Rule, ...] = (other_load,)
